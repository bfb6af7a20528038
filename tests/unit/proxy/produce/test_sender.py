"""The sender batches records only while the broker is busy, and writes each record once despite network faults."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.producer import producer as sender_module
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.errors import (
    BrokerUnavailable,
    InvalidPayload,
    KafkaBadRequest,
    KafkaRetriable,
    PartitionNotFound,
    ProxyError,
    ShuttingDown,
    TooManyRequests,
)
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink

Scenario = Callable[[FakeLink, Sender], Awaitable[None]]


def run(scenario: Scenario, link: FakeLink | None = None, **settings: int) -> None:
    async def started() -> None:
        used = link or FakeLink()
        sender = Sender(ProxySettings(**settings), used)  # type: ignore[arg-type]
        await scenario(used, sender)

    asyncio.run(asyncio.wait_for(started(), 10))


def record(value: bytes, partition: int | None = 0, key: bytes | None = None) -> OutgoingRecord:
    return OutgoingRecord(key, value, partition)


async def sent(link: FakeLink, count: int) -> None:
    """Wait until the sender has sent `count` batches."""
    while len(link.sent) < count:  # noqa: ASYNC110  # the sender has no event for this
        await asyncio.sleep(0.001)


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


def test_a_lone_record_leaves_at_once_and_later_ones_share_the_next_batch() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = await sender.place("t", [record(b"1")])
        await settle()
        assert len(link.sent) == 1
        later = [(await sender.place("t", [record(b"%d" % number)]))[0] for number in range(2, 7)]
        await settle()
        assert len(link.sent) == 1, "a second batch left while the first was on the way"
        link.place(40)
        await sent(link, 2)
        assert [len(batch.values) for batch in link.sent] == [1, 5]
        link.place(41)
        assert (await first.delivered()).offset == 40
        assert [(await ticket.delivered()).offset for ticket in later] == [41, 42, 43, 44, 45]
        assert sender.pending_bytes == 0

    run(scenario)


def test_a_full_batch_is_followed_by_another_in_order_with_the_next_sequence() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        tickets = await sender.place("t", [record(b"x" * 400) for _ in range(5)])
        for number in range(3):
            await sent(link, number + 1)
            link.place(number * 2)
        assert [(await ticket.delivered()).offset for ticket in tickets] == [0, 1, 2, 3, 4]
        assert [(len(batch.values), batch.sequence) for batch in link.sent] == [(2, 0), (2, 2), (1, 4)]

    run(scenario, producer_batch_bytes_max=800)


def test_a_refused_batch_fails_alone_and_the_next_one_takes_its_sequence() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(ErrorCode.message_too_large)
        with pytest.raises(KafkaBadRequest):
            await first.delivered()
        (second,) = await sender.place("t", [record(b"2")])
        await sent(link, 2)
        link.place(0)
        assert (await second.delivered()).offset == 0
        assert [batch.sequence for batch in link.sent] == [0, 0], "a gap would be refused for ever after"

    run(scenario)


def test_a_partition_in_trouble_does_not_hold_up_its_neighbours() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        bad, good = await sender.place("t", [record(b"1", 0), record(b"2", 1)])
        await sent(link, 2)
        link.answers[-1].set_result({("t", 0): _placed(ErrorCode.kafka_storage_error, -1), ("t", 1): _placed(None, 0)})
        await good.delivered()
        (next_good,) = await sender.place("t", [record(b"3", 1)])
        await settle()
        assert link.sent[-1].values == (b"3",), "it waited for the other partition's next attempt"
        link.place(1, 1)
        assert (await next_good.delivered()).offset == 1
        await sent(link, 4)
        assert link.sent[-1].values == (b"1",)
        link.place(0)
        assert (await bad.delivered()).offset == 0

    run(scenario)


def test_only_the_records_of_a_refused_partition_fail() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        good, bad = await sender.place("t", [record(b"1", 0), record(b"2", 1)])
        await sent(link, 2)
        link.answers[-1].set_result(
            {
                ("t", 0): _placed(None, 7),
                ("t", 1): _placed(ErrorCode.topic_authorization_failed, -1),
            }
        )
        assert (await good.delivered()).offset == 7
        with pytest.raises(ProxyError, match="Not authorized"):
            await bad.delivered()

    run(scenario)


def _placed(error: ErrorCode | None, offset: int) -> Any:
    from headgate.kafka_client.producer.connection import Placed

    return Placed(error, offset, None)


@pytest.mark.parametrize("error", [kafka.KafkaConnectionError("gone"), kafka.RequestTimedOutError()])
def test_a_batch_without_an_answer_goes_again_under_the_same_number(error: Exception) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(error)
        await sent(link, 2)
        assert link.sent[0] == link.sent[1]
        assert link.refreshes
        link.place(3)
        assert (await ticket.delivered()).offset == 3

    run(scenario)


def test_a_batch_given_up_in_doubt_takes_its_producer_id_with_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError("gone"))
        with pytest.raises(BrokerUnavailable, match="may have been written"):
            await ticket.delivered()
        (after,) = await sender.place("t", [record(b"2")])
        await sent(link, 2)
        link.place(1)
        await after.delivered()
        assert link.sent[0].producer_id != link.sent[1].producer_id
        assert link.sent[1].sequence == 0

    run(scenario, produce_timeout_ms=10)


def test_a_broker_that_forgot_the_producer_gets_the_batch_under_a_new_one() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(ErrorCode.out_of_order_sequence_number)
        await sent(link, 2)
        link.place(9)
        assert (await ticket.delivered()).offset == 9
        assert link.sent[0].producer_id != link.sent[1].producer_id
        assert link.sent[0].values == link.sent[1].values

    run(scenario)


def test_a_partition_without_a_leader_is_waited_for_and_then_given_up() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        link.leader_id = None
        (ticket,) = await sender.place("t", [record(b"1")])
        with pytest.raises(BrokerUnavailable, match="no leader"):
            await ticket.delivered()
        link.leader_id = 1
        (after,) = await sender.place("t", [record(b"2")])
        await sent(link, 1)
        link.place(0)
        assert (await after.delivered()).offset == 0

    run(scenario, produce_timeout_ms=200)


def keyed(sender: Sender, identity: int, sequence: int, *records: OutgoingRecord, partition: int = 0) -> list[Ticket]:
    (tickets,) = sender.build("t", [(partition, records)])
    sender.send_as(ProducerIdentity(identity, 0), sequence, tickets[0].batch, may_be_written=False)
    return tickets


def test_records_under_an_identity_of_their_own_keep_it() -> None:
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
            with pytest.raises(InvalidPayload, match="must fit one batch"):
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
        link.answers[-1].set_result({("t", 0): _placed(None, 1), ("t", 1): _placed(None, 0)})
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
        with pytest.raises(KafkaRetriable, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
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
        with pytest.raises(KafkaRetriable, match="may have been written"):
            await ticket.delivered()
        assert not ticket.batch.identity_lost

    run(scenario)


def test_keyed_batches_count_as_pending_until_they_are_settled_or_discarded() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        with pytest.raises(InvalidPayload, match="partition 1"):
            sender.build("t", [(0, [record(b"x" * 100)]), (1, [record(b"x" * 150)] * 6)])
        with pytest.raises(InvalidPayload, match="limit of 800"):
            sender.build("t", [(0, [record(b"x" * 20)]), (1, [record(b"x" * 800)])])
        assert sender.pending_bytes == 0
        assert link.sent == []
        ((ticket,),) = sender.build("t", [(0, [record(b"x" * 500)])])
        assert sender.pending_bytes > 400
        with pytest.raises(TooManyRequests):
            sender.build("t", [(0, [record(b"x" * 750)])])
        sender.discard([ticket.batch], BrokerUnavailable("given up"))
        assert sender.pending_bytes == 0
        await sender.close()
        with pytest.raises(ShuttingDown):
            sender.build("t", [(0, [record(b"x")])])

    run(scenario, producer_batch_bytes_max=800, producer_pending_bytes_max=1200)


def test_a_keyed_batch_that_was_built_before_the_proxy_closed_is_not_sent() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        ((ticket,),) = sender.build("t", [(0, [record(b"x")])])
        await sender.close()
        sender.send_as(ProducerIdentity(7, 0), 0, ticket.batch, may_be_written=False)
        with pytest.raises(ShuttingDown):
            await ticket.delivered()
        assert link.sent == []
        assert sender.pending_bytes == 0

    run(scenario)


def test_a_first_attempt_that_is_called_a_duplicate_goes_again_under_a_new_producer_id() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(ErrorCode.duplicate_sequence_number)
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id
        link.place(3)
        assert (await ticket.delivered()).offset == 3

    run(scenario)


def test_a_duplicate_of_an_attempt_in_doubt_is_written_at_an_unknown_offset() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.lose(kafka.KafkaConnectionError("gone"))
        await sent(link, 2)
        link.refuse(ErrorCode.duplicate_sequence_number)
        assert (await ticket.delivered()).offset == -1
        await sender.place("t", [record(b"2")])
        await sent(link, 3)
        assert link.sent[2].sequence == 1
        link.place(1)

    run(scenario)


@pytest.mark.parametrize(
    "error", [ErrorCode.kafka_storage_error, ErrorCode.not_leader_or_follower, ErrorCode.unknown_server_error]
)
def test_an_error_that_may_follow_the_append_leaves_the_batch_in_doubt(error: ErrorCode) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.refuse(error)
        with pytest.raises(ProxyError, match="may have been written"):
            await ticket.delivered()
        await sender.place("t", [record(b"2")])
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id, "the next batch would be taken for the first"
        link.place(0)

    run(scenario, produce_timeout_ms=10)


def test_a_batch_in_doubt_whose_partition_loses_its_leader_takes_its_producer_id_with_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.leader_id = None
        link.lose(kafka.KafkaConnectionError("gone"))
        with pytest.raises(BrokerUnavailable, match="may have been written"):
            await ticket.delivered()
        link.leader_id = 1
        await sender.place("t", [record(b"2")])
        await sent(link, 2)
        assert link.sent[0].producer_id != link.sent[1].producer_id
        link.place(0)

    run(scenario, produce_timeout_ms=250)


def test_batches_that_waited_past_their_deadline_are_given_up_unsent() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = keyed(sender, 7, 0, record(b"1"))
        waiting = [keyed(sender, 8 + number, 0, record(b"late"))[0] for number in range(5)]
        await sent(link, 1)
        await asyncio.sleep(0.03)
        link.place(0)
        await first.delivered()
        for ticket in waiting:
            with pytest.raises(BrokerUnavailable, match="longer than the delivery timeout of 10 ms"):
                await ticket.delivered()
        assert len(link.sent) == 1
        assert sender.pending_bytes == 0

    run(scenario, produce_timeout_ms=10, kafka_request_timeout_ms=10)


def test_a_response_that_leaves_a_partition_out_is_no_acknowledgement() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        await sent(link, 1)
        link.answers[-1].set_result({})
        await sent(link, 2)
        assert link.sent[0] == link.sent[1]
        link.place(0)
        assert (await ticket.delivered()).offset == 0

    run(scenario)


def test_partition_queues_are_bounded_and_a_dropped_sequence_starts_under_a_new_producer_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender_module, "partition_queues_max", 2)

    async def scenario(link: FakeLink, sender: Sender) -> None:
        for number, partition in enumerate((0, 1, 2, 0)):
            (ticket,) = await sender.place("t", [record(b"v", partition)])
            await sent(link, number + 1)
            link.place(number, partition)
            await ticket.delivered()
        assert len(sender._queues) <= 2
        by_number = {(batch.producer_id, batch.partition, batch.sequence) for batch in link.sent}
        assert len(by_number) == 4, "a number that was used twice would lose a record"

    run(scenario, FakeLink(partition_count=3))


def test_keys_choose_the_partition_as_java_does_and_unknown_partitions_are_refused() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        tickets = await sender.place("t", [record(b"v", None, key) for key in (b"a", b"b", b"c", b"d")])
        # The result of Java's DefaultPartitioner (murmur2) for two partitions.
        assert [ticket.partition for ticket in tickets] == [0, 0, 0, 1]
        with pytest.raises(PartitionNotFound):
            await sender.place("t", [record(b"v", 7)])
        await sender.close()

    run(scenario, shutdown_graceful_ms=1)


def test_nothing_is_placed_when_one_record_of_a_request_is_too_large() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        with pytest.raises(InvalidPayload):
            await sender.place("t", [record(b"ok"), record(b"x" * 200)])
        await settle()
        assert link.sent == []

    run(scenario, producer_batch_bytes_max=100)


def test_records_that_wait_are_bounded() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        await sender.place("t", [record(b"x" * 800)])
        with pytest.raises(TooManyRequests):
            await sender.place("t", [record(b"x" * 800)])
        await sent(link, 1)
        link.place(0)
        await settle()
        await sender.place("t", [record(b"x" * 800)])
        await sent(link, 2)
        link.place(1)
        await settle()

    run(scenario, producer_pending_bytes_max=1000)


def test_a_request_that_is_cancelled_does_not_cancel_the_batch_it_shares() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (first,) = await sender.place("t", [record(b"1")])
        (second,) = await sender.place("t", [record(b"2")])
        waiting = asyncio.create_task(first.delivered())
        await sent(link, 1)
        waiting.cancel()
        await settle()
        link.place(0)
        assert (await second.delivered()).offset == 1

    run(scenario)
