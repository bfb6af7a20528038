"""Record batch headers."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.record_batch import (
    ATTRIBUTES_AT,
    BOUNDS,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER,
    PRODUCER_AT,
    RECORDS_COUNT_AT,
    BatchHeader,
    checksum,
    read_header,
    seal,
    split_batches,
    write_checksum,
)
from tests.wire.record_batches import Batch, NewRecord, parse_batches

INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
HEADERS = st.builds(
    BatchHeader,
    base_offset=INT64,
    batch_length=INT32,
    leader_epoch=INT32,
    magic=st.integers(-128, 127),
    crc=st.integers(0, 2**32 - 1),
    attributes=INT16,
    last_offset_delta=INT32,
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    records_count=INT32,
)
VALUES = st.lists(st.binary(max_size=20), min_size=1, max_size=5)


@given(header=HEADERS, before=st.binary(max_size=9))
def test_a_header_survives_a_round_trip_at_any_position(header: BatchHeader, before: bytes) -> None:
    packed = HEADER.pack(*header)
    assert len(packed) == HEADER_BYTES == 61
    for data in (before + packed, bytearray(before + packed), memoryview(before + packed)):
        assert read_header(data, len(before)) == header


@given(header=HEADERS)
def test_the_positions_are_those_of_the_fields(header: BatchHeader) -> None:
    packed = HEADER.pack(*header)
    assert BOUNDS.unpack_from(packed) == (header.base_offset, header.batch_length, header.last_offset_delta)
    assert PRODUCER.unpack_from(packed, PRODUCER_AT) == header[9:12]
    for layout, position, value in [
        (">b", MAGIC_AT, header.magic),
        (">I", CRC_AT, header.crc),
        (">h", ATTRIBUTES_AT, header.attributes),
        (">q", MAX_TIMESTAMP_AT, header.max_timestamp),
        (">i", RECORDS_COUNT_AT, header.records_count),
    ]:
        assert struct.unpack_from(layout, packed, position) == (value,)


def test_properties_follow_from_the_fields() -> None:
    header = read_header(
        Batch(
            records=[NewRecord(b"v")] * 3, codec="zstd", base_offset=7, producer_id=5, base_sequence=2**31 - 1
        ).encode()
    )
    assert (header.codec, header.last_offset, header.last_sequence, header.is_transactional) == (4, 9, 1, False)
    assert read_header(Batch(attributes=0x10).encode()).is_transactional


@given(values=VALUES)
def test_size_and_checksum_are_those_of_the_independent_encoder(values: list[bytes]) -> None:
    batch = Batch(records=[NewRecord(value) for value in values]).encode()
    header = read_header(batch)
    assert (header.size_bytes, checksum(batch)) == (len(batch), header.crc)


@given(values=VALUES, garbage=st.integers(0, 2**32 - 1))
def test_seal_writes_length_and_checksum(values: list[bytes], garbage: int) -> None:
    batch = Batch(records=[NewRecord(value) for value in values]).encode()
    open_batch = bytearray(batch)
    struct.pack_into(">I", open_batch, 8, garbage)
    struct.pack_into(">I", open_batch, CRC_AT, garbage)
    assert seal(open_batch) == batch


def test_write_checksum_covers_a_changed_producer() -> None:
    batch = bytearray(Batch().encode())
    PRODUCER.pack_into(batch, PRODUCER_AT, 7, 1, 42)
    write_checksum(batch)
    (parsed,) = parse_batches(bytes(batch))
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 42)
    assert checksum(batch) == header.crc != read_header(Batch().encode()).crc
    assert parsed["producer_id"] == 7


@given(batches=st.lists(VALUES, max_size=4), cut=st.integers(0, 200))
def test_only_complete_batches_are_split_off(batches: list[list[bytes]], cut: int) -> None:
    encoded = [Batch(records=[NewRecord(value) for value in values]).encode() for values in batches]
    whole = b"".join(encoded)
    assert list(split_batches(whole)) == encoded
    data = whole[: max(0, len(whole) - cut)]
    found = list(split_batches(data))
    assert found == encoded[: len(found)]
    rest = len(data) - sum(map(len, found))
    assert len(found) == len(encoded) or rest < len(encoded[len(found)])


@given(data=st.binary(max_size=300))
def test_splitting_any_bytes_ends_and_loses_no_byte_in_between(data: bytes) -> None:
    found = list(split_batches(data))
    assert data.startswith(b"".join(found))
    assert all(len(batch) > LOG_OVERHEAD_BYTES for batch in found)


def test_a_length_that_is_not_positive_ends_the_splitting() -> None:
    good = Batch().encode()
    for length in (0, -1, -12, -(2**31)):
        assert list(split_batches(good + struct.pack(">qi", 1, length) + good)) == [good]
