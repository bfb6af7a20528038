"""Response templates for the hot path: kio encodes a message once, and later responses replace only some numbers.

kio defines the layout. A template finds the position of the numbers with a marker value.
"""

import copy
import dataclasses
import struct
import typing
from collections.abc import Callable, Mapping

from kio.static.protocol import Entity

from headgate.wire.entities import entity_encoder
from headgate.wire.varint import encode_unsigned_varint

_LONGS = (struct.Struct(">q"), struct.Struct(">qq"), struct.Struct(">qqq"))
_MARKER = 0x3A5B7C1D2E4F6071


def item_type(schema: type[Entity], array: str) -> type[Entity]:
    """Return the entity type of the items in an array field of `schema`."""
    item = typing.get_args(typing.get_type_hints(schema)[array])[0]
    assert isinstance(item, type)
    return item


class NumbersTemplate:
    """An entity in which up to three adjacent int64 fields change: `head + numbers + tail`."""

    __slots__ = ("head", "pack", "tail")

    def __init__(self, schema: type[Entity], fields: Mapping[str, object], numbers: tuple[str, ...]) -> None:
        names = [field.name for field in dataclasses.fields(schema)]
        present = [name for name in numbers if name in names]
        first = names.index(present[0])
        assert names[first : first + len(present)] == present, f"{present} are not adjacent in {schema}"
        marked = entity_encoder(schema)({**fields, present[0]: _MARKER})
        position = marked.index(_MARKER.to_bytes(8))
        self.head = marked[:position]
        self.tail = marked[position + 8 * len(present) :]
        self.pack: Callable[..., bytes] = _LONGS[len(present) - 1].pack

    def within(self, before: bytes, after: bytes) -> "NumbersTemplate":
        """Return a copy of the template with constant bytes before and after it."""
        wider = copy.copy(self)
        wider.head, wider.tail = before + self.head, self.tail + after
        return wider


class ArrayTemplate:
    """An entity in which one array changes: `head + length + items + tail`."""

    __slots__ = ("flexible", "head", "tail")

    def __init__(self, schema: type[Entity], fields: Mapping[str, object], array: str, item: object) -> None:
        empty = entity_encoder(schema)({**fields, array: ()})
        single = entity_encoder(schema)({**fields, array: (item,)})
        self.flexible = bool(schema.__flexible__)
        position = next(i for i, (one, other) in enumerate(zip(empty, single, strict=False)) if one != other)
        # The messages differ in the last byte of the array length. It has one byte as a varint, otherwise four.
        self.head = empty[: position if self.flexible else position - 3]
        self.tail = empty[position + 1 :]

    def length(self, count: int) -> bytes:
        return compact_length(count) if self.flexible else count.to_bytes(4)

    def head_of(self, empty: bytes) -> bytes:
        """Return the head of another entity of the same schema. `empty` is this entity, encoded with an empty array."""
        return empty[: len(empty) - len(self.tail) - (1 if self.flexible else 4)]


def compact_length(count: int) -> bytes:
    """Encode the length of a compact array, string or byte string (KIP-482): the count plus one. Zero means null."""
    return encode_unsigned_varint(count + 1)
