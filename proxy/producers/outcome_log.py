"""What became of requests with an Idempotency-Key: a topic that every worker writes to and reads to its end.

A key has up to two kinds of records in it. An *intent* says under which producer id and sequences the records of the
request go out, before the first of them does; an *outcome* holds the answer. Where two workers wrote an intent for one
key, the first in the log counts, for both. The topic is deleted by age, not compacted: which intent came first must
stay readable. An index of the window is kept in memory, and answers while there is room; others are read again.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from proxy.errors import BrokerUnavailable, TopicNotFound
from proxy.kafka.faults import proxy_error
from proxy.producers.records import OutgoingRecord
from proxy.producers.sender import Sender
from proxy.settings import ProxySettings

# Answers that are given again from memory; beyond it they are read from the topic.
answers_bytes_max: Final = 16 * 1024 * 1024
# As many copies as Kafka's own internal topics have, where there are brokers for them.
replicas_max: Final = 3
# How long a worker waits until it sees its own words in the log.
catch_up_seconds: Final = 10.0


class Intent(msgspec.Struct, frozen=True, tag="intent"):
    """Rows are (partition, first sequence, which records of the request)."""

    fingerprint: bytes
    producer_id: int
    epoch: int
    rows: list[tuple[int, int, list[int]]]


class Outcome(msgspec.Struct, frozen=True, tag="outcome"):
    fingerprint: bytes
    answer: bytes


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
        self._position = 0
        self._moved = asyncio.Event()
        self._opening = asyncio.Lock()
        self._tail: asyncio.Task[None] | None = None

    async def find(self, key: bytes) -> Entry | None:
        """What the log says of a key, as far as it has been read. Raises BrokerUnavailable."""
        await self._opened()
        entry = self._entries.get(key)
        if entry is not None and entry.at_ms + self._settings.idempotency_window_ms < time.time() * 1000:
            return None
        return entry

    async def announce(self, key: bytes, intent: Intent) -> Entry:
        """Write an intent; the entry that counts for the key, which may be another worker's. Raises ProxyError."""
        offset = await self._write(key, intent)
        await self._reach(offset + 1)
        entry = await self.find(key)
        if entry is None:
            raise BrokerUnavailable("The log of idempotent requests was lost while it was read.")
        return entry

    async def conclude(self, key: bytes, outcome: Outcome) -> None:
        """Returns once the answer is safe and this worker knows of it. Raises ProxyError."""
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
        (ticket,) = await self._sender.place(self._settings.idempotency_topic, [record])
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
        make: Any = AIOKafkaConsumer
        return make(
            bootstrap_servers=self._settings.bootstrap_servers,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=self._settings.kafka_request_timeout_ms,
        )

    async def _create(self) -> None:
        """The topic, unless it is there."""
        topic = self._settings.idempotency_topic
        make: Any = AIOKafkaAdminClient
        admin = make(
            bootstrap_servers=self._settings.bootstrap_servers,
            request_timeout_ms=self._settings.kafka_request_timeout_ms,
        )
        try:
            await admin.start()
            if topic not in await admin.list_topics():
                # A segment for a quarter of the window: what has left the window goes soon after.
                configs = {
                    "cleanup.policy": "delete",
                    "retention.ms": str(self._settings.idempotency_window_ms),
                    "segment.ms": str(max(self._settings.idempotency_window_ms // 4, 60_000)),
                }
                brokers = len((await admin.describe_cluster())["brokers"])
                new_topic: Any = NewTopic
                wanted = new_topic(topic, 1, min(brokers, replicas_max), topic_configs=configs)
                for _, code, *_ in (await admin.create_topics([wanted])).topic_errors:
                    if code not in (kafka.NoError.errno, kafka.TopicAlreadyExistsError.errno):
                        raise kafka.for_code(code)(topic)
        except Exception as error:
            raise proxy_error(error) from error
        finally:
            await admin.close()
        try:
            await self._sender.partitions(topic)
        except TopicNotFound:
            raise BrokerUnavailable("The log of idempotent requests could not be made.") from None

    async def _follow(self, consumer: Any, where: TopicPartition) -> None:
        while True:
            batches = await consumer.getmany(where, timeout_ms=1000)
            for records in batches.values():
                for record in records:
                    self._learn(record.key, record.value, record.offset, record.timestamp)
            self._position = max(self._position, await consumer.position(where))
            self._moved.set()

    def _learn(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:
        try:
            said = _DECODER.decode(value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # not ours; nobody else has business here
        if key is None:
            return
        window_ms = self._settings.idempotency_window_ms
        known = self._entries.get(key)
        if known is not None and known.at_ms + window_ms < at_ms:
            known = None
        if isinstance(said, Intent):
            if known is None:
                self._entries[key] = Entry(at_ms, said.fingerprint, said, None)
                self._entries.move_to_end(key)
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
        self._answers[offset] = answer
        self._answers_bytes += len(answer)
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
