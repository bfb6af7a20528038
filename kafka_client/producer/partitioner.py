"""Chooses a partition for a record key, as Java's default partitioner does."""

from collections.abc import Callable, Sequence

from aiokafka.partitioner import murmur2


def partition_of(key: bytes, partitions: Sequence[int]) -> int:
    if len(partitions) == 1:
        return partitions[0]
    hash_of: Callable[[bytes], int] = murmur2
    return partitions[(hash_of(key) & 0x7FFFFFFF) % len(partitions)]
