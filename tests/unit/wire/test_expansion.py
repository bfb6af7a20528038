"""Compressed batches of a fetch response, expanded within limits."""

import struct
import subprocess
import sys
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import expansion
from headgate.wire.expansion import (
    Expanded,
    Unreadable,
    UnreadableReason,
    expand,
    has_compressed,
    is_compressed,
    marker_batch,
    next_offset_of,
)
from headgate.wire.record_batch import HEADER_BYTES, seal, split_batches
from headgate.wire.records import encode_batch, read_records
from tests.cases.decompression_bombs import (
    CODECS,
    GZIP,
    MIB,
    SNAPPY,
    ZSTD,
    batch,
    compressed,
    many_records,
    varint,
)
from tests.wire.record_batches import old_message_set

LIMIT = 128 * MIB


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


def test_a_record_larger_than_the_requested_size_is_returned_whole() -> None:
    made = expand([many_records(ZSTD, *values(3 * MIB, 5))], 0, bytes_max=64 * 1024, batch_bytes_max=LIMIT)
    assert (offsets(made), made.next_offset, made.consumed) == ([0], 1, 0)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wanted", [64 * 1024, 8 * MIB])
def test_a_record_above_the_limit_is_named_and_all_others_are_kept(codec: int, wanted: int) -> None:
    mixed = many_records(codec, *values(1000, 3 * MIB, 10, 2 * MIB), base=10)
    good = many_records(codec, *values(5, 5), base=14)
    found: list[int] = []
    lost: list[Unreadable] = []
    position = 10
    while position < 16:
        made = expand([mixed, good], position, bytes_max=wanted, batch_bytes_max=LIMIT, record_bytes_max=MIB)
        assert made.next_offset is not None
        assert made.next_offset > position
        lost += [part for part in made.parts if isinstance(part, Unreadable)]
        found += offsets(replace(made, parts=[part for part in made.parts if isinstance(part, bytes)]))
        position = made.next_offset
    assert found == [10, 12, 14, 15]
    assert [(part.first_offset, part.last_offset) for part in lost] == [(11, 11), (13, 13)]
    assert {part.reason for part in lost} == {UnreadableReason.RECORD_TOO_LARGE}


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
    assert lost.reason is UnreadableReason.TOO_LARGE
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


def test_a_marker_covers_the_offsets_that_are_lost() -> None:
    parsed: Any = MemoryRecords(marker_batch(Unreadable(5, 9, 3, UnreadableReason.CORRUPT, ""))).next_batch()
    assert parsed.validate_crc()
    assert parsed.next_offset == 10
    assert [(record.offset, record.key, record.value, record.timestamp) for record in parsed] == [(5, None, None, 3)]


@given(
    batches=st.lists(
        st.tuples(st.sampled_from([0, *CODECS]), st.lists(st.binary(max_size=50), min_size=1, max_size=20)), max_size=5
    ),
    bytes_max=st.integers(1, 2_000),
    start=st.integers(0, 20),
)
def test_repeated_calls_return_every_record_once(
    batches: list[tuple[int, list[bytes]]], bytes_max: int, start: int
) -> None:
    data, written = b"", 0
    for codec, values in batches:
        data += many_records(codec, *values, base=written) if codec else many_plain(values, written)
        written += len(values)
    found: list[int] = []
    position = start
    while position < written:
        chosen = [one for one in split_batches(data) if next_offset_of(one) > position]
        # Small buffers, so that batches are split.
        with mock.patch.object(expansion, "EXPANDED_BYTES_MIN", 16):
            made = expand(chosen, position, bytes_max=bytes_max, batch_bytes_max=LIMIT)
        found += [offset for offset in offsets(made) if offset >= position]
        assert made.next_offset is not None
        assert made.next_offset > position
        position = made.next_offset
    assert found == list(range(start, written))


def many_plain(values: list[bytes], base: int) -> bytes:
    return struct.pack(">q", base) + encode_batch([(None, value) for value in values], 0)[8:]


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.data())
def test_a_changed_byte_neither_raises_nor_hangs(codec: int, data: st.DataObject) -> None:
    made = bytearray(many_records(codec, *values(*[40] * 30)))
    position = data.draw(st.integers(HEADER_BYTES - 4, len(made) - 1))
    made[position] = data.draw(st.integers(0, 255))
    with mock.patch.object(expansion, "EXPANDED_BYTES_MIN", 16):
        expanded = expand([seal(made)], 0, bytes_max=200, batch_bytes_max=MIB)
    assert expanded.next_offset is not None
    assert expanded.next_offset > 0
    for part in expanded.parts:
        assert isinstance(part, (bytes, Unreadable))
        if isinstance(part, bytes):
            assert not is_compressed(part)


@pytest.mark.parametrize("length", [-(2**63), -5, -1])
def test_a_negative_record_length_is_corrupt(length: int) -> None:
    records = varint(length) + bytes(100_000)
    made = expand([batch(0, ZSTD, 2, compressed(ZSTD, records))], 0, bytes_max=100, batch_bytes_max=MIB)
    (lost,) = made.parts
    assert isinstance(lost, Unreadable)
    assert (lost.reason, made.next_offset) == (UnreadableReason.CORRUPT, 2)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
def test_a_compressed_message_set_is_returned_within_the_limit(magic: int, codec: int) -> None:
    inner = old_message_set(magic) * 100
    whole = bytearray(old_message_set(magic, compressed(codec, inner)))
    whole[17] = codec
    data = bytes(whole)
    assert is_compressed(data)
    assert has_compressed(old_message_set(magic) + data)
    assert expand([data], 0, bytes_max=MIB, batch_bytes_max=MIB).parts == [data]
    (lost,) = expand([data], 0, bytes_max=MIB, batch_bytes_max=len(inner) - 1).parts
    assert isinstance(lost, Unreadable)
    assert lost.reason is UnreadableReason.LIMIT_EXCEEDED


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("cut", [1, 5, 9, 13])
def test_a_truncated_message_set_is_unreadable(magic: int, cut: int) -> None:
    whole = bytearray(old_message_set(magic, compressed(GZIP, bytes(10))))
    whole[17] = GZIP
    (lost,) = expand([bytes(whole[:-cut])], 0, bytes_max=MIB, batch_bytes_max=MIB).parts
    assert isinstance(lost, Unreadable)


def test_uncompressed_batches_are_returned_as_they_are() -> None:
    plain = many_plain([b"a", b"b"], 0)
    assert not has_compressed(plain * 3)
    assert expand([plain], 1, bytes_max=1, batch_bytes_max=1).parts == [plain]
    assert [record.value for record in read_records(plain)] == [b"a", b"b"]


@given(data=st.binary(max_size=200))
def test_any_bytes_are_looked_at_without_an_error(data: bytes) -> None:
    has_compressed(data)
    for one in split_batches(data):
        if len(one) > 17:
            expand([one], 0, bytes_max=MIB, batch_bytes_max=MIB)
