"""Chooses the partition of each key, as Java's default partitioner does. All producers then agree on the partition.

Computes Kafka's murmur2 for a whole column of keys. The 32-bit hash processes four bytes at a time.
"""

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

SEED = 0x9747B28C
MULTIPLIER = np.uint32(0x5BD1E995)
POSITIVE = 0x7FFFFFFF


def partitions_of(keys: pa.Array, count: int) -> NDArray[np.int64]:
    """Returns the partition of each key. Keys are binary without nulls. The topic has `count` partitions."""
    return (murmur2(keys).astype(np.int64) & POSITIVE) % count


def murmur2(keys: pa.Array) -> NDArray[np.uint32]:
    if not len(keys):
        return np.zeros(0, np.uint32)
    wide = keys.cast(pa.large_binary())
    bounds = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    starts, lengths = bounds[:-1], np.diff(bounds)
    data = np.frombuffer(wide.buffers()[2], np.uint8) if bounds[-1] else np.zeros(0, np.uint8)
    hashes = np.uint32(SEED) ^ lengths.astype(np.uint32)
    # Sort the longest keys first: rows with remaining words are then a prefix.
    order = np.argsort(-lengths, kind="stable")
    words = lengths[order] // 4
    for word in range(int(words[0])):
        rows = order[: int(np.searchsorted(-words, -word, side="left"))]
        hashes[rows] = hashes[rows] * MULTIPLIER ^ _mixed(_word_at(data, starts[rows] + 4 * word))
    tails = lengths % 4
    for extra in (3, 2, 1):
        rows = np.flatnonzero(tails >= extra)
        at = starts[rows] + lengths[rows] - tails[rows] + extra - 1
        hashes[rows] ^= data[at].astype(np.uint32) << np.uint32(8 * (extra - 1))
    hashes[tails > 0] *= MULTIPLIER
    hashes ^= hashes >> np.uint32(13)
    hashes *= MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _word_at(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Reads little-endian 32-bit words."""
    word = np.zeros(len(at), np.uint32)
    for byte in range(4):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def _mixed(word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    word = word * MULTIPLIER
    word ^= word >> np.uint32(24)
    return word * MULTIPLIER
