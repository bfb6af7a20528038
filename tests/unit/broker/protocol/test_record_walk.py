"""The fast and the slow check of a batch's records agree, and neither accepts an invalid record."""

import random

import pytest

from headgate.broker.protocol import record_walk
from headgate.broker.protocol.record_walk import have_equal_lengths, walk
from headgate.wire.errors import InvalidBatch
from headgate.wire.varint import encode_varint, read_varint
from tests.wire.record_batches import Batch, NewRecord


def records_of(count: int, key: bytes | None, value: bytes | None) -> bytes:
    rows = [NewRecord(value, key=key, timestamp=1_700_000_000_000 + number % 60) for number in range(count)]
    return Batch(records=rows).encode()[61:]


@pytest.mark.parametrize("count", [1, 2, 10, 32, 64])
@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63, b"k" * 64, b"k" * 300])
@pytest.mark.parametrize("value", [b"v", b"v" * 63, b"v" * 64, b"v" * 100, b"v" * 7_000])
def test_records_that_are_alike_are_recognised(count: int, key: bytes | None, value: bytes) -> None:
    data = records_of(count, key, value)
    assert record_walk._are_uniform(data, count)
    record_walk._walk_each(data, count)


@pytest.mark.parametrize("count", [1, 4, 64])
@pytest.mark.parametrize("key", [None, b"", b"k" * 64])
@pytest.mark.parametrize("value", [None, b"", b"v" * 9_000])
def test_values_of_unknown_length_are_walked(count: int, key: bytes | None, value: bytes | None) -> None:
    data = records_of(count, key, value)
    assert not record_walk._are_uniform(data, count)
    walk(data, count)


@pytest.mark.parametrize("key_bytes", [2, 63, 64])
@pytest.mark.parametrize("value_bytes", [2, 100])
def test_batches_are_of_one_kind_whatever_their_keys_and_values(key_bytes: int, value_bytes: int) -> None:
    record_walk._columns.cache_clear()
    for seed in range(20):
        draw = random.Random(seed)
        assert record_walk._are_uniform(records_of(8, draw.randbytes(key_bytes), draw.randbytes(value_bytes)), 8)
    assert record_walk._columns.cache_info().misses == 1


def test_no_change_of_a_byte_passes_where_the_walk_finds_a_fault() -> None:
    """Set every byte of a few batches to every value. The slow path accepts all batches that the fast path accepts."""
    seen = {True: 0, False: 0}
    for count, key, value in [(3, None, b"abc"), (2, b"kk", b""), (4, b"", b"v" * 70), (2, b"k" * 64, None)]:
        data = records_of(count, key, value)
        for position in range(len(data)):
            for byte in range(256):
                changed = data[:position] + bytes((byte,)) + data[position + 1 :]
                short = record_walk._are_uniform(changed, count)
                seen[short] += 1
                if short:
                    record_walk._walk_each(changed, count)
    assert min(seen.values()) > 1_000


@pytest.mark.parametrize("count", [1, 33, 64, 65, 200, 1_024])
@pytest.mark.parametrize("value", [None, b"v", b"v" * 57, b"v" * 58, b"v" * 100, b"v" * 7_000])
def test_lengths_that_are_alike_are_recognised(count: int, value: bytes | None) -> None:
    assert have_equal_lengths(memoryview(records_of(count, b"k", value)), count)


def test_no_change_of_a_byte_passes_where_the_lengths_do_not_fill_the_bytes() -> None:
    seen = {True: 0, False: 0}
    for count, value in [(2, b"abc"), (66, b""), (65, b"v" * 57)]:
        data = records_of(count, None, value)
        for position in range(len(data)):
            for byte in {0, 1, 2, 0x7F, 0x80, 0xFF, data[position] ^ 1, data[position] + 2 & 0xFF}:
                changed = data[:position] + bytes((byte,)) + data[position + 1 :]
                for claimed in (count, count + 1):
                    short = have_equal_lengths(memoryview(changed), claimed)
                    seen[short] += 1
                    assert not short or lengths_fill(changed, claimed)
    assert min(seen.values()) > 1_000


def lengths_fill(data: bytes, count: int) -> bool:
    position = 0
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            return False
        position += length
    return position == len(data)


def test_random_bytes_raise_nothing_but_the_fault() -> None:
    draw = random.Random(7)
    for _ in range(5_000):
        count = draw.randrange(1, 5)
        data = draw.randbytes(count * draw.randrange(0, 12))
        if have_equal_lengths(memoryview(data), count):
            assert lengths_fill(data, count)
        try:
            walk(data, count)
        except InvalidBatch:
            continue
        record_walk._walk_each(data, count)


def test_numbers_in_more_bytes_than_they_need_are_read() -> None:
    plain = records_of(1, None, b"v" * 20)
    length, rest = plain[0], plain[1:]
    wide = bytes((length | 0x80, 0x80, 0x00)) + rest
    walk(wide, 1)
    assert not record_walk._are_uniform(wide, 1)


def test_offsets_out_of_order_are_refused() -> None:
    first, second = (records_of(2, None, b"v")[part] for part in (slice(0, 8), slice(8, None)))
    with pytest.raises(InvalidBatch, match="offset delta"):
        walk(second + first, 2)


def test_a_header_count_beyond_the_record_is_refused() -> None:
    body = b"\x00\x00\x00\x01\x01" + encode_varint(50)
    with pytest.raises(InvalidBatch, match="headers"):
        walk(encode_varint(len(body)) + body, 1)


@pytest.mark.parametrize("count", [1, 5])
def test_a_record_that_ends_before_the_number_of_its_headers_is_invalid(count: int) -> None:
    whole = b"".join(bytes((0x0C, 0, 0, 2 * index, 1, 1, 0)) for index in range(count - 1))
    walk(whole + bytes((0x0C, 0, 0, 2 * (count - 1), 1, 1, 0)), count)
    with pytest.raises(InvalidBatch, match="header count"):
        walk(whole + bytes((0x0C, 0, 0, 2 * (count - 1), 0, 2, 0)), count)
