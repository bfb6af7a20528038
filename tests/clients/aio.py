"""aiokafka, with its event loop in a separate thread."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from tests.clients.client import SESSION_TIMEOUT_MS, Got, Member, Place, Sent

# aiokafka has few type annotations, so import it as Any.
aiokafka: Any = import_module("aiokafka")
assignors: Any = import_module("aiokafka.coordinator.assignors.range")
errors: Any = import_module("aiokafka.errors")
structs: Any = import_module("aiokafka.structs")

T = TypeVar("T")
SECONDS_MAX = 30.0


class AioClient:
    name = "aiokafka"
    too_large: type[Exception] = errors.MessageSizeTooLargeError

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], seconds: float = SECONDS_MAX) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def produce(
        self, topic: str, records: Sequence[Sent], *, codec: str = "none", idempotent: bool = False, acks: str = "all"
    ) -> list[Place]:
        return self.run(self._produce(topic, records, codec, idempotent, acks))

    async def _produce(
        self, topic: str, records: Sequence[Sent], codec: str, idempotent: bool, acks: str
    ) -> list[Place]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._address,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks=acks if acks == "all" else int(acks),
            linger_ms=5,
            max_request_size=20_000_000,
            max_batch_size=20_000_000,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            await producer.flush()
            acknowledged = [await future for future in sent]
            return [Place(one.partition, one.offset) for one in acknowledged if one is not None]
        finally:
            await producer.stop()

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        return self.run(self._read(topic, partition, offset, count))

    async def _read(self, topic: str, partition: int, offset: int, count: int) -> list[Got]:
        consumer = self._consumer(None)
        await consumer.start()
        try:
            place = structs.TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, offset)
            return [_got(await asyncio.wait_for(consumer.getone(), SECONDS_MAX)) for _ in range(count)]
        finally:
            await consumer.stop()

    def offsets_for_time(self, topic: str, times: Mapping[int, int]) -> dict[int, int | None]:
        async def ask() -> dict[int, int | None]:
            consumer = self._consumer(None)
            await consumer.start()
            try:
                asked = {structs.TopicPartition(topic, partition): when for partition, when in times.items()}
                found = await consumer.offsets_for_times(asked)
                return {part.partition: None if at is None else at.offset for part, at in found.items()}
            finally:
                await consumer.stop()

        return self.run(ask())

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            consumer = self._consumer(None)
            await consumer.start()
            try:
                place = structs.TopicPartition(topic, partition)
                low = (await consumer.beginning_offsets([place]))[place]
                return low, (await consumer.end_offsets([place]))[place]
            finally:
                await consumer.stop()

        return self.run(ask())

    def join(
        self, group: str, topic: str, *, strategy: str = "eager", instance: str | None = None, commits: bool = False
    ) -> Member:
        assert strategy == "eager", "aiokafka has no cooperative assignor"
        return _Member(self, group, topic, instance, commits)

    def _consumer(self, group: str | None, **more: Any) -> Any:
        options = {
            "enable_auto_commit": False,
            "fetch_max_bytes": 20_000_000,
            "fetch_max_wait_ms": 100,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": 200,
            "max_partition_fetch_bytes": 1 << 20,
            **more,
        }
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._address,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(assignors.RangePartitionAssignor,),
            **options,
        )

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS_MAX)
        self._loop.close()


class _Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka carries no types
    def __init__(self) -> None:
        self.count = 0

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self.count += 1

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.count += 1


class _Member:
    def __init__(self, client: AioClient, group: str, topic: str, instance: str | None, commits: bool) -> None:
        self._client = client
        self._topic = topic
        self._records: list[Got] = []
        self._listener = _Listener()

        async def start() -> tuple[Any, asyncio.Task[None]]:
            consumer = client._consumer(
                group, group_instance_id=instance, enable_auto_commit=commits, auto_commit_interval_ms=200
            )
            await consumer.start()
            consumer.subscribe([topic], listener=self._listener)
            return consumer, asyncio.ensure_future(self._poll(consumer))

        self._consumer, self._task = client.run(start())

    async def _poll(self, consumer: Any) -> None:
        while True:
            batches = await consumer.getmany(timeout_ms=50)
            for records in batches.values():
                self._records.extend(_got(record) for record in records)

    def received(self) -> list[Got]:
        if self._task.done() and not self._task.cancelled():
            self._task.result()
        return list(self._records)

    def assignment(self) -> frozenset[int]:
        return frozenset(part.partition for part in self._consumer.assignment())

    def rebalances(self) -> int:
        return self._listener.count

    def commit(self, partition: int, offset: int, metadata: str) -> None:
        place = structs.TopicPartition(self._topic, partition)
        self._client.run(self._consumer.commit({place: structs.OffsetAndMetadata(offset, metadata)}))

    def committed(self, partition: int) -> tuple[int, str] | None:
        # aiokafka returns only the offset. test_admin_aiokafka reads the metadata through the admin client.
        offset = self._client.run(self._consumer.committed(structs.TopicPartition(self._topic, partition)))
        return None if offset is None else (offset, "")

    def close(self) -> None:
        async def stop() -> None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self._consumer.stop()

        self._client.run(stop())


def _got(record: Any) -> Got:
    headers = tuple((name, bytes(value)) for name, value in record.headers)
    return Got(record.partition, record.offset, record.key, record.value, headers, record.timestamp)
