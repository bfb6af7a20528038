import asyncio
import struct
import subprocess
import sys
import threading
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords
from crc32c import crc32c

from headgate.kafka_client.decompression import Decompression
from headgate.proxy.reading.batches import read_chunk, records
from headgate.proxy.reading.cluster import Fetched, Isolation
from headgate.proxy.reading.payloads import UnreadableRecord, unreadable_poison
from headgate.serdes import Reason
from headgate.wire import expansion
from headgate.wire.compression import decompress_into
from headgate.wire.expansion import Expanded, Unreadable, UnreadableReason, expand, marker_batch
from tests.cases.decompression_bombs import CODECS, GZIP, MIB, ZSTD, batch, many_records, one_huge_record

LIMIT = 128 * MIB
TICKS = 20
WAIT_SECONDS_MAX = 30.0


def offsets(expanded: Expanded) -> list[int]:
    found: list[int] = []
    for part in expanded.parts:
        assert isinstance(part, bytes)
        parsed: Any = MemoryRecords(part).next_batch()
        assert parsed.validate_crc()
        found += [record.offset for record in parsed]
    return found


def values(*sizes: int) -> list[bytes]:
    return [bytes([index % 251]) * size for index, size in enumerate(sizes)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_usual_size_comes_whole(codec: int) -> None:
    made = expand([many_records(codec, *values(*[100] * 50), base=7)], 7, bytes_max=MIB, batch_bytes_max=LIMIT)
    assert (offsets(made), made.next_offset, made.consumed) == (list(range(7, 57)), 57, 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_fits_is_not_cut_however_well_it_is_compressed(
    codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(expansion, "_split")
    data = many_records(codec, *values(*[10_000] * 100), base=3)
    made = expand([data], 50, bytes_max=2 * MIB, batch_bytes_max=LIMIT)
    assert (offsets(made), made.next_offset, made.consumed) == (list(range(3, 103)), 103, 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_batch_is_read_in_pieces_without_gaps(codec: int) -> None:
    data = many_records(codec, *values(*[10_000] * 100), base=100)
    position, found, calls = 100, [], 0
    while position < 200:
        made = expand([data], position, bytes_max=64 * 1024, batch_bytes_max=LIMIT)
        assert made.size <= 64 * 1024 + 100
        found += offsets(made)
        assert made.next_offset is not None
        position = made.next_offset
        calls += 1
    assert found == list(range(100, 200))
    assert calls > 10


def test_a_record_that_is_larger_than_what_is_wanted_comes_whole() -> None:
    made = expand([many_records(ZSTD, *values(3 * MIB, 5))], 0, bytes_max=64 * 1024, batch_bytes_max=LIMIT)
    assert (offsets(made), made.next_offset, made.consumed) == ([0], 1, 0)


@pytest.mark.parametrize("codec", CODECS)
def test_records_beyond_the_limit_are_named_and_the_others_are_kept(codec: int) -> None:
    bomb = many_records(codec, *values(1000, 3 * MIB, 10), base=10)
    good = many_records(codec, *values(5, 5), base=13)
    first = expand([bomb, good], 10, bytes_max=64 * 1024, batch_bytes_max=MIB)
    if codec != 2:  # a raw snappy block cannot be decompressed in part
        assert (offsets(first), first.next_offset) == ([10], 11)
        first = expand([bomb, good], 11, bytes_max=64 * 1024, batch_bytes_max=MIB)
    lost = first.parts[0]
    assert isinstance(lost, Unreadable)
    assert (lost.first_offset, lost.last_offset) == (10 if codec == 2 else 11, 12)
    poison = unreadable_poison(lost)
    assert poison.reason is Reason.INVALID_VALUE
    assert "fetch.batch.decompressed.bytes.max" in poison.detail
    assert isinstance(first.parts[1], bytes)
    assert first.next_offset == 15


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_of_a_gibibyte_costs_no_memory(codec: int) -> None:
    mebibytes = 1024 if codec in (GZIP, ZSTD) else 256
    code = f"""
import resource
from headgate.wire.expansion import expand
from tests.cases.decompression_bombs import one_huge_record
bomb = one_huge_record({codec}, {mebibytes})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = expand([bomb], 0, bytes_max=65536, batch_bytes_max={LIMIT})
print(made.next_offset, made.parts[0].reason.name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    next_offset, reason, grown_kib = done.stdout.split()
    assert (next_offset, reason) == ("1", "TOO_LARGE")
    assert int(grown_kib) < 32 * 1024


@pytest.mark.parametrize(
    ("payload", "count", "codec"),
    [
        (b"not gzip", 1, GZIP),
        (b"", 1, ZSTD),
        (b"anything", 1, 6),
        (b"", 2**31 - 1, GZIP),
        (b"", -1, GZIP),
    ],
)
def test_a_batch_that_cannot_be_decompressed_is_named(payload: bytes, count: int, codec: int) -> None:
    made = expand([batch(5, codec, count, payload, 3)], 6, bytes_max=MIB, batch_bytes_max=LIMIT)
    (lost,) = made.parts
    assert isinstance(lost, Unreadable)
    assert (lost.first_offset, lost.last_offset, made.next_offset) == (6, 8, 9)


def test_malformed_records_become_poison_after_the_good_ones() -> None:
    plain = bytearray(many_records(ZSTD, b"good", b"x" * 100))
    whole = expand([bytes(plain)], 0, bytes_max=MIB, batch_bytes_max=LIMIT).parts[0]
    assert isinstance(whole, bytes)
    broken = bytearray(whole)
    broken[broken.index(b"x" * 100) - 1] = 0x7E  # the length of the second value
    struct.pack_into(">I", broken, 17, crc32c(bytes(broken[21:])))
    found = list(records(_chunk(bytes(broken))))
    assert [(record.offset, record.value) for record in found] == [(0, b"good"), (1, None)]
    assert isinstance(found[1], UnreadableRecord)
    assert unreadable_poison(found[1].unreadable).reason is Reason.CORRUPT


def _chunk(data: bytes) -> Any:
    fetched = Fetched(data, 100, 100, 0, ())

    async def read() -> Any:
        decompression = Decompression()
        try:
            return await read_chunk(decompression, fetched, 0, Isolation.READ_UNCOMMITTED)
        finally:
            decompression.close()

    return asyncio.run(read())


def test_a_marker_covers_the_offsets_that_are_lost() -> None:
    parsed: Any = MemoryRecords(marker_batch(Unreadable(5, 9, 3, UnreadableReason.CORRUPT, ""))).next_batch()
    assert parsed.validate_crc()
    assert parsed.next_offset == 10
    assert [(record.offset, record.key, record.value, record.timestamp) for record in parsed] == [(5, None, None, 3)]


def test_the_event_loop_runs_while_a_batch_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompression waits for the loop here: on the loop itself it would wait for ever."""
    loop_has_run = threading.Event()
    has_waited: list[bool] = []

    def waiting(codec: int, data: memoryview, target: memoryview) -> int:
        has_waited.append(loop_has_run.wait(WAIT_SECONDS_MAX))
        return decompress_into(codec, data, target)

    monkeypatch.setattr(expansion, "decompress_into", waiting)

    async def run() -> None:
        decompression = Decompression()
        fetched = Fetched(one_huge_record(GZIP, 1024), 1, 1, 0, ())
        reading = asyncio.create_task(read_chunk(decompression, fetched, 0, Isolation.READ_UNCOMMITTED))
        for _ in range(TICKS):
            await asyncio.sleep(0)
        assert not reading.done()
        loop_has_run.set()
        chunk = await reading
        decompression.close()
        assert chunk.next == 1
        assert isinstance(chunk.batches[0], Unreadable)

    asyncio.run(run())
    assert has_waited
    assert all(has_waited)
