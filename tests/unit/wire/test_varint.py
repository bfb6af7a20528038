"""Variable-length integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.wire.errors import MalformedVarint
from headgate.wire.varint import (
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    encode_unsigned_varint,
    encode_varint,
    read_unsigned_varint,
    read_varint,
)
from tests.wire import record_batches

INT64 = st.integers(-(2**63), 2**63 - 1)
EDGES = [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("value", EDGES)
def test_edges_are_encoded_like_the_independent_encoder(value: int) -> None:
    assert encode_varint(value) == record_batches.varint(value)


@given(value=INT64, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_signed_integers_survive_a_round_trip(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= VARLONG_BYTES_MAX
    for data in (before + encoded + after, bytearray(before + encoded), memoryview(before + encoded + after)):
        assert read_varint(data, len(before)) == (value, len(before) + len(encoded))


@given(value=st.integers(0, 2**32 - 1))
def test_unsigned_integers_survive_a_round_trip(value: int) -> None:
    encoded = encode_unsigned_varint(value)
    assert read_unsigned_varint(encoded, 0, VARINT_BYTES_MAX) == (value, len(encoded))


@given(value=INT64)
def test_every_truncation_is_malformed(value: int) -> None:
    encoded = encode_varint(value)
    for size in range(len(encoded)):
        with pytest.raises(MalformedVarint, match="truncated"):
            read_varint(encoded[:size], 0)


@pytest.mark.parametrize(("bytes_max", "size"), [(VARINT_BYTES_MAX, 5), (VARLONG_BYTES_MAX, 10)])
def test_a_varint_that_does_not_end_in_time_is_malformed(bytes_max: int, size: int) -> None:
    assert read_unsigned_varint(b"\x80" * (size - 1) + b"\x01", 0, bytes_max)[1] == size
    with pytest.raises(MalformedVarint, match=f"longer than {size} bytes"):
        read_unsigned_varint(b"\x80" * size + b"\x01", 0, bytes_max)
    with pytest.raises(MalformedVarint, match=f"longer than {size} bytes"):
        read_unsigned_varint(b"\xff" * 1_000_000, 0, bytes_max)


def test_padding_does_not_change_the_value() -> None:
    assert read_varint(b"\x82\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("data", [b"", bytearray(), memoryview(b"")])
def test_empty_data_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedVarint):
        read_varint(data, 0)
