"""confluent-kafka (librdkafka)."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.clients.client import SESSION_TIMEOUT_MS, Got, Member, Place, Sent
from tests.clients.polling import PollingThread

SECONDS_MAX = 30.0
STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}


class TooLarge(Exception):
    """Stands for MSG_SIZE_TOO_LARGE, because librdkafka has one exception type for all errors."""


class ConfluentClient:
    name = "confluent-kafka"
    too_large: type[Exception] = TooLarge

    def __init__(self, address: str, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> None:
        self._address = address
        self._session_timeout_ms = session_timeout_ms

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False, acks: str = "all"
    ) -> list[Place]:
        producer = Producer(
            {
                "bootstrap.servers": self._address,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "acks": acks,
                "linger.ms": 5,
                # Above the broker's limit, so that the broker rejects the message and not the client.
                "message.max.bytes": 20_000_000,
                "partitioner": "murmur2_random",
            }
        )
        outcomes: list[tuple[KafkaError | None, Message]] = []
        for record in records:
            optional: dict[str, Any] = {}
            if record.partition is not None:
                optional["partition"] = record.partition
            if record.timestamp is not None:
                optional["timestamp"] = record.timestamp
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                on_delivery=lambda error, message: outcomes.append((error, message)),
                **optional,
            )
        assert producer.flush(SECONDS_MAX) == 0, "not all were delivered in time"
        places: list[Place] = []
        for error, message in outcomes:
            if error is not None:
                raise TooLarge if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else KafkaException(error)
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                places.append(Place(partition, offset))
        return places

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        consumer = self._consumer(group="unused")
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            got: list[Got] = []
            deadline = time.monotonic() + SECONDS_MAX
            while len(got) < count and time.monotonic() < deadline:
                got.extend(_records(consumer.consume(count - len(got), 0.5)))
            return got
        finally:
            consumer.close()

    def offsets_for_time(self, topic: str, times: Mapping[int, int]) -> dict[int, int | None]:
        consumer = self._consumer(group="unused")
        try:
            asked = [TopicPartition(topic, partition, when) for partition, when in times.items()]
            found = consumer.offsets_for_times(asked, SECONDS_MAX)
            # librdkafka returns -1 (the end) if there is no offset.
            return {part.partition: part.offset if part.offset >= 0 else None for part in found}
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer(group="unused")
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), SECONDS_MAX)
            return low, high
        finally:
            consumer.close()

    def join(
        self, group: str, topic: str, *, strategy: str = "eager", instance: str | None = None, commits: bool = False
    ) -> Member:
        more: dict[str, Any] = {"group.instance.id": instance} if instance is not None else {}
        consumer = self._consumer(group, strategy=STRATEGIES[strategy], commits=commits, **more)
        return _Member(consumer, topic)

    def close(self) -> None:
        return

    def _consumer(self, group: str, *, strategy: str = "range", commits: bool = False, **more: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": commits,
                "auto.commit.interval.ms": 200,
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": self._session_timeout_ms,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 100,
                **more,
            }
        )


class _Member:
    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._rebalances = 0
        consumer.subscribe([topic], on_assign=self._changed, on_revoke=self._changed)
        self._thread = PollingThread(lambda: _records(consumer.consume(100, 0.05)), consumer.close)

    def _changed(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._rebalances += 1

    def received(self) -> list[Got]:
        return self._thread.received()

    def rebalances(self) -> int:
        return self._rebalances

    def assignment(self) -> frozenset[int]:
        return frozenset(part.partition for part in self._thread.run(self._consumer.assignment))

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        place = TopicPartition(self._topic, partition, offset, metadata)
        self._thread.run(lambda: self._consumer.commit(offsets=[place], asynchronous=False))

    def committed(self, partition: int) -> tuple[int, str] | None:
        asked = [TopicPartition(self._topic, partition)]
        (found,) = self._thread.run(lambda: self._consumer.committed(asked, SECONDS_MAX))
        return (found.offset, found.metadata or "") if found.offset >= 0 else None

    def close(self) -> None:
        self._thread.stop()


def _records(messages: list[Message]) -> list[Got]:
    got: list[Got] = []
    for message in messages:
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        headers = tuple((name, bytes(value)) for name, value in _pairs(message.headers()))
        key, value = message.key(), message.value()
        got.append(Got(partition, offset, _bytes(key), _bytes(value), headers, message.timestamp()[1]))
    return got


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _pairs(headers: Any) -> list[tuple[str, Any]]:
    return list(headers or [])
