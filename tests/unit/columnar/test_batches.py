"""Kafka's record batches into columns: every compression, corrupt batches, markers and aborted records."""

import struct
from typing import Any

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from crc32c import crc32c
from pyarrow import lib as pa

from headgate.serdes.columnar import AbortedTransaction, Engine, Plain, Records, read_batches
from headgate.serdes.columnar.records import decompression
from tests.unit.columnar.checked import Checked
from tests.unit.columnar.generation import zigzag

Header = tuple[str, bytes | None]
Record = tuple[bytes | None, bytes | None, list[Header]]
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TIME = 1_700_000_000_000


def record_bytes(delta: int, record: Record) -> bytes:
    def sized(value: bytes | None) -> bytes:
        return zigzag(-1) if value is None else zigzag(len(value)) + value

    key, value, headers = record
    body = b"\0" + zigzag(delta) + zigzag(delta) + sized(key) + sized(value) + zigzag(len(headers))
    body += b"".join(sized(name.encode("utf-8", "surrogateescape")) + sized(content) for name, content in headers)
    return zigzag(len(body)) + body


def batch_of(
    records: bytes,
    count: int,
    base: int = 0,
    attributes: int = 0,
    producer: int = -1,
    last_delta: int | None = None,
    time: int = TIME,
) -> bytes:
    """A batch with a right checksum around whatever records."""
    last = count - 1 if last_delta is None else last_delta
    checked = (
        struct.pack(">hiqqqhii", attributes, last, time, min(time + last, 2**63 - 1), producer, 0, 0, count) + records
    )
    return struct.pack(">qiibI", base, len(checked) + 9, 0, 2, crc32c(checked)) + checked


def simple(values: list[Any], base: int = 0, **more: Any) -> bytes:
    records = b"".join(record_bytes(delta, (b"k", value, [])) for delta, value in enumerate(values))
    return batch_of(records, len(values), base, **more)


def marker(base: int, producer: int, kind: int) -> bytes:
    key = struct.pack(">hh", 0, kind)
    return batch_of(record_bytes(0, (key, b"\0" * 6, [])), 1, base, attributes=0x30, producer=producer)


def offsets(records: Records) -> list[int]:
    return list(records.columns.column("offset").to_pylist())


@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
@pytest.mark.parametrize("codec", CODECS)
def test_columns_agree_with_aiokafka(codec: str, engine: Engine | None) -> None:
    data = b""
    for base in (0, 40):
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=CODECS[codec], is_transactional=0, producer_id=-1, producer_epoch=-1,
            base_sequence=-1, batch_size=1 << 30,
        )  # fmt: skip
        for number in range(40):
            key = None if number % 3 == 0 else b"key %d" % number
            value = None if number % 5 == 0 else b"value" * number
            headers = [("name", b"x" * number), ("none", None)] if number % 2 else []
            builder.append(number, TIME + number, key, value, headers)
        batch = bytearray(builder.build())
        struct.pack_into(">q", batch, 0, base)
        data += bytes(batch)
    expected: list[Any] = []
    memory = MemoryRecords(data)
    while memory.has_next():
        batch_view = memory.next_batch()
        assert batch_view is not None
        expected += [(one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in batch_view]
    records = read_batches(data, 9, engine=engine)
    records.columns.validate(full=True)
    columns = records.columns.to_pydict()
    times = records.columns.column("timestamp").cast(pa.int64()).to_pylist()
    headers_read = [[(header["key"], header["value"]) for header in one] for one in columns["headers"]]
    ours = list(zip(columns["offset"], times, columns["key"], columns["value"], headers_read, strict=True))
    assert ours == expected
    assert set(columns["partition"]) == {9}
    assert set(columns["timestamp_type"]) == {0}
    assert (records.faults, records.next_offset) == ((), 80)


def test_snappy_with_javas_framing_is_read() -> None:
    plain = b"".join(record_bytes(delta, (None, b"abc" * 50, [])) for delta in range(20))
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (plain[:500], plain[500:])]
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(one)) + one for one in blocks)
    assert offsets(read_batches(batch_of(framed, 20, attributes=2), 0)) == list(range(20))


@pytest.mark.parametrize("keep", [0, 1, 11, 12, 40, 60, 61, 69])
def test_a_truncated_batch_is_left_for_the_next_fetch(keep: int) -> None:
    whole, next_one = simple([b"a", b"b"]), simple([b"c"], base=2)
    records = read_batches(whole + next_one[:keep], 0)
    assert (offsets(records), records.faults, records.next_offset) == ([0, 1], (), 2)


def test_empty_input_has_no_rows() -> None:
    records = read_batches(b"", 0)
    assert (records.columns.num_rows, records.faults, records.next_offset) == (0, (), None)


def test_a_corrupt_batch_is_reported_with_its_offsets_and_the_others_are_read() -> None:
    bad = bytearray(simple([b"xxxxxx", b"y"], base=10))
    bad[-1] ^= 1
    records = read_batches(simple([b"a"], base=9) + bytes(bad) + simple([b"z"], base=12), 0)
    assert offsets(records) == [9, 12]
    assert [(fault.first_offset, fault.last_offset) for fault in records.faults] == [(10, 11)]
    assert "checksum" in records.faults[0].detail
    assert records.next_offset == 13


RECORD = record_bytes(0, (b"key", b"value", [("h", b"x")]))


@pytest.mark.parametrize(
    ("records", "count"),
    [
        (RECORD[:-1], 1),
        (RECORD + b"\0", 1),
        (RECORD, 2),
        (RECORD + RECORD, 1),
        (b"\xff" * 20, 1),
        (zigzag(-1) + RECORD, 1),
        (zigzag(100) + RECORD, 1),
        (RECORD, -1),
        (RECORD, 2**31 - 1),
        (b"", 1),
        (record_bytes(5, (None, None, [])), 1),
        (record_bytes(-1, (None, None, [])), 1),
        (zigzag(8) + b"\0\0\0" + zigzag(-2) + zigzag(-1) + b"\0\0\0", 1),
        (zigzag(7) + b"\0\0\0" + zigzag(-1) + zigzag(-1) + zigzag(-1) + b"\0", 1),
        (zigzag(7) + b"\0\0\0" + zigzag(-1) + zigzag(-1) + zigzag(60) + b"\0", 1),
        (zigzag(8) + b"\0\0\0" + zigzag(-1) + zigzag(-1) + zigzag(1) + zigzag(-1) + zigzag(-1), 1),
    ],
)
@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
def test_records_that_are_not_well_formed_fail_their_batch_and_no_other(
    records: bytes, count: int, engine: Engine | None
) -> None:
    bad = batch_of(records, count, base=1, last_delta=0)
    result = read_batches(simple([b"a"]) + bad + simple([b"b"], base=2), 0, engine=engine)
    result.columns.validate(full=True)
    assert offsets(result) == [0, 2]
    assert [(fault.first_offset, fault.last_offset) for fault in result.faults] == [(1, 1)]


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
def test_invalid_compressed_data_fails_its_batch(codec: int) -> None:
    result = read_batches(batch_of(b"certainly not compressed", 1, attributes=codec) + simple([b"b"], base=1), 0)
    assert offsets(result) == [1]
    assert len(result.faults) == 1


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_rejected(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "BATCH_BYTES_MAX", 1_000_000)
    library = getattr(cramjam, codec)
    compress = library.compress_raw if codec == "snappy" else library.compress
    bomb = bytes(compress(b"\0" * 4_000_000))
    result = read_batches(batch_of(bomb, 1, attributes=CODECS[codec]), 0)
    assert (result.columns.num_rows, len(result.faults)) == (0, 1)


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_an_invalid_length_ends_reading(length: int) -> None:
    bad = bytearray(simple([b"x"], base=1))
    struct.pack_into(">i", bad, 8, length)
    result = read_batches(simple([b"a"]) + bytes(bad) + simple([b"z"], base=2), 0)
    assert offsets(result) == [0]
    assert "reading stops here" in result.faults[0].detail


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_message_formats_are_reported(magic: int) -> None:
    bad = bytearray(simple([b"x"]))
    bad[16] = magic
    assert f"message format {magic}" in read_batches(bytes(bad), 0).faults[0].detail


@pytest.mark.parametrize(("base", "last_delta"), [(-5, 0), (2**63 - 1, 0), (2**63 - 3, 5), (3, -1)])
def test_offsets_out_of_range_fail_their_batch(base: int, last_delta: int) -> None:
    result = read_batches(batch_of(RECORD, 1, base=base, last_delta=last_delta), 0)
    assert result.columns.num_rows == 0
    assert len(result.faults) == 1


@pytest.mark.parametrize(
    ("time", "delta", "is_good"),
    [
        (2**62, 2**62 - 1, True),
        (2**62, 2**62, False),
        (-(2**62), -(2**62) + 1, True),
        (-(2**62), -(2**62), False),
        (0, 2**63 - 1, True),
        (-5, 2**63 - 1, True),
        (5, -(2**63) + 1, True),
    ],
)
@pytest.mark.parametrize("engine", [Plain(), Checked()], ids=["plain", "checked"])
def test_timestamps_of_more_than_64_bits_fail_their_batch(time: int, delta: int, is_good: bool, engine: Engine) -> None:
    body = b"\0" + zigzag(delta) + zigzag(0) + zigzag(-1) + zigzag(-1) + zigzag(0)
    result = read_batches(batch_of(zigzag(len(body)) + body, 1, time=time), 0, engine=engine)
    assert (result.columns.num_rows, len(result.faults)) == ((1, 0) if is_good else (0, 1))
    if is_good and time + delta >= 0:
        assert result.columns.column("timestamp")[0].value == time + delta


def test_records_before_the_fetch_offset_are_skipped() -> None:
    result = read_batches(simple([b"a", b"b", b"c"], base=5), 0, first_offset=6)
    assert result.columns.column("value").to_pylist() == [b"b", b"c"]


def test_log_append_time_comes_from_the_batch_and_a_missing_timestamp_is_null() -> None:
    appended = read_batches(simple([b"a", b"b"], attributes=8), 0).columns
    assert appended.column("timestamp").cast(pa.int64()).to_pylist() == [TIME + 1] * 2
    assert appended.column("timestamp_type").to_pylist() == [1, 1]
    raw = bytearray(simple([b"a"]))
    struct.pack_into(">q", raw, 27, -1)
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    assert read_batches(bytes(raw), 0).columns.column("timestamp").to_pylist() == [None]


def test_control_batches_are_not_records_but_advance_the_offset() -> None:
    result = read_batches(simple([b"a"]) + marker(1, producer=5, kind=1), 0)
    assert (offsets(result), result.next_offset) == ([0], 2)


def test_aborted_transactions_are_skipped_until_their_marker() -> None:
    data = (
        simple([b"t1"], base=0, attributes=0x10, producer=5)
        + simple([b"other"], base=1, attributes=0x10, producer=6)
        + simple([b"plain"], base=2)
        + marker(3, producer=5, kind=0)
        + simple([b"t2"], base=4, attributes=0x10, producer=5)
        + marker(5, producer=5, kind=1)
    )
    result = read_batches(data, 0, aborted=[AbortedTransaction(5, 0)])
    assert result.columns.column("value").to_pylist() == [b"other", b"plain", b"t2"]
    assert offsets(read_batches(data, 0)) == [0, 1, 2, 4]


def test_a_header_name_that_is_not_utf_8_is_replaced() -> None:
    records = record_bytes(0, (None, None, [("a\udcff", b"x")]))
    assert read_batches(batch_of(records, 1), 0).columns.column("headers").to_pylist() == [
        [{"key": "a?", "value": b"x"}]
    ]


def test_more_headers_than_records_are_read() -> None:
    many: list[Header] = [(f"h{number}", b"%d" % number) for number in range(500)]
    records = b"".join(record_bytes(delta, (None, b"v", many if delta == 1 else [])) for delta in range(3))
    headers = read_batches(batch_of(records, 3), 0).columns.column("headers").to_pylist()
    assert [len(one) for one in headers] == [0, 500, 0]
    assert headers[1][499] == {"key": "h499", "value": b"499"}
