"""Fetch and ListOffsets: requests to the leaders of partitions, and their responses."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from aiokafka import errors as kafka
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from headgate.wire.transactions import AbortedTransaction

EARLIEST: Final = -2
LATEST: Final = -1


class Isolation(IntEnum):
    """`isolation.level` with Kafka's numbers."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class Fetched:
    """The part of a fetch response for one partition. The first batch may begin before the requested offset."""

    batches: bytes | memoryview
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[AbortedTransaction, ...] = ()
    error: Exception | None = None
    is_out_of_range: bool = False
    """The log does not contain the requested offset."""


def fetch_request(
    positions: Mapping[TopicPartition, int], *, bytes_max: int, wait_ms: int, isolation: Isolation
) -> FetchRequest:
    """Return one request for partitions with the same leader."""
    topics: dict[str, list[tuple[int, int, int]]] = {}
    for at, offset in positions.items():
        topics.setdefault(at.topic, []).append((at.partition, offset, bytes_max))
    return FetchRequest(wait_ms, 1, bytes_max, int(isolation), list(topics.items()))


def read_fetch(response: Any) -> Iterator[tuple[TopicPartition, Fetched]]:
    """Yield the partitions of a response. The error of a partition is an exception of aiokafka."""
    version = response.API_VERSION
    for topic, rows in response.topics:
        for partition, code, high_watermark, *rest in rows:
            at = TopicPartition(topic, partition)
            error = kafka.for_code(code)
            if error is not kafka.NoError:
                is_out_of_range = error is kafka.OffsetOutOfRangeError
                yield at, Fetched(b"", high_watermark, -1, -1, (), error(f"{topic}-{partition}"), is_out_of_range)
                continue
            stable = rest[0] if version >= 4 else high_watermark
            start = rest[1] if version >= 5 else -1
            aborted = (rest[2] if version >= 5 else rest[1] if version == 4 else None) or ()
            transactions = tuple(AbortedTransaction(producer_id, first) for producer_id, first in aborted)
            yield at, Fetched(rest[-1] or b"", high_watermark, stable, start, transactions)


async def list_offsets(
    client: Any, times: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, int | None]:
    """Return the offset for EARLIEST, LATEST or a timestamp in milliseconds. None if all records are older.

    Raises aiokafka's errors.
    """
    by_leader: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for at, when in times.items():
        by_leader.setdefault(leaders[at], {}).setdefault(at.topic, []).append((at.partition, when))
    responses = await asyncio.gather(
        *(
            client.send(leader, OffsetRequest(-1, int(isolation), list(topics.items())))
            for leader, topics in by_leader.items()
        )
    )
    found: dict[TopicPartition, int | None] = {}
    for response in responses:
        for topic, rows in response.topics:
            for partition, code, *_, offset in rows:
                error = kafka.for_code(code)
                if error is not kafka.NoError:
                    raise error(f"{topic}-{partition}")
                found[TopicPartition(topic, partition)] = None if offset < 0 else offset
    return found
