"""Generate millions of damaged payloads: bit flips, truncation, insertions, deletions, wrong lengths, wrong ids.

Each kind of damage works on a matrix of bytes with one payload per row, so that a million payloads take seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

KINDS = 8
FRAME_BYTES = 5
WRONG_LENGTHS = (
    b"\x80\xa8\xd6\xb9\x07",  # a count of a billion
    b"\xfe\xff\xff\xff\x0f",  # a length of 2^31 - 1
    b"\xff\xff\xff\xff\x0f",  # -2^31
    b"\xff\xff\xff\xff\xff",  # a varint that does not end
)
EDGE_BYTES = (0xFF, 0x80, 0x7F, 0x01, 0x02, 0xFE)


@dataclass(frozen=True, slots=True)
class Originals:
    """Good payloads, one per row, with space for an inserted byte."""

    matrix: NDArray[np.uint8]
    lengths: NDArray[np.int64]

    @staticmethod
    def of(payloads: Sequence[bytes]) -> "Originals":
        width = max(map(len, payloads)) + 1
        matrix = np.zeros((len(payloads), width), np.uint8)
        for row, payload in enumerate(payloads):
            matrix[row, : len(payload)] = np.frombuffer(payload, np.uint8)
        return Originals(matrix, np.array([len(payload) for payload in payloads], np.int64))

    def copies(self, chosen: NDArray[np.int64]) -> pa.Array:
        return as_column(self.matrix[chosen], self.lengths[chosen])

    def damaged(self, chosen: NDArray[np.int64], rng: np.random.Generator, other_ids: Sequence[int]) -> pa.Array:
        """Damage each payload, with all kinds in turn. A wrong id is one of `other_ids` or random."""
        rows, lengths = self.matrix[chosen], self.lengths[chosen].copy()
        count, width = rows.shape
        kind = np.arange(count) % KINDS
        place = (rng.random(count) * lengths).astype(np.int64)
        every, columns = np.arange(count), np.arange(width)

        of = every[kind == 0]
        rows[of, place[of]] ^= np.left_shift(1, rng.integers(0, 8, len(of))).astype(np.uint8)
        of = every[kind == 1]
        rows[of, place[of]] = rng.choice(np.array(EDGE_BYTES, np.uint8), len(of))
        of = every[kind == 2]
        after = columns > place[of, None]
        rows[of] = np.take_along_axis(rows[of], columns - after, axis=1)
        rows[of, place[of]] = rng.integers(0, 256, len(of))
        lengths[of] += 1
        of = every[kind == 3]
        after = columns >= place[of, None]
        rows[of] = np.take_along_axis(rows[of], np.minimum(columns + after, width - 1), axis=1)
        lengths[of] -= 1
        of = every[kind == 4]
        run = (columns >= place[of, None]) & (columns < place[of, None] + 9)
        rows[of] = np.where(run, np.uint8(0xFF), rows[of])
        of = every[kind == 5]
        lengths[of] = place[of]
        of = every[kind == 6]
        lies = np.frombuffer(b"".join(WRONG_LENGTHS), np.uint8).reshape(len(WRONG_LENGTHS), -1)[
            rng.integers(0, len(WRONG_LENGTHS), len(of))
        ]
        start = np.minimum(np.maximum(place[of], FRAME_BYTES), width - lies.shape[1])
        rows[of[:, None], start[:, None] + np.arange(lies.shape[1])] = lies
        of = every[kind == 7]
        ids = rng.integers(0, 2**32, len(of), np.uint64)
        known = rng.random(len(of)) < 0.5
        ids[known] = rng.choice(np.array(other_ids, np.uint64), int(known.sum()))
        rows[of, 1:5] = ids.astype(">u4").view(np.uint8).reshape(-1, 4)
        rows[of[::16], 0] = rng.integers(1, 256, len(of[::16]))
        return as_column(rows, lengths)


def as_column(rows: NDArray[np.uint8], lengths: NDArray[np.int64]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    data = rows[np.arange(rows.shape[1]) < lengths[:, None]]
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
