"""One block of memory for all the buffers of a batch, seen as bytes, words and floats at once.

Buffers start at multiples of 64 bytes, as Arrow likes them, and Arrow gets slices of the block without a copy. Where a
buffer turns out too small the block is laid out anew, with room for the rest of the batch at the rate seen so far.
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
"""Items or bytes that 32-bit offsets can count."""

ROW_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of one row in one list or text column. A null in a list takes a byte of payload and a slot in every column below it,
so a payload of a megabyte could ask for gigabytes; such a row is INVALID_VALUE."""

HEADROOM: Final = 1.25
"""How much more than the rate seen so far a buffer gets."""
FIRST_ITEMS_PER_ROW: Final = 2
FIRST_BYTES_PER_ROW: Final = 16
"""Guesses for a first batch; later ones start from what the last one needed."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many items each scope, and how many bytes each text buffer, can take."""

    scopes: NDArray[np.int64]
    bytes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rates:
    """What one row needs on average; of the batch before, to start the next one with."""

    scopes: NDArray[np.float64]
    bytes: NDArray[np.float64]

    @staticmethod
    def guess(buffers: Sequence[Buffer], scopes: int) -> "Rates":
        return Rates(np.full(scopes, float(FIRST_ITEMS_PER_ROW)), np.full(len(buffers), float(FIRST_BYTES_PER_ROW)))

    @staticmethod
    def of(used: Room, rows: int) -> "Rates":
        return Rates(used.scopes / max(rows, 1), used.bytes / max(rows, 1))

    def room(self, rows: int, payload_bytes: int) -> Room:
        """For so many rows. An item or byte of a column mostly takes a byte of payload: one giant row sets no trend."""
        most = min(payload_bytes + 64, OFFSET_MAX)

        def wanted(rates: NDArray[np.float64]) -> NDArray[np.int64]:
            return np.minimum(rates * (rows * HEADROOM) + 64, most).astype(np.int64)

        scopes = wanted(self.scopes)
        scopes[ROWS] = rows
        return Room(scopes, wanted(self.bytes))


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
        """Where the text or list at `index` starts; at the length of the column, how long its data is."""
        return int(self.i32[self.base[buffer] + index])

    def slice(self, buffer: int, size: int) -> pa.Buffer:
        return self.memory.slice(self._starts[buffer], size)

    def cells(self, buffer: int, count: int) -> NDArray[np.uint8]:
        start = self._starts[buffer]
        return self.u8[start : start + count]

    def moved(self, room: Room) -> "Arena":
        """The same contents with more room."""
        larger = Arena(self._buffers, room)
        for old, new, size in zip(self._starts, larger._starts, self._sizes, strict=True):
            larger.u8[new : new + size] = self.u8[old : old + size]
        return larger


def measure(arena: Arena, root: Node, rows: int) -> Room:
    """What the first `rows` rows took."""
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


@dataclass(frozen=True, slots=True)
class Demand:
    """What did not fit: `number` of a scope or of a text buffer, and how many items or bytes it must hold at least."""

    is_scope: bool
    number: int
    needed: int

    def is_excessive(self, buffers: Sequence[Buffer], used: Room) -> bool:
        """Whether one row alone asks for more than a row may have."""
        before = used.scopes[self.number] if self.is_scope else used.bytes[self.number]
        width = sum(buffer.width for buffer in buffers if buffer.scope == self.number) if self.is_scope else 1
        return (self.needed - int(before)) * max(width, 1) > ROW_BYTES_MAX

    def met(self, room: Room, rates: Rates, rows: int, payload_bytes: int) -> Room:
        """Room for this, and for the rest of the batch at these rates. Raises `BatchTooLarge`."""
        if self.needed > OFFSET_MAX:
            raise BatchTooLarge(f"a column of this batch would need {self.needed} items or bytes; offsets end at 2^31")
        wanted = rates.room(rows, payload_bytes)
        scopes = np.maximum(room.scopes, wanted.scopes)
        sizes = np.maximum(room.bytes, wanted.bytes)
        grown = scopes if self.is_scope else sizes
        grown[self.number] = min(max(int(grown[self.number]), self.needed + self.needed // 4), OFFSET_MAX)
        return Room(scopes, sizes)
