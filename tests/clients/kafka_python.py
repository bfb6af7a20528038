"""kafka-python."""

import time
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tests.clients.client import SESSION_TIMEOUT_MS, Got, Member, Place, Sent
from tests.clients.polling import PollingThread

# kafka-python has no type annotations, so import it as Any. On Python 3.11, the import emits a DeprecationWarning.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka: Any = import_module("kafka")
    errors: Any = import_module("kafka.errors")
    structs: Any = import_module("kafka.structs")
    assignors: Any = import_module("kafka.coordinator.assignors.range")
    cooperative: Any = import_module("kafka.coordinator.assignors.cooperative_sticky")

SECONDS_MAX = 30.0


class KafkaPythonClient:
    name = "kafka-python"
    too_large: type[Exception] = errors.MessageSizeTooLargeError

    def __init__(self, address: str) -> None:
        self._address = address

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False, acks: str = "all"
    ) -> list[Place]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self._address,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks=acks if acks == "all" else int(acks),
            linger_ms=5,
            max_request_size=20_000_000,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            producer.flush(SECONDS_MAX)
            return [Place(one.partition, one.offset) for one in [future.get(SECONDS_MAX) for future in futures]]
        finally:
            producer.close(SECONDS_MAX)

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        consumer = self._consumer(None)
        try:
            place = structs.TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, offset)
            got: list[Got] = []
            deadline = time.monotonic() + SECONDS_MAX
            while len(got) < count and time.monotonic() < deadline:
                got.extend(_poll(consumer))
            return got[:count]
        finally:
            consumer.close()

    def offsets_for_time(self, topic: str, times: Mapping[int, int]) -> dict[int, int | None]:
        consumer = self._consumer(None)
        try:
            asked = {structs.TopicPartition(topic, partition): when for partition, when in times.items()}
            found = consumer.offsets_for_times(asked)
            return {part.partition: None if at is None else at.offset for part, at in found.items()}
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer(None)
        try:
            place = structs.TopicPartition(topic, partition)
            return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
        finally:
            consumer.close()

    def join(
        self, group: str, topic: str, *, strategy: str = "eager", instance: str | None = None, commits: bool = False
    ) -> Member:
        assignor = {"eager": assignors.RangePartitionAssignor, "cooperative": cooperative.CooperativeStickyAssignor}
        consumer = self._consumer(
            group,
            group_instance_id=instance,
            partition_assignment_strategy=(assignor[strategy],),
            enable_auto_commit=commits,
            auto_commit_interval_ms=200,
        )
        return _Member(consumer, topic)

    def close(self) -> None:
        return

    def _consumer(self, group: str | None, **more: Any) -> Any:
        options = {
            "enable_auto_commit": False,
            "fetch_max_wait_ms": 100,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": 200,
            **more,
        }
        return kafka.KafkaConsumer(
            bootstrap_servers=self._address, group_id=group, auto_offset_reset="earliest", **options
        )


class _Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python carries no types
    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.count += 1

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.count += 1


class _Member:
    def __init__(self, consumer: Any, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._listener = _Listener()
        # kafka-python 3.0 may join before it knows the topic and then keep an empty assignment, also with Apache Kafka.
        consumer.partitions_for_topic(topic)
        consumer.subscribe([topic], listener=self._listener)
        self._thread = PollingThread(lambda: _poll(consumer), consumer.close)

    def received(self) -> list[Got]:
        return self._thread.received()

    def assignment(self) -> frozenset[int]:
        # Safe without a lock: the other thread replaces the set atomically, so there is no need to wait for the poll.
        return frozenset(part.partition for part in self._consumer.assignment())

    def rebalances(self) -> int:
        return self._listener.count

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        place = structs.TopicPartition(self._topic, partition)
        self._thread.run(lambda: self._consumer.commit({place: structs.OffsetAndMetadata(offset, metadata, -1)}))

    def committed(self, partition: int) -> tuple[int, str] | None:
        place = structs.TopicPartition(self._topic, partition)
        found = self._thread.run(lambda: self._consumer.committed(place, metadata=True))
        return None if found is None else (found.offset, found.metadata)

    def close(self) -> None:
        self._thread.stop()


def _poll(consumer: Any) -> list[Got]:
    # Use long polls: kafka-python 3.0 can lose a SyncGroup response that arrives right after a poll ends.
    return [_got(record) for records in consumer.poll(timeout_ms=500).values() for record in records]


def _got(record: Any) -> Got:
    headers = tuple((name, bytes(value)) for name, value in record.headers)
    return Got(record.partition, record.offset, record.key, record.value, headers, record.timestamp)
