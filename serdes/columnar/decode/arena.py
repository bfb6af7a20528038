"""One block of memory for all buffers of a batch, with views as bytes, words and floats.

Buffers start at multiples of 64 bytes, as Arrow recommends. Arrow arrays use slices of the block without a copy. If a
buffer is too small, a larger block replaces the old one. Its size follows the rows decoded so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.errors import BatchTooLarge
from headgate.serdes.columnar.layout import ROWS, Buffer, List, Node, Role, Struct, Text
from headgate.serdes.columnar.memory import ALIGNMENT_BYTES

OFFSET_MAX: Final = 2**31 - 1
"""The maximum of 32-bit offsets, in items or bytes."""

HEADROOM: Final = 1.25
"""The reserve of a buffer above the current rate."""
FIRST_ITEMS_PER_ROW: Final = 2
FIRST_BYTES_PER_ROW: Final = 16
"""Estimates for the first batch. Later batches start with the rates of the previous batch."""


@dataclass(frozen=True, slots=True)
class Room:
    """The capacity of each scope in items, and of each text buffer in bytes."""

    scopes: NDArray[np.int64]
    bytes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rates:
    """The average need of one row. The next batch starts with the rates of this one."""

    scopes: NDArray[np.float64]
    bytes: NDArray[np.float64]

    @staticmethod
    def guess(buffers: Sequence[Buffer], scopes: int) -> "Rates":
        return Rates(np.full(scopes, float(FIRST_ITEMS_PER_ROW)), np.full(len(buffers), float(FIRST_BYTES_PER_ROW)))

    @staticmethod
    def of(used: Room, rows: int) -> "Rates":
        return Rates(used.scopes / max(rows, 1), used.bytes / max(rows, 1))

    def room(self, rows: int, payload_bytes: int, scope_widths: NDArray[np.int64], bytes_max: int) -> Room:
        """The capacity for a number of rows.

        An item or byte needs about one byte of payload, so one huge row has little effect. An estimate above
        `bytes_max` is scaled down, because the batch ends at that size.
        """
        most = min(payload_bytes, OFFSET_MAX - 64)
        items = np.minimum(self.scopes * (rows * HEADROOM), most)
        text = np.minimum(self.bytes * (rows * HEADROOM), most)
        share = min(1.0, bytes_max / max(float(items @ scope_widths + text.sum()), 1.0))
        scopes = (items * share).astype(np.int64) + 64
        scopes[ROWS] = rows
        return Room(scopes, (text * share).astype(np.int64) + 64)


class Arena:
    def __init__(self, buffers: Sequence[Buffer], room: Room) -> None:
        self.room = room
        self._buffers = buffers
        self._starts: list[int] = []
        self._sizes: list[int] = []
        total = 0
        for number, buffer in enumerate(buffers):
            size = self._size(number, buffer)
            self._starts.append(total)
            self._sizes.append(size)
            total += -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.memory = pa.allocate_buffer(total + ALIGNMENT_BYTES)
        places = [start // buffer.unit for start, buffer in zip(self._starts, buffers, strict=True)]
        self.base = np.array(places or [0], np.int64)
        self.u8 = np.frombuffer(self.memory, np.uint8)
        self.i32 = self.u8.view(np.int32)
        self.i64 = self.u8.view(np.int64)
        self.f32 = self.u8.view(np.float32)
        self.f64 = self.u8.view(np.float64)
        for number, buffer in enumerate(buffers):
            if buffer.role is Role.OFFSETS:
                self.i32[self.base[number]] = 0

    def _size(self, number: int, buffer: Buffer) -> int:
        if buffer.role is Role.BYTES:
            return int(self.room.bytes[number])
        items = int(self.room.scopes[buffer.scope]) + (buffer.role is Role.OFFSETS)
        return items * buffer.width

    def offset(self, buffer: int, index: int) -> int:
        """The start of the text or list at `index`. At the end of the column: the length of its data."""
        return int(self.i32[self.base[buffer] + index])

    def slice(self, buffer: int, size: int) -> pa.Buffer:
        return self.memory.slice(self._starts[buffer], size)

    def cells(self, buffer: int, count: int) -> NDArray[np.uint8]:
        start = self._starts[buffer]
        return self.u8[start : start + count]

    def moved(self, room: Room) -> "Arena":
        """A larger arena with the same contents."""
        larger = Arena(self._buffers, room)
        for old, new, size in zip(self._starts, larger._starts, self._sizes, strict=True):
            larger.u8[new : new + size] = self.u8[old : old + size]
        return larger


def measure(arena: Arena, root: Node, rows: int) -> Room:
    """The space that the first `rows` rows used."""
    scopes = np.zeros(len(arena.room.scopes), np.int64)
    sizes = np.zeros(len(arena.room.bytes), np.int64)
    todo: list[tuple[Node, int]] = [(root, rows)]
    while todo:
        node, length = todo.pop()
        if isinstance(node, Text):
            sizes[node.data] = arena.offset(node.offsets, length)
        elif isinstance(node, Struct):
            todo += [(child, length) for child in node.children if child is not None]
        elif isinstance(node, List):
            items = arena.offset(node.offsets, length)
            scopes[node.scope] = items
            todo += [(child, items) for child in (node.items, node.keys) if child is not None]
    return Room(scopes, sizes)


def scope_widths(buffers: Sequence[Buffer], scopes: int) -> NDArray[np.int64]:
    """The bytes of one item of each scope below the rows, without text."""
    widths = np.zeros(scopes, np.int64)
    for buffer in buffers:
        if buffer.role is not Role.BYTES and buffer.scope != ROWS:
            widths[buffer.scope] += buffer.width
    return widths


@dataclass(frozen=True, slots=True)
class Demand:
    """A missing capacity: `number` of the scope or text buffer, and its required size in items or bytes."""

    is_scope: bool
    number: int
    needed: int

    def enlarged(self, room: Room, wanted: Room) -> Room:
        """The capacity for this demand and the estimate `wanted` of all rows. Raises `BatchTooLarge`."""
        if self.needed > OFFSET_MAX:
            raise BatchTooLarge(
                f"a column of this batch would need {self.needed} items or bytes; Arrow's offsets have 32 bits"
            )
        scopes = np.maximum(room.scopes, wanted.scopes)
        sizes = np.maximum(room.bytes, wanted.bytes)
        grown = scopes if self.is_scope else sizes
        grown[self.number] = min(max(int(grown[self.number]), self.needed + self.needed // 4), OFFSET_MAX)
        return Room(scopes, sizes)
