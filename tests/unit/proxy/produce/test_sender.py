"""Batches that grow only while the broker is busy."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from proxy.errors import InvalidPayload, KafkaFailed, PartitionNotFound, TooManyRequests
from proxy.producers.sender import OutgoingRecord, Sender
from proxy.settings import ProxySettings


@dataclass
class Added:
    timestamp: int


class Builder:
    def __init__(self, room: int) -> None:
        self.rows: list[tuple[bytes | None, bytes | None]] = []
        self._room = room

    def append(self, *, key: bytes | None, value: bytes | None, timestamp: int | None, headers: list[Any]) -> Any:
        if len(self.rows) == self._room:
            return None
        self.rows.append((key, value))
        return Added(timestamp or 1)


@dataclass
class Answer:
    offset: int
    timestamp: int = 5
    timestamp_type: int = 0


@dataclass
class FakeProducer:
    """Answers when it is let."""

    room: int = 100
    sent: list[tuple[int, list[tuple[bytes | None, bytes | None]]]] = field(default_factory=list)
    deliveries: "list[asyncio.Future[Answer]]" = field(default_factory=list)

    async def partitions_for(self, topic: str) -> set[int]:
        return {0, 1}

    def create_batch(self) -> Builder:
        return Builder(self.room)

    async def send_batch(self, batch: Builder, topic: str, *, partition: int) -> "asyncio.Future[Answer]":
        self.sent.append((partition, batch.rows))
        delivery: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.deliveries.append(delivery)
        return delivery

    async def stop(self) -> None: ...


def sender_with(producer: FakeProducer, **settings: int) -> Sender:
    sender = Sender(ProxySettings(**settings))  # type: ignore[arg-type]
    sender._producer = producer
    return sender


def record(value: bytes, partition: int | None = 0, key: bytes | None = None) -> OutgoingRecord:
    return OutgoingRecord(key, value, partition)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_lone_record_leaves_at_once_and_later_ones_share_the_next_batch() -> None:
    async def scenario() -> None:
        producer = FakeProducer()
        sender = sender_with(producer)
        (first,) = await sender.place("t", [record(b"1")])
        await settle()
        assert len(producer.sent) == 1
        later = [(await sender.place("t", [record(b"%d" % number)]))[0] for number in range(2, 7)]
        await settle()
        assert len(producer.sent) == 1, "a second batch left while the first was on the way"
        producer.deliveries[0].set_result(Answer(40))
        await settle()
        assert [len(rows) for _, rows in producer.sent] == [1, 5]
        producer.deliveries[1].set_result(Answer(41))
        assert (await first.delivered()).offset == 40
        assert [(await ticket.delivered()).offset for ticket in later] == [41, 42, 43, 44, 45]

    asyncio.run(scenario())


def test_a_full_batch_is_followed_by_another_in_order() -> None:
    async def scenario() -> None:
        producer = FakeProducer(room=2)
        sender = sender_with(producer)
        tickets = await sender.place("t", [record(b"%d" % number) for number in range(5)])
        for number in range(3):
            await settle()
            producer.deliveries[number].set_result(Answer(number * 2))
        assert [(await ticket.delivered()).offset for ticket in tickets] == [0, 1, 2, 3, 4]
        assert [len(rows) for _, rows in producer.sent] == [2, 2, 1]

    asyncio.run(scenario())


def test_a_refused_batch_fails_its_records_and_the_lane_goes_on() -> None:
    async def scenario() -> None:
        producer = FakeProducer()
        sender = sender_with(producer)
        (first,) = await sender.place("t", [record(b"1")])
        await settle()
        producer.deliveries[0].set_exception(RuntimeError("no"))
        with pytest.raises(KafkaFailed):
            await first.delivered()
        (second,) = await sender.place("t", [record(b"2")])
        await settle()
        producer.deliveries[1].set_result(Answer(0))
        assert (await second.delivered()).offset == 0

    asyncio.run(scenario())


def test_keys_choose_the_partition_as_java_does_and_unknown_partitions_are_refused() -> None:
    async def scenario() -> None:
        producer = FakeProducer()
        sender = sender_with(producer)
        tickets = await sender.place("t", [record(b"v", None, key) for key in (b"a", b"b", b"c", b"d")])
        # murmur2 of Java's DefaultPartitioner over two partitions.
        assert [ticket.partition for ticket in tickets] == [0, 0, 0, 1]
        with pytest.raises(PartitionNotFound):
            await sender.place("t", [record(b"v", 7)])
        for delivery in producer.deliveries:
            delivery.set_result(Answer(0))
        await settle()

    asyncio.run(scenario())


def test_nothing_is_placed_when_one_record_of_a_request_is_too_large() -> None:
    async def scenario() -> None:
        producer = FakeProducer()
        sender = sender_with(producer, producer_batch_bytes_max=100)
        with pytest.raises(InvalidPayload):
            await sender.place("t", [record(b"ok"), record(b"x" * 200)])
        await settle()
        assert producer.sent == []

    asyncio.run(scenario())


def test_records_that_wait_are_bounded() -> None:
    async def scenario() -> None:
        producer = FakeProducer()
        sender = sender_with(producer, producer_pending_bytes_max=1000)
        await sender.place("t", [record(b"x" * 800)])
        with pytest.raises(TooManyRequests):
            await sender.place("t", [record(b"x" * 800)])
        await settle()
        producer.deliveries[0].set_result(Answer(0))
        await settle()
        await sender.place("t", [record(b"x" * 800)])
        await settle()
        producer.deliveries[1].set_result(Answer(1))
        await settle()

    asyncio.run(scenario())
