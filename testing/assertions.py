"""Assertions about the content of topics. They wait: records may still be on their way."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from headgate.kafka_client.consumer import BoundedConsumer
from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.options import ConnectionOptions, parse_servers
from headgate.kafka_client.security import read_security

_POLL_MS = 100
_REQUEST_TIMEOUT_MS = 30_000


def read_topic_values(
    bootstrap_servers: str, topic: str, *, count: int, timeout_seconds: float = 10.0
) -> list[bytes | None]:
    """The values of a topic from its beginning, in order per partition.

    Returns when there are `count` records, or after the timeout.
    """
    return asyncio.run(_read(bootstrap_servers, topic, count, timeout_seconds))


def assert_topic_contains(
    bootstrap_servers: str, topic: str, values: Iterable[bytes | None], *, timeout_seconds: float = 10.0
) -> None:
    """The topic contains exactly these values, in any order. Duplicates count."""
    expected = Counter(values)
    found = Counter(
        read_topic_values(bootstrap_servers, topic, count=expected.total(), timeout_seconds=timeout_seconds)
    )
    missing, extra = expected - found, found - expected
    if missing or extra:
        raise AssertionError(
            f"topic {topic} has {found.total()} records instead of {expected.total()}: "
            f"missing {_listed(missing)}, not expected {_listed(extra)}"
        )


async def _read(bootstrap_servers: str, topic: str, count: int, timeout_seconds: float) -> list[bytes | None]:
    servers = tuple(str(address) for address in parse_servers(bootstrap_servers))
    connection = ConnectionOptions(servers, read_security({}), "headgate-testing", _REQUEST_TIMEOUT_MS)
    decompression = Decompression()
    consumer: Any = BoundedConsumer(decompression, connection, auto_offset_reset="earliest")
    found: list[bytes | None] = []
    deadline = time.monotonic() + timeout_seconds
    try:
        await consumer.start()
        consumer.subscribe([topic])
        while time.monotonic() < deadline:
            for batch in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                found += [record.value for record in batch]
            if len(found) >= count and await _is_at_end(consumer):
                break
    finally:
        await consumer.stop()
        decompression.close()
    return found


async def _is_at_end(consumer: Any) -> bool:
    partitions = list(consumer.assignment())
    ends = await consumer.end_offsets(partitions)
    for partition in partitions:
        if await consumer.position(partition) < ends[partition]:
            return False
    return bool(partitions)


def _listed(values: Counter[bytes | None]) -> str:
    shown = ", ".join(f"{value!r} x {count}" for value, count in values.most_common(5))
    return f"[{shown}{', ...' if len(values) > 5 else ''}]"
