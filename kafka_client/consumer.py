"""aiokafka's consumer with bounded decompression.

aiokafka decompresses each batch completely on the event loop. `BoundedConsumer` replaces the batches of each fetch
response before aiokafka's fetcher reads them. `wire.expansion` decompresses them in a thread, up to
`FETCH_EXPANDED_BYTES_MAX`. The rest of the response stays compressed and serves the next fetch. Undeliverable records
arrive as `UnreadableConsumerRecord`.
"""

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.memory_records import MemoryRecords

from headgate.kafka_client.aiokafka_internals import adopt_client, intercept_requests
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.options import ConnectionOptions
from headgate.wire.expansion import Expanded, Unreadable, expand, has_compressed, is_compressed, marker_batch
from headgate.wire.record_batch import split_batches

FETCH_EXPANDED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes to decompress per fetch of one consumer. One process must have memory for thousands of consumers."""
PARTITION_EXPANDED_BYTES_MIN: Final = 1024 * 1024
"""Minimum number of bytes to decompress per partition, so that a batch of usual size is not split."""
UNREADABLE_MAX: Final = 10_000
"""Maximum number of unreadable ranges to store until their records are returned."""
REST_SECONDS_MAX: Final = 60.0
"""How long the rest of a response is kept."""

_Row: TypeAlias = tuple[Any, ...]
"""Partition, error code, high watermark, …, aborted transactions, …, record batches."""


@dataclass
class UnreadableConsumerRecord(ConsumerRecord[bytes, bytes]):
    """Replaces undeliverable records. Key and value are None."""

    unreadable: Unreadable


@dataclass(frozen=True, slots=True)
class _Rest:
    """Batches of a response that have not been decompressed yet."""

    offset: int
    row: _Row
    version: int
    kept_until: float


_Consumer: Any = AIOKafkaConsumer


class BoundedConsumer(_Consumer):  # type: ignore[misc]  # aiokafka has no type hints
    def __init__(self, decompression: Decompression, connection: ConnectionOptions, **options: Any) -> None:
        super().__init__(**connection.client_arguments(), **options)
        adopt_client(self)
        self._decompression = decompression
        self._rests: dict[TopicPartition, _Rest] = {}
        self._unreadable: dict[tuple[str, int, int], Unreadable] = {}
        self._send_unbounded = intercept_requests(self, self._send)

    async def getmany(self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None) -> Any:
        found = await super().getmany(*partitions, timeout_ms=timeout_ms, max_records=max_records)
        if self._unreadable:
            for at, records in found.items():
                found[at] = [self._checked(record) for record in records]
        return found

    async def getone(self, *partitions: TopicPartition) -> Any:
        return self._checked(await super().getone(*partitions))

    def _checked(self, record: Any) -> Any:
        unreadable = self._unreadable.pop((record.topic, record.partition, record.offset), None)
        return record if unreadable is None else UnreadableConsumerRecord(**vars(record), unreadable=unreadable)

    async def _send(self, node_id: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await self._send_unbounded(node_id, request, **options)
        offsets = {TopicPartition(topic, row[0]): row[1] for topic, partitions in request.topics for row in partitions}
        response = self._from_rests(offsets)
        if response is None:
            response = await self._send_unbounded(node_id, request, **options)
        response.topics = await self._bounded(offsets, response)
        return response

    def _from_rests(self, offsets: Mapping[TopicPartition, int]) -> Any:
        """Return a response from the rests of earlier fetches, or None if a request to the broker is necessary."""
        assigned, now = self.assignment(), time.monotonic()
        for at in [at for at, rest in self._rests.items() if at not in assigned or rest.kept_until < now]:
            del self._rests[at]
        topics: dict[str, list[_Row]] = {}
        version = 0
        for at, offset in offsets.items():
            rest = self._rests.pop(at, None)
            if rest is not None and rest.offset == offset:
                topics.setdefault(at.topic, []).append(rest.row)
                version = rest.version
        return SimpleNamespace(API_VERSION=version, topics=list(topics.items())) if topics else None

    async def _bounded(self, offsets: Mapping[TopicPartition, int], response: Any) -> list[tuple[str, list[_Row]]]:
        left = FETCH_EXPANDED_BYTES_MAX
        topics: list[tuple[str, list[_Row]]] = []
        for topic, rows in response.topics:
            bounded: list[_Row] = []
            for row in rows:
                at = TopicPartition(topic, row[0])
                data = bytes(row[-1] or b"")
                if not has_compressed(data):
                    bounded.append(row)
                elif left <= 0:
                    self._keep(at, offsets[at], row, data, response.API_VERSION)
                else:
                    wanted = max(left, PARTITION_EXPANDED_BYTES_MIN)
                    work = partial(_expand, data, offsets[at], wanted, self._decompression)
                    expanded, rest = await self._decompression.run(work)
                    left -= expanded.size
                    made = [part if isinstance(part, bytes) else self._mark(at, part) for part in expanded.parts]
                    bounded.append((*row[:-1], b"".join(made)))
                    if rest and expanded.next_offset is not None:
                        self._keep(at, expanded.next_offset, row, rest, response.API_VERSION)
            if bounded:
                topics.append((topic, bounded))
        return topics

    def _keep(self, at: TopicPartition, offset: int, row: _Row, data: bytes, version: int) -> None:
        has_aborted = version >= 4 and any(isinstance(field, list) and field for field in row[3:-1])
        if not has_aborted:  # Otherwise fetch again: the broker must list the aborted transactions.
            self._rests[at] = _Rest(offset, (*row[:-1], data), version, time.monotonic() + REST_SECONDS_MAX)

    def _mark(self, at: TopicPartition, unreadable: Unreadable) -> bytes:
        while len(self._unreadable) >= UNREADABLE_MAX:
            self._unreadable.pop(next(iter(self._unreadable)))
        self._unreadable[at.topic, at.partition, unreadable.first_offset] = unreadable
        return marker_batch(unreadable)


def _expand(data: bytes, offset: int, bytes_max: int, limits: Decompression) -> tuple[Expanded, bytes]:
    """Return uncompressed batches and the remaining batches. Stops before a batch with a wrong checksum."""
    batches = list(split_batches(data))
    sound = list(itertools.takewhile(_is_sound, batches))
    if not sound:
        return Expanded([data], len(data), None, len(batches)), b""  # aiokafka reports the wrong checksum.
    expanded = expand(
        sound,
        offset,
        bytes_max=bytes_max,
        batch_bytes_max=limits.batch_bytes_max,
        record_bytes_max=limits.record_bytes_max,
    )
    return expanded, b"".join(batches[expanded.consumed :])


def _is_sound(batch: bytes) -> bool:
    parsed: Any = MemoryRecords(batch).next_batch()
    return not is_compressed(batch) or (parsed is not None and parsed.validate_crc())
