"""Bounded decompression."""

import mmap
import struct
import subprocess
import sys
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire import compression
from headgate.wire.compression import DECOMPRESSED_BYTES_MAX, decompress, decompress_into
from headgate.wire.errors import DecompressedTooLarge, DecompressionFailed, InvalidBatch, TargetTooSmall
from headgate.wire.record_batch import HEADER_BYTES
from tests.cases.decompression_bombs import (
    CODECS,
    GZIP,
    LZ4,
    MIB,
    SNAPPY,
    ZSTD,
    compressed,
    one_huge_record,
)
from tests.wire import record_batches

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
NAMES = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
DATA = st.binary(max_size=5_000) | st.integers(0, 200_000).map(bytes)


def xerial(*blocks: bytes) -> bytes:
    packed = [compressed(SNAPPY, block) for block in blocks]
    return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in packed)


@pytest.mark.parametrize("codec", CODECS)
@given(data=DATA)
def test_data_survives_a_round_trip(codec: int, data: bytes) -> None:
    packed = compressed(codec, data)
    for form in (packed, bytearray(packed), memoryview(packed)):
        assert bytes(decompress(codec, form)) == data
    target = bytearray(len(data))
    assert decompress_into(codec, memoryview(packed), memoryview(target)) == len(data)
    assert target == data


@pytest.mark.parametrize("codec", CODECS)
def test_data_of_the_independent_encoder_is_decompressed(codec: int) -> None:
    data = b"abc" * 100_000
    assert bytes(decompress(codec, record_batches.compress(NAMES[codec], data))) == data


def test_uncompressed_data_is_returned_unchanged() -> None:
    view = memoryview(b"abc")
    assert decompress(0, view) is view


@given(blocks=st.lists(st.binary(max_size=300), max_size=6))
def test_blocks_of_the_java_framing_are_joined(blocks: list[bytes]) -> None:
    assert bytes(decompress(SNAPPY, xerial(*blocks))) == b"".join(blocks)


@pytest.mark.parametrize("size", [1, 3, 5, 10])
def test_a_truncated_block_of_the_java_framing_is_rejected(size: int) -> None:
    whole = xerial(b"abc" * 10, b"xyz" * 10)
    with pytest.raises(DecompressionFailed, match="snappy"):
        decompress(SNAPPY, whole[:-size])
    with pytest.raises(DecompressionFailed, match="truncated"):
        decompress(SNAPPY, XERIAL_HEADER + struct.pack(">I", 2**32 - 1) + b"x")
    with pytest.raises(DecompressionFailed, match="truncated"):
        decompress(SNAPPY, XERIAL_HEADER + bytes(3))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_decompressed_or_rejected(codec: int, data: bytes) -> None:
    try:
        found = decompress(codec, data, MIB)
    except InvalidBatch:
        return
    assert len(found) <= MIB


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, ZSTD])
@given(data=st.binary(min_size=1, max_size=300), cut=st.integers(1, 300))
def test_truncated_data_is_never_accepted_as_complete(codec: int, data: bytes, cut: int) -> None:
    packed = compressed(codec, data)
    try:
        found = decompress(codec, packed[: max(0, len(packed) - cut)])
    except DecompressionFailed:
        return
    assert bytes(found) != data


@pytest.mark.parametrize("codec", [-1, 5, 6, 7])
def test_an_unknown_codec_is_rejected(codec: int) -> None:
    with pytest.raises(DecompressionFailed, match=f"codec {codec} does not exist"):
        decompress(codec, b"abc")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 100_000, 3 * MIB])
def test_the_limit_is_exact(codec: int, size: int) -> None:
    packed = compressed(codec, bytes(size))
    assert len(decompress(codec, packed, size)) == size
    with pytest.raises(DecompressedTooLarge, match=f"more than {size - 1} bytes"):
        decompress(codec, packed, size - 1)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_small_target_contains_the_beginning(codec: int) -> None:
    data = bytes(range(256)) * 4_000
    target = bytearray(300_000)
    with pytest.raises(TargetTooSmall) as caught:
        decompress_into(codec, compressed(codec, data), memoryview(target))
    assert 0 < caught.value.written <= len(target)
    assert target[: caught.value.written] == data[: caught.value.written]


def test_a_small_target_contains_the_first_blocks_of_the_java_framing() -> None:
    target = bytearray(25)
    with pytest.raises(TargetTooSmall) as caught:
        decompress_into(SNAPPY, xerial(b"a" * 10, b"b" * 10, b"c" * 10), memoryview(target))
    assert (caught.value.written, caught.value.needed) == (20, 30)
    assert target[:20] == b"a" * 10 + b"b" * 10


@pytest.mark.parametrize("codec", CODECS)
def test_a_decompression_bomb_costs_no_more_memory_than_the_limit(codec: int) -> None:
    mebibytes = 1024 if codec in (GZIP, ZSTD) else 256
    limit = 8 * MIB
    code = f"""
import resource
from headgate.wire.compression import decompress
from headgate.wire.errors import DecompressedTooLarge
from tests.cases.decompression_bombs import one_huge_record
bomb = one_huge_record({codec}, {mebibytes})[{HEADER_BYTES}:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress({codec}, bomb, {limit})
except DecompressedTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 3 * limit // 1024


def test_bombs_beyond_the_default_limit_are_rejected() -> None:
    bomb = one_huge_record(ZSTD, DECOMPRESSED_BYTES_MAX // MIB)[HEADER_BYTES:]
    with pytest.raises(DecompressedTooLarge):
        decompress(ZSTD, bomb)


@pytest.mark.parametrize("limit", [1_000, 2 * MIB], ids=["heap", "mapping"])
def test_a_kept_error_does_not_keep_the_buffer(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[object]] = []

    class Mapping(bytearray):
        def __init__(self, *arguments: int) -> None:
            super().__init__(arguments[-1])
            kept.append(weakref.ref(self))

    monkeypatch.setattr(compression, "bytearray", Mapping, raising=False)
    monkeypatch.setattr(mmap, "mmap", Mapping)
    with pytest.raises(DecompressedTooLarge) as caught:
        decompress(ZSTD, compressed(ZSTD, bytes(3 * MIB)), limit)
    assert caught.value.__traceback__ is not None
    assert kept
    assert [buffer() for buffer in kept] == [None] * len(kept)
