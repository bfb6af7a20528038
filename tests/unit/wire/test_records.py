"""Records of a batch, compared with the independent encoder in `tests.wire`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.buffer import Buffer
from headgate.wire.errors import InvalidBatch
from headgate.wire.record_batch import HEADER_BYTES, LOG_APPEND_TIME_FLAG, checksum, read_header
from headgate.wire.records import (
    RECORD_BYTES_MIN,
    encode_batch,
    field_bytes,
    read_record_headers,
    read_records,
    record_fields,
)
from headgate.wire.varint import encode_varint
from tests.wire.record_batches import CODECS, Batch, NewRecord, parse_batches

NOW_MS = 1_700_000_000_000
FIELD = st.none() | st.binary(max_size=100)
HEADERS = st.lists(st.tuples(st.text(max_size=10), FIELD), max_size=4).map(tuple)
RECORDS = st.lists(
    st.builds(NewRecord, FIELD, FIELD, HEADERS, st.integers(NOW_MS - 10**9, NOW_MS + 10**9)), min_size=1, max_size=80
)


def fields_of(batch: bytes) -> list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]]:
    data: Buffer = memoryview(batch)[HEADER_BYTES:]
    return [
        (field_bytes(data, found.key), field_bytes(data, found.value), read_record_headers(data, found.headers))
        for found in record_fields(data, read_header(batch))
    ]


@pytest.mark.parametrize("codec", CODECS)
@given(records=RECORDS, base_offset=st.integers(0, 2**62))
def test_records_of_the_independent_encoder_are_read(codec: str, records: list[NewRecord], base_offset: int) -> None:
    batch = Batch(records=records, codec=codec, base_offset=base_offset).encode()
    found = list(read_records(batch))
    assert [(record.key, record.value, record.timestamp) for record in found] == [
        (record.key, record.value, record.timestamp) for record in records
    ]
    assert [record.offset for record in found] == list(range(base_offset, base_offset + len(records)))


@given(records=RECORDS)
def test_headers_are_read_with_null_values_and_repeated_names(records: list[NewRecord]) -> None:
    assert [headers for _, _, headers in fields_of(Batch(records=records).encode())] == [
        [(name.encode(), value) for name, value in record.headers] for record in records
    ]


@given(entries=st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=80))
def test_an_encoded_batch_is_read_by_the_independent_decoder(entries: list[tuple[bytes | None, bytes | None]]) -> None:
    batch = encode_batch(entries, NOW_MS)
    header = read_header(batch)
    assert (header.size_bytes, header.crc, header.records_count) == (len(batch), checksum(batch), len(entries))
    assert [(record.key, record.value) for record in read_records(batch)] == entries
    (parsed,) = parse_batches(batch)
    assert len(parsed["records"]) == len(entries)


def test_log_append_time_replaces_the_timestamps() -> None:
    batch = Batch(attributes=LOG_APPEND_TIME_FLAG, max_timestamp=5).encode()
    assert [record.timestamp for record in read_records(batch)] == [5]


@given(records=RECORDS, data=st.data())
def test_truncated_records_are_invalid(records: list[NewRecord], data: st.DataObject) -> None:
    body = Batch(records=records).encode()[HEADER_BYTES:]
    size = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(InvalidBatch):
        list(read_records(Batch(records=records, body=body[:size]).encode()))


@given(body=st.binary(max_size=200), count=st.integers(-(2**31), 2**31 - 1), codec=st.integers(0, 7))
def test_any_bytes_are_records_or_invalid(body: bytes, count: int, codec: int) -> None:
    batch = Batch(records=[], body=body, count=count, last_offset_delta=2**31 - 1, attributes=codec).encode()
    try:
        found = list(read_records(batch))
    except InvalidBatch:
        return
    assert len(found) == max(count, 0)
    assert sum(len(record.key or b"") + len(record.value or b"") for record in found) <= len(body) or codec


@given(records=RECORDS, position=st.integers(0, 2**16), byte=st.integers(0, 255))
def test_a_changed_byte_never_reads_beyond_the_batch(records: list[NewRecord], position: int, byte: int) -> None:
    body = bytearray(Batch(records=records).encode()[HEADER_BYTES:])
    body[position % len(body)] = byte
    batch = Batch(records=records, body=bytes(body)).encode()
    try:
        found = fields_of(batch)
    except InvalidBatch:
        return
    assert sum(len(key or b"") + len(value or b"") for key, value, _ in found) < len(body)


@pytest.mark.parametrize("count", [-(2**31), -1, 0])
def test_a_count_that_is_not_positive_means_no_records(count: int) -> None:
    assert list(read_records(Batch(count=count).encode())) == []


@pytest.mark.parametrize("count", [2, 3, 2**31 - 1])
def test_a_count_beyond_the_bytes_is_invalid(count: int) -> None:
    with pytest.raises(InvalidBatch, match="truncated"):
        list(read_records(Batch(count=count, last_offset_delta=count - 1).encode()))


@pytest.mark.parametrize("length", [-(2**63), -1, 0, RECORD_BYTES_MIN - 2, 2**31, 2**63 - 1])
def test_a_record_length_out_of_range_is_invalid(length: int) -> None:
    body = encode_varint(length) + bytes((0, 0, 0, 1, 1, 0))
    with pytest.raises(InvalidBatch, match="record 0 claims"):
        list(read_records(Batch(body=body).encode()))


@pytest.mark.parametrize("length", [7, 2**31, 2**63 - 1])
@pytest.mark.parametrize("before", [b"", b"\x01"], ids=["key", "value"])
def test_a_field_length_beyond_its_record_is_invalid(length: int, before: bytes) -> None:
    inside = bytes((0, 0, 0)) + before + encode_varint(length) + bytes(6)
    with pytest.raises(InvalidBatch, match="a field claims"):
        list(read_records(Batch(body=encode_varint(len(inside)) + inside).encode()))


@pytest.mark.parametrize("count", [-(2**63), -1, 1, 2**31, 2**63 - 1])
def test_a_header_count_beyond_its_record_is_invalid(count: int) -> None:
    inside = bytes((0, 0, 0, 1, 1)) + encode_varint(count)
    with pytest.raises(InvalidBatch, match="headers"):
        fields_of(Batch(body=encode_varint(len(inside)) + inside).encode())


@pytest.mark.parametrize(("delta", "is_valid"), [(-1, False), (0, True), (4, True), (5, False), (2**40, False)])
def test_an_offset_delta_is_within_the_batch(delta: int, is_valid: bool) -> None:
    inside = bytes((0, 0)) + encode_varint(delta) + bytes((1, 1, 0))
    batch = Batch(body=encode_varint(len(inside)) + inside, last_offset_delta=4, count=1).encode()
    if is_valid:
        assert [record.offset for record in read_records(batch)] == [delta]
    else:
        with pytest.raises(InvalidBatch, match="offset delta"):
            list(read_records(batch))


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1), (0, 2**64)])
def test_a_timestamp_beyond_64_bits_is_invalid(base: int, delta: int) -> None:
    inside = bytes((0,)) + encode_varint(delta) + bytes((0, 1, 1, 0))
    batch = Batch(body=encode_varint(len(inside)) + inside, base_timestamp=base, max_timestamp=0, count=1).encode()
    with pytest.raises(InvalidBatch, match="timestamp"):
        list(read_records(batch))
