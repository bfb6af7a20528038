"""Reads records from compressed batches, as the proxy does."""

import asyncio
import struct
import threading
from typing import Any

import pytest
from crc32c import crc32c

from headgate.kafka_client.decompression import Decompression
from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.proxy.reading.batches import read_chunk, records
from headgate.proxy.reading.payloads import UnreadableRecord, unreadable_poison
from headgate.serdes import Reason
from headgate.wire import expansion
from headgate.wire.compression import decompress_into
from headgate.wire.expansion import Unreadable, UnreadableReason, expand
from tests.cases.decompression_bombs import GZIP, MIB, ZSTD, many_records, one_huge_record

LIMIT = 128 * MIB
TICKS = 20
WAIT_SECONDS_MAX = 30.0


@pytest.mark.parametrize(
    ("reason", "expected", "setting"),
    [
        (UnreadableReason.CORRUPT, Reason.CORRUPT, ""),
        (UnreadableReason.TOO_LARGE, Reason.INVALID_VALUE, " (fetch.batch.decompressed.bytes.max)"),
        (UnreadableReason.RECORD_TOO_LARGE, Reason.INVALID_VALUE, " (fetch.record.decompressed.bytes.max)"),
        (UnreadableReason.LIMIT_EXCEEDED, Reason.INVALID_VALUE, ""),
    ],
)
def test_unreadable_records_become_poison(reason: UnreadableReason, expected: Reason, setting: str) -> None:
    poison = unreadable_poison(Unreadable(5, 9, 3, reason, "because"))
    assert (poison.reason, poison.schema_id) == (expected, None)
    assert poison.detail == f"because; this concerns offsets 5 to 9{setting}"


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


def test_the_event_loop_runs_while_a_batch_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompression waits for the event loop. On the event loop itself, it would deadlock."""
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
