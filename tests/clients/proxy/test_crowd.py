"""Load test with 1,000 streaming consumers and 200 producers: no lost or duplicate records, and bounded memory.

Prints the proxy's peak memory.
"""

import asyncio
import json
import re
import resource
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.rounds import rounds

CONSUMERS = 1000
PRODUCERS = 200
RECORDS = rounds(2, 60)
"""Records of each producer."""
# Pause between two records of a producer. 200 producers write 200 records/s, so the proxy sends 200,000 rows/s.
PAUSE_SECONDS = 1.0
DRAIN_SECONDS_MAX = 120.0
# Far above the memory of idle streams plus the buffers of slow ones.
MEMORY_MB_MAX = 1500
FILES = 8192

_ROW = re.compile(rb'^\{"partition_id":(\d+),"offset":(\d+),', re.MULTILINE)


@dataclass
class Seen:
    """The next expected offset of each partition and the number of rows, for one consumer."""

    offsets: dict[bytes, int] = field(default_factory=dict)
    count: int = 0


@pytest.fixture
def crowded_proxy(headgate_broker: HeadgateBroker, tmp_path: Path) -> Iterator[HeadgateProxy]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, FILES), hard), hard))
    proxy = HeadgateProxy(tmp_path, headgate_broker.address)
    proxy.start()
    yield proxy
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_many_consumers_and_producers_lose_and_duplicate_no_record(crowded_proxy: HeadgateProxy) -> None:
    topic = f"crowd-{secrets.token_hex(4)}"
    cluster_id = httpx.get(f"{crowded_proxy.url}/v3/clusters").json()["data"][0]["cluster_id"]
    made = httpx.post(
        f"{crowded_proxy.url}/v3/clusters/{cluster_id}/topics", json={"topic_name": topic, "partitions_count": 2}
    )
    assert made.status_code == 201, made.text
    path = f"/v3/clusters/{cluster_id}/topics/{topic}/records?follow=true&from=earliest"
    written, consumers = asyncio.run(_crowd(crowded_proxy.port, topic, path))
    for seen in consumers:
        assert {int(partition): count for partition, count in seen.offsets.items()} == written
    memory = _memory_mb(crowded_proxy)
    print(
        f"\n{CONSUMERS} consumers and {PRODUCERS} producers: {sum(written.values())} records, "
        f"{sum(seen.count for seen in consumers)} rows, {memory:.0f} MB at most"
    )
    assert memory < MEMORY_MB_MAX


async def _crowd(port: int, topic: str, path: str) -> tuple[dict[int, int], list[Seen]]:
    consumers = [Seen() for _ in range(CONSUMERS)]
    opened = asyncio.Semaphore(100)
    tasks = [asyncio.create_task(_consume(port, path, seen, opened)) for seen in consumers]
    acknowledged = await asyncio.gather(*(_produce(port, topic, number) for number in range(PRODUCERS)))
    written: dict[int, int] = {}
    offsets = [place for places in acknowledged for place in places]
    assert len(set(offsets)) == len(offsets), "two records have the same offset"
    for partition, _ in offsets:
        written[partition] = written.get(partition, 0) + 1
    deadline = asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX
    while any(seen.count < len(offsets) for seen in consumers):
        for task in tasks:
            if task.done():
                task.result()
        assert asyncio.get_running_loop().time() < deadline, min(seen.count for seen in consumers)
        await asyncio.sleep(0.1)
    # Wait long enough for duplicate rows to arrive.
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return written, consumers


async def _consume(port: int, path: str, seen: Seen, opened: asyncio.Semaphore) -> None:
    async with opened:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/x-ndjson\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
    rest = b""
    try:
        while True:
            size = int(await reader.readuntil(b"\r\n"), 16)
            assert size, "the stream ended"
            # An HTTP chunk can end in the middle of a row.
            lines, _, rest = (rest + (await reader.readexactly(size + 2))[:-2]).rpartition(b"\n")
            _take(lines, seen)
    finally:
        writer.close()


def _take(lines: bytes, seen: Seen) -> None:
    rows = _ROW.findall(lines)
    # Blank lines are the heartbeats of an idle stream. All other lines are rows.
    assert len(rows) == sum(map(bool, lines.split(b"\n"))), lines[-1000:]
    for partition, text in rows:
        offset, due = int(text), seen.offsets.get(partition, 0)
        assert offset == due, f"partition {partition}: {offset} came where {due} was due"
        seen.offsets[partition] = due + 1
    seen.count += len(rows)


async def _produce(port: int, topic: str, number: int) -> list[tuple[int, int]]:
    """Produce records. Returns partition and offset of each acknowledged record."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(PAUSE_SECONDS * number / PRODUCERS)
    places: list[tuple[int, int]] = []
    for turn in range(RECORDS):
        body = json.dumps({"records": [{"key": f"{number}-{turn}", "value": {"from": number, "turn": turn}}]}).encode()
        writer.write(
            f"POST /topics/{topic} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/vnd.kafka.json.v2+json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        assert head.startswith(b"HTTP/1.1 200"), answer
        (row,) = answer["offsets"]
        assert row["error_code"] is None, row
        places.append((row["partition"], row["offset"]))
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()
    return places


def _memory_mb(proxy: HeadgateProxy) -> float:
    """Return the peak resident memory of the proxy."""
    assert proxy.process is not None
    for line in Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM")
