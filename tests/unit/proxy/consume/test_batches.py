import struct
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from headgate.kafka_client.errors import BrokerError
from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.proxy.reading.batches import parse, records
from headgate.wire.transactions import AbortedTransaction

PRODUCER = 7


def batch(
    base: int,
    *values: bytes,
    headers: list[tuple[str, bytes]] | None = None,
    transactional: bool = False,
    compression: int = 0,
) -> bytes:
    make: Any = DefaultRecordBatchBuilder
    builder = make(2, compression, transactional, PRODUCER if transactional else -1, 0, 0, 1 << 20)
    for index, value in enumerate(values):
        assert builder.append(index, 1_700_000_000_000 + index, b"k", value, headers or []) is not None
    data = bytearray(builder.build())
    data[:8] = struct.pack(">q", base)
    return bytes(data)


def control(base: int, marker: int) -> bytes:
    """Return a batch with one control record: 0 is an abort marker, 1 a commit marker."""
    make: Any = DefaultRecordBatchBuilder
    builder = make(2, 0, True, PRODUCER, 0, 0, 1 << 20)
    builder.append(0, 1_700_000_000_000, struct.pack(">hh", 0, marker), b"\x00" * 6, [])
    data = bytearray(builder.build())
    data[:8] = struct.pack(">q", base)
    data[21:23] = struct.pack(">h", struct.unpack(">h", data[21:23])[0] | 0x20)
    data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
    return bytes(data)


def fetched(data: bytes, *aborted: tuple[int, int]) -> Fetched:
    return Fetched(data, 100, 100, 0, tuple(AbortedTransaction(*each) for each in aborted))


def values(data: bytes, offset: int, isolation: Isolation, *aborted: tuple[int, int]) -> tuple[list[bytes | None], int]:
    chunk = parse(fetched(data, *aborted), offset, isolation)
    return [record.value for record in records(chunk)], chunk.next


def test_consecutive_batches_are_parsed() -> None:
    data = batch(0, b"a", b"b") + batch(2, b"c")
    assert values(data, 0, Isolation.READ_UNCOMMITTED) == ([b"a", b"b", b"c"], 3)


def test_an_incomplete_batch_is_left_for_the_next_fetch() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-3]
    assert values(data, 0, Isolation.READ_UNCOMMITTED) == ([b"a"], 1)


def test_read_committed_omits_records_of_aborted_transactions() -> None:
    data = batch(0, b"no", transactional=True) + control(1, 0) + batch(2, b"yes", transactional=True) + control(3, 1)
    assert values(data, 0, Isolation.READ_COMMITTED, (PRODUCER, 0)) == ([b"yes"], 4)
    assert values(data, 0, Isolation.READ_UNCOMMITTED, (PRODUCER, 0)) == ([b"no", b"yes"], 4)


def test_a_corrupt_batch_is_poison_and_earlier_batches_are_returned() -> None:
    broken = bytearray(batch(1, b"bbbb"))
    broken[-2] ^= 0xFF
    assert values(batch(0, b"a") + bytes(broken), 0, Isolation.READ_UNCOMMITTED) == ([b"a"], 1)
    with pytest.raises(BrokerError, match="checksum"):
        parse(fetched(bytes(broken)), 1, Isolation.READ_UNCOMMITTED)


@pytest.mark.parametrize("compression", [0, 1, 4])
def test_a_record_with_a_header_name_that_is_not_utf8_is_returned(compression: int) -> None:
    plain = batch(5, b"one", b"two", headers=[("QQQ", b"v")])
    bad = bytearray(plain.replace(b"QQQ", b"\xff\xfeQ"))
    bad[17:21] = struct.pack(">I", calc_crc32c(bytes(bad[21:])))
    if compression:
        from aiokafka import codec

        squeeze = {1: codec.gzip_encode, 4: codec.zstd_encode}[compression]
        bad = bad[:61] + squeeze(bytes(bad[61:]))
        bad[21:23] = struct.pack(">h", compression)
        bad[8:12] = struct.pack(">i", len(bad) - 12)
        bad[17:21] = struct.pack(">I", calc_crc32c(bytes(bad[21:])))
    found = list(records(parse(fetched(bytes(bad)), 5, Isolation.READ_UNCOMMITTED)))
    assert [(record.offset, record.value, record.timestamp) for record in found] == [
        (5, b"one", 1_700_000_000_000),
        (6, b"two", 1_700_000_000_001),
    ]
    assert [record.headers for record in found] == [[("\ufffd\ufffdQ", b"v")]] * 2


@pytest.mark.parametrize("magic", [0, 1, 2, 3, 255])
@pytest.mark.parametrize("size", [1, 5, 13, 14, 20, 48, 49])
def test_a_batch_without_a_whole_header_is_corrupt(size: int, magic: int) -> None:
    data = bytearray(struct.pack(">qi", 5, size) + bytes(size))
    data[16:17] = bytes([magic])[: len(data) - 16]
    with pytest.raises(BrokerError, match="offset 5 is corrupt"):
        parse(fetched(bytes(data)), 5, Isolation.READ_UNCOMMITTED)
    chunk = parse(fetched(batch(5, b"good") + bytes(data)), 5, Isolation.READ_UNCOMMITTED)
    assert [record.value for record in records(chunk)] == [b"good"]
