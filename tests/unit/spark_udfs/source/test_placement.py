"""A key goes where Java's producer puts it."""

import random
from collections.abc import Callable

import pytest
from aiokafka import partitioner
from pyarrow import lib as pa

from headgate.spark_udfs.source.placement import murmur2, partitions_of

reference: Callable[[bytes], int] = partitioner.murmur2

# From the tests of Kafka's own Utils.murmur2.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_the_hash_is_javas() -> None:
    found = murmur2(pa.array(list(JAVA), pa.binary())).astype("int32").tolist()
    assert found == list(JAVA.values())


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_column_is_hashed_as_each_key_by_itself(kind: pa.DataType) -> None:
    draw = random.Random(7)
    keys = [draw.randbytes(draw.choice([0, 1, 2, 3, 4, 5, 7, 8, 31, 200])) for _ in range(500)]
    column = pa.array([b"before", *keys, b"after"], kind).slice(1, len(keys))
    assert murmur2(column).tolist() == [reference(key) for key in keys]
    assert partitions_of(column, 12).tolist() == [(reference(key) & 0x7FFFFFFF) % 12 for key in keys]


def test_no_keys_and_empty_keys_are_fine() -> None:
    assert murmur2(pa.array([], pa.binary())).tolist() == []
    assert murmur2(pa.array([b"", b""], pa.binary())).tolist() == [reference(b"")] * 2
