"""Batches of requests with an Idempotency-Key: the sender keeps their producer ids and sequence numbers."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, BufferFull, ProducerClosed, RecordTooLarge, RetriableError
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.producers.sender import Sender
from tests.unit.proxy.produce.fake_link import FakeLink
from tests.unit.proxy.produce.sending import keyed, placed, record, run, sent, settle


def test_records_with_an_explicit_producer_id_keep_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        first, second = keyed(sender, 7, 12, record(b"a"), record(b"b"), partition=1)
        await sent(link, 1)
        link.place(5, partition=1)
        assert [(await ticket.delivered()).offset for ticket in (first, second)] == [5, 6]
        assert (link.sent[0].producer_id, link.sent[0].sequence) == (7, 12)

    run(scenario)


def test_a_keyed_batch_that_is_full_is_refused_without_encoding_the_other_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[bytes | None] = []
    append = Sender._append

    def counted(self: Sender, batch: Any, one: OutgoingRecord, now_ms: int) -> Ticket | None:
        encoded.append(one.value)
        return append(self, batch, one, now_ms)

    monkeypatch.setattr(Sender, "_append", counted)

    async def scenario(link: FakeLink, sender: Sender) -> None:
        for records in ([record(bytes(400))] * 100, []):
            with pytest.raises(RecordTooLarge, match="must fit one batch"):
                sender.build("t", [(0, records)])
        assert len(encoded) < 10
        assert sender.pending_bytes == 0

    run(scenario, producer_batch_bytes_max=1000)


def test_batches_of_several_producer_ids_for_one_partition_are_sent_one_after_the_other() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        before = await sender.place("t", [record(b"shared 1")])
        owned = [keyed(sender, producer_id, 0, record(b"keyed %d" % producer_id))[0] for producer_id in (7, 8)]
        after = await sender.place("t", [record(b"shared 2")])
        for number in range(3):
            await sent(link, number + 1)
            await settle()
            assert len(link.sent) == number + 1, "two batches of one partition were in flight"
            link.place(number * 10)
        offsets = [(await ticket.delivered()).offset for ticket in (*before, *owned, *after)]
        assert offsets == [0, 10, 20, 1]
        assert [batch.values for batch in link.sent] == [(b"shared 1", b"shared 2"), (b"keyed 7",), (b"keyed 8",)]
        assert sender.pending_bytes == 0

    run(scenario)


def test_keyed_batches_leave_the_shared_sequence_alone_and_share_requests_with_other_partitions() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.place(0)
        await first.delivered()
        (owned,) = keyed(sender, 7, 40, record(b"k"))
        (other,) = await sender.place("t", [record(b"2", 1)])
        await sent(link, 3)
        assert len(link.answers) == 2, "one request carries a batch for each partition of a broker"
        link.answers[-1].set_result({("t", 0): placed(None, 1), ("t", 1): placed(None, 0)})
        assert [(await ticket.delivered()).offset for ticket in (owned, other)] == [1, 0]
        await sender.place("t", [record(b"3")])
        await sent(link, 4)
        assert (link.sent[3].producer_id, link.sent[3].sequence) == (link.sent[0].producer_id, 1)
        link.place(2)

    run(scenario)


def test_a_keyed_batch_with_a_lost_sequence_is_handed_back_and_not_sent_under_another_id() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = keyed(sender, 7, 3, record(b"k"))
        await sent(link, 1)
        link.refuse(ErrorCode.out_of_order_sequence_number)
        with pytest.raises(RetriableError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            await ticket.delivered()
        assert ticket.batch.identity_lost
        await settle()
        assert len(link.sent) == 1
        assert sender.pending_bytes == 0

    run(scenario)


def test_a_fenced_producer_id_leaves_a_batch_in_doubt_that_an_earlier_attempt_may_have_written() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        ((ticket,),) = sender.build("t", [(0, [record(b"k")])])
        sender.send_as(ProducerIdentity(7, 0), 0, ticket.batch, may_be_written=True)
        await sent(link, 1)
        link.refuse(ErrorCode.invalid_producer_epoch)
        with pytest.raises(RetriableError, match="may have been written"):
            await ticket.delivered()
        assert not ticket.batch.identity_lost

    run(scenario)


def test_keyed_batches_count_as_pending_until_they_are_settled_or_discarded() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        with pytest.raises(RecordTooLarge, match="partition 1"):
            sender.build("t", [(0, [record(b"x" * 100)]), (1, [record(b"x" * 150)] * 6)])
        with pytest.raises(RecordTooLarge, match="limit of 800"):
            sender.build("t", [(0, [record(b"x" * 20)]), (1, [record(b"x" * 800)])])
        assert sender.pending_bytes == 0
        assert link.sent == []
        ((ticket,),) = sender.build("t", [(0, [record(b"x" * 500)])])
        assert sender.pending_bytes > 400
        with pytest.raises(BufferFull):
            sender.build("t", [(0, [record(b"x" * 750)])])
        sender.discard([ticket.batch], BrokerUnavailable("given up"))
        assert sender.pending_bytes == 0
        await sender.close()
        with pytest.raises(ProducerClosed):
            sender.build("t", [(0, [record(b"x")])])

    run(scenario, producer_batch_bytes_max=800, producer_pending_bytes_max=1200)


def test_a_keyed_batch_that_was_built_before_the_proxy_closed_is_not_sent() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        ((ticket,),) = sender.build("t", [(0, [record(b"x")])])
        await sender.close()
        sender.send_as(ProducerIdentity(7, 0), 0, ticket.batch, may_be_written=False)
        with pytest.raises(ProducerClosed):
            await ticket.delivered()
        assert link.sent == []
        assert sender.pending_bytes == 0

    run(scenario)
