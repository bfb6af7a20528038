"""The sender batches records only while the broker is busy. A failed batch does not affect other partitions."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BufferFull, InvalidRequest, PartitionNotFound, RecordTooLarge
from headgate.kafka_client.producer import producer as sender_module
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.proxy.errors import ProxyError
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink
from tests.unit.proxy.produce.sending import placed, record, run, sent, settle


def test_the_settings_of_the_proxy_are_the_options_of_the_producer() -> None:
    settings = ProxySettings(
        producer_batch_bytes_max=1000,
        producer_pending_bytes_max=5000,
        produce_timeout_ms=7,
        shutdown_graceful_ms=8,
        auto_create_topics=False,
    )
    link: Any = FakeLink()
    # A batch of one record of the maximum size has space for its header.
    assert Sender(settings, link)._options == ProducerOptions(
        batch_bytes_max=1200,
        record_bytes_max=1000,
        pending_bytes_max=5000,
        delivery_timeout_ms=7,
        close_timeout_ms=8,
        auto_create_topics=False,
    )


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
        with pytest.raises(InvalidRequest):
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
        link.answers[-1].set_result({("t", 0): placed(ErrorCode.kafka_storage_error, -1), ("t", 1): placed(None, 0)})
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
                ("t", 0): placed(None, 7),
                ("t", 1): placed(ErrorCode.topic_authorization_failed, -1),
            }
        )
        assert (await good.delivered()).offset == 7
        with pytest.raises(ProxyError, match="Not authorized"):
            await bad.delivered()

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
        with pytest.raises(RecordTooLarge):
            await sender.place("t", [record(b"ok"), record(b"x" * 200)])
        await settle()
        assert link.sent == []

    run(scenario, producer_batch_bytes_max=100)


def test_records_that_wait_are_bounded() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        await sender.place("t", [record(b"x" * 800)])
        with pytest.raises(BufferFull):
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
