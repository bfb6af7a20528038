"""Batches that grow only while the broker is busy, and are written once whatever happens on the way."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import errors as kafka

from proxy.errors import (
    BrokerUnavailable,
    InvalidPayload,
    KafkaBadRequest,
    PartitionNotFound,
    ProxyError,
    TooManyRequests,
)
from proxy.producers.records import OutgoingRecord, ProducerIdentity
from proxy.producers.sender import Sender
from proxy.settings import ProxySettings
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
    """Returns when so many batches have left."""
    while len(link.sent) < count:  # noqa: ASYNC110  # the sender under test tells nobody
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
        link.refuse(kafka.MessageSizeTooLargeError)
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
        link.answers[-1].set_result({("t", 0): _placed(kafka.KafkaStorageError, -1), ("t", 1): _placed(None, 0)})
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
                ("t", 1): _placed(kafka.TopicAuthorizationFailedError, -1),
            }
        )
        assert (await good.delivered()).offset == 7
        with pytest.raises(ProxyError, match="Not authorized"):
            await bad.delivered()

    run(scenario)


def _placed(error: type[Exception] | None, offset: int) -> Any:
    from proxy.producers.link import Placed

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
        link.refuse(kafka.OutOfOrderSequenceNumber)
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


def test_records_under_an_identity_of_their_own_keep_it() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        rows = [(1, 12, [record(b"a"), record(b"b")])]
        ((first, second),) = await sender.place_as(ProducerIdentity(7, 0), "t", rows)
        await sent(link, 1)
        link.place(5, partition=1)
        assert [(await ticket.delivered()).offset for ticket in (first, second)] == [5, 6]
        assert (link.sent[0].producer_id, link.sent[0].sequence) == (7, 12)

    run(scenario)


def test_keys_choose_the_partition_as_java_does_and_unknown_partitions_are_refused() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        tickets = await sender.place("t", [record(b"v", None, key) for key in (b"a", b"b", b"c", b"d")])
        # murmur2 of Java's DefaultPartitioner over two partitions.
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
