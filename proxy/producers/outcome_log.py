"""Journal of requests with an Idempotency-Key: a topic that every worker writes to and reads to its end.

A key has two kinds of records:

- An *intent* contains the producer ids and sequence numbers of the request's batches. It precedes the first batch.
- An *outcome* contains the response.

If two workers write an intent for one key, both use the first intent in the log. A later intent takes effect only as
the next attempt of the request, after a broker has rejected the previous numbers. Retention deletes old records. The
topic is not compacted, because compaction would remove the first intents. Memory holds the index of all keys in the
time window and the recent responses. Older responses are read from the topic.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiokafka import TopicPartition
from kio.schema.errors import ErrorCode

from headgate.kafka_client.admin.topics import NewTopic, create_topic, describe_cluster, find_topics
from headgate.kafka_client.consumer import BoundedConsumer
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.errors import BrokerUnavailable, KafkaClientError, TopicNotFound
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity
from headgate.kafka_client.request_client import RequestClient
from headgate.proxy.kafka_errors import proxy_error
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings

# Responses cached in memory. Evicted responses are read from the topic.
answers_bytes_max: Final = 16 * 1024 * 1024
# Replication factor of Kafka's internal topics. A smaller cluster has fewer replicas.
replicas_max: Final = 3
# Records parsed per poll. Other tasks run between two polls.
poll_records_max: Final = 500
# Length of keys and fingerprints in the log.
digest_bytes: Final = 16
# How long a worker waits until it reads its own record from the log.
catch_up_seconds: Final = 10.0


class Intent(msgspec.Struct, frozen=True, tag="intent"):
    fingerprint: bytes
    producer_id: int
    epoch: int
    rows: list[tuple[int, int, list[int]]]
    """(partition, first sequence number, positions of its records in the request)"""
    attempt: int = 0
    moved: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """(producer id, epoch) by partition, for partitions that no longer use those of the first attempt."""

    def producer_of(self, partition: int) -> tuple[int, int]:
        return self.moved.get(partition, (self.producer_id, self.epoch))

    def restarted(self, partitions: Collection[int], identity: ProducerIdentity) -> "Intent":
        """Returns the next attempt: these partitions start at sequence 0 of a new producer id. Others stay the same."""
        rows = [
            (partition, 0 if partition in partitions else sequence, positions)
            for partition, sequence, positions in self.rows
        ]
        moved = {**self.moved, **dict.fromkeys(partitions, (identity.producer_id, identity.epoch))}
        return Intent(self.fingerprint, self.producer_id, self.epoch, rows, self.attempt + 1, moved)

    def is_restart_of(self, before: "Intent") -> bool:
        return (
            self.attempt == before.attempt + 1
            and self.fingerprint == before.fingerprint
            and [(row[0], row[2]) for row in self.rows] == [(row[0], row[2]) for row in before.rows]
        )


class Outcome(msgspec.Struct, frozen=True, tag="outcome"):
    fingerprint: bytes
    answer: bytes


def _is_plausible(key: bytes, said: Intent | Outcome) -> bool:
    """Rejects entries that no worker can have written. Any Kafka client may write to the topic."""
    if len(key) > digest_bytes or len(said.fingerprint) > digest_bytes:
        return False
    if isinstance(said, Outcome):
        return True
    return (
        all(
            0 <= producer_id < 2**63 and 0 <= epoch < 2**15
            for producer_id, epoch in [(said.producer_id, said.epoch), *said.moved.values()]
        )
        and len({partition for partition, _, _ in said.rows}) == len(said.rows)
        and all(0 <= number < 2**31 for partition, sequence, _ in said.rows for number in (partition, sequence))
        # Each record of the request is in at most one row.
        and len({position for _, _, positions in said.rows for position in positions})
        == sum(len(positions) for _, _, positions in said.rows)
        and all(position >= 0 for _, _, positions in said.rows for position in positions)
    )


_DECODER: Final = msgspec.msgpack.Decoder(Intent | Outcome)


@dataclass(slots=True)
class Entry:
    at_ms: int
    fingerprint: bytes
    intent: Intent | None
    outcome_offset: int | None


class OutcomeLog:
    def __init__(self, settings: ProxySettings, sender: Sender) -> None:
        self._settings = settings
        self._sender = sender
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._answers: OrderedDict[int, bytes] = OrderedDict()
        self._answers_bytes = 0
        self._consumer: Any = None
        self._decompression = Decompression(
            settings.fetch_batch_decompressed_bytes_max, settings.fetch_record_decompressed_bytes_max
        )
        self._position: int
        self._moved = asyncio.Event()
        self._opening = asyncio.Lock()
        self._tail: asyncio.Task[None] | None = None

    async def find(self, key: bytes) -> Entry | None:
        """Returns the entry of a key in the part of the log that was read. Raises BrokerUnavailable."""
        await self._opened()
        entry = self._entries.get(key)
        if entry is not None and entry.at_ms + self._settings.idempotency_window_ms < time.time() * 1000:
            return None
        return entry

    async def announce(self, key: bytes, intent: Intent) -> Entry:
        """Writes an intent. Returns the entry in effect, which may come from another worker. Raises ProxyError."""
        offset = await self._write(key, intent)
        await self._reach(offset + 1)
        entry = await self.find(key)
        if entry is None:
            raise BrokerUnavailable("The log of idempotent requests was lost while it was read.")
        return entry

    async def conclude(self, key: bytes, outcome: Outcome) -> None:
        """Writes an outcome. Returns after it is acknowledged and this worker has read it. Raises ProxyError."""
        offset = await self._write(key, outcome)
        await self._reach(offset + 1)

    async def answer(self, entry: Entry) -> bytes:
        """Raises ProxyError."""
        assert entry.outcome_offset is not None
        kept = self._answers.get(entry.outcome_offset)
        if kept is not None:
            return kept
        return await self._read_again(entry.outcome_offset)

    async def close(self) -> None:
        tail, self._tail = self._tail, None
        if tail is not None:
            tail.cancel()
            await asyncio.wait((tail,))
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def _write(self, key: bytes, entry: Intent | Outcome) -> int:
        await self._opened()
        record = OutgoingRecord(key, msgspec.msgpack.encode(entry), 0)
        # Ignore the limit of pending bytes: the request is already admitted, and its records wait for this record.
        (ticket,) = await self._sender.place(self._settings.idempotency_topic, [record], is_limited=False)
        return (await ticket.delivered()).offset

    async def _reach(self, offset: int) -> None:
        try:
            async with asyncio.timeout(catch_up_seconds):
                while self._position < offset:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise BrokerUnavailable("The log of idempotent requests cannot be read just now.") from None

    async def _opened(self) -> None:
        if self._tail is not None and not self._tail.done():
            return
        async with self._opening:
            if self._tail is not None and not self._tail.done():
                return
            await self.close()
            self._entries.clear()
            self._answers.clear()
            self._answers_bytes = 0
            await self._create()
            consumer = self._new_consumer()
            try:
                await consumer.start()
                where = TopicPartition(self._settings.idempotency_topic, 0)
                consumer.assign([where])
                await consumer.seek_to_beginning(where)
                self._position = await consumer.position(where)
                end = (await consumer.end_offsets([where]))[where]
            except Exception as error:
                await consumer.stop()
                raise proxy_error(error) from error
            self._consumer = consumer
            self._tail = asyncio.create_task(self._follow(consumer, where))
            await self._reach(end)

    def _new_consumer(self) -> Any:
        return BoundedConsumer(
            self._decompression,
            self._settings.connection,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    async def _create(self) -> None:
        """Creates the topic if it is missing."""
        topic = self._settings.idempotency_topic
        client = RequestClient(self._settings.connection)
        try:
            if not await find_topics(client, [topic], missing_ok=True):
                # A segment spans a quarter of the window, so that retention deletes expired entries soon.
                configs = {
                    "cleanup.policy": "delete",
                    "retention.ms": str(self._settings.idempotency_window_ms),
                    "segment.ms": str(max(self._settings.idempotency_window_ms // 4, 60_000)),
                }
                brokers = len((await describe_cluster(client)).brokers)
                wanted = NewTopic(topic, 1, min(brokers, replicas_max), configs=configs)
                await create_topic(client, wanted, validate_only=False)
        except KafkaClientError as error:
            if error.kafka_code is not ErrorCode.topic_already_exists:
                raise proxy_error(error) from error
        finally:
            await client.close()
        try:
            await self._sender.partitions(topic)
        except TopicNotFound:
            raise BrokerUnavailable("The log of idempotent requests could not be made.") from None

    async def _follow(self, consumer: Any, where: TopicPartition) -> None:
        while True:
            batches = await consumer.getmany(where, timeout_ms=1000, max_records=poll_records_max)
            for records in batches.values():
                for record in records:
                    self._learn(record.key, record.value, record.offset, record.timestamp)
            self._position = max(self._position, await consumer.position(where))
            self._moved.set()

    def _learn(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:
        try:
            said = _DECODER.decode(value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # No worker wrote this record.
        if key is None or not _is_plausible(key, said):
            return
        window_ms = self._settings.idempotency_window_ms
        known = self._entries.get(key)
        if known is not None and known.at_ms + window_ms < at_ms:
            known = None
        if isinstance(said, Intent):
            if known is None:
                self._entries[key] = Entry(at_ms, said.fingerprint, said, None)
                self._entries.move_to_end(key)
            elif known.intent is not None and said.is_restart_of(known.intent):
                self._entries[key] = Entry(known.at_ms, said.fingerprint, said, None)
        elif known is None or known.outcome_offset is None:
            at_ms = known.at_ms if known is not None else at_ms
            self._entries[key] = Entry(at_ms, said.fingerprint, None, offset)
            self._keep(offset, said.answer)
        while self._entries:
            oldest = next(iter(self._entries.values()))
            if len(self._entries) <= self._settings.idempotency_keys_max and oldest.at_ms + window_ms >= at_ms:
                break
            self._entries.popitem(last=False)

    def _keep(self, offset: int, answer: bytes) -> None:
        self._answers_bytes += len(answer) - len(self._answers.get(offset, b""))
        self._answers[offset] = answer
        while self._answers_bytes > answers_bytes_max:
            self._answers_bytes -= len(self._answers.popitem(last=False)[1])

    async def _read_again(self, offset: int) -> bytes:
        consumer = self._new_consumer()
        where = TopicPartition(self._settings.idempotency_topic, 0)
        try:
            await consumer.start()
            consumer.assign([where])
            consumer.seek(where, offset)
            async with asyncio.timeout(self._settings.kafka_request_timeout_ms / 1000):
                record = await consumer.getone(where)
            said = _DECODER.decode(record.value or b"")
        except Exception as error:
            raise proxy_error(error) from error
        finally:
            await consumer.stop()
        if record.offset != offset or not isinstance(said, Outcome):
            raise BrokerUnavailable("The answer to this Idempotency-Key is no longer there.")
        return said.answer
