"""Checks the array counts of a request before kio parses it.

kio allocates memory for the number of items that an array claims. A frame of ten bytes that claims two billion items
would crash the process. A valid frame of `socket.request.max.bytes` with thirty million topics would block the event
loop for minutes. Therefore the guard compares each count with the remaining bytes, and limits the number of all items.
It also removes unknown tagged fields: Kafka ignores them (KIP-482), but kio rejects them. kio checks all other fields.

The guard follows a flat plan per API and version. The plan is built once from kio's schema. Adjacent fields of fixed
size form one step. A Produce or Fetch request for one partition takes about a dozen steps.
"""

import struct
import typing
from dataclasses import fields
from functools import cache
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema
from kio.static.protocol import Entity

from headgate.wire.entities import shape_of
from headgate.wire.errors import MalformedVarint
from headgate.wire.varint import VARINT_BYTES_MAX, read_unsigned_varint

REQUEST_ITEMS_MAX: Final = 100_000
"""Limit on the items of all arrays in one request: topics, partitions, groups, configs.

One item takes about 10 µs on the event loop. Real clients stay below the limit: a consumer of ten thousand partitions
sends twenty thousand items. Kafka's tools send all groups, or all offsets of a group, in one request.
"""

_FIXED, _STRING, _BYTES, _COMPACT, _OPTIONAL, _TAGS = range(6)
_ARRAY, _NULLABLE_ARRAY, _COMPACT_ARRAY, _NULLABLE_COMPACT_ARRAY = range(6, 10)

_Step: TypeAlias = tuple[int, int, "_Plan"]
"""The kind of the field, a number, and the plan of the nested fields.

The number is one of: bytes to skip, minimum size of an array item, bit mask of the known tags.
"""

_Plan: TypeAlias = tuple[_Step, ...]

_Edits: TypeAlias = list[tuple[int, int, bytes]]
"""Byte ranges to replace: start, end, replacement."""

_EMPTY: Final[_Plan] = ()
_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
}
_BYTES_MIN = {
    _STRING: 2,
    _BYTES: 4,
    _COMPACT: 1,
    _OPTIONAL: 1,
    _TAGS: 1,
    _ARRAY: 4,
    _NULLABLE_ARRAY: 4,
    _COMPACT_ARRAY: 1,
    _NULLABLE_COMPACT_ARRAY: 1,
}

_read_int16 = struct.Struct(">h").unpack_from
_read_int32 = struct.Struct(">i").unpack_from


class ImpossibleCount(ValueError):
    """The frame is too short for a count, or a count is malformed."""


class TooManyItems(ValueError):
    """The request contains more items than the limit."""


def guarded(api_key: int, version: int, frame: bytes | memoryview) -> bytes | memoryview:
    """Return the frame, including its header, without unknown tagged fields. kio can parse it safely.

    Raises ImpossibleCount, TooManyItems, ValueError.
    """
    edits: _Edits = []
    try:
        _walk(_request_plan(api_key, version), frame, 0, REQUEST_ITEMS_MAX, edits)
    except TooManyItems:
        raise TooManyItems(f"more than {REQUEST_ITEMS_MAX} items in one request") from None
    except (IndexError, struct.error) as error:
        raise ImpossibleCount(f"the frame of {len(frame)} bytes is truncated") from error
    except MalformedVarint as error:
        raise ImpossibleCount(str(error)) from error
    return _edited(frame, edits) if edits else frame


def _walk(plan: _Plan, data: bytes | memoryview, position: int, left: int, edits: _Edits) -> tuple[int, int]:
    """Return the position after the fields of `plan`, and the number of items that are still allowed."""
    for kind, size, inside in plan:
        if kind == _FIXED:
            position += size
        elif kind == _COMPACT:
            length = data[position]
            if length > 0x7F:
                length, position = read_unsigned_varint(data, position, VARINT_BYTES_MAX)
            else:
                position += 1
            if length:
                position += length - 1
        elif kind == _TAGS:
            if data[position] == 0:
                position += 1
            else:
                position, left = _walk_tags(data, position, size, left, edits)
        elif kind == _STRING:
            length = _read_int16(data, position)[0]
            position += 2 + length if length > 0 else 2
        elif kind == _BYTES:
            length = _read_int32(data, position)[0]
            position += 4 + length if length > 0 else 4
        elif kind == _OPTIONAL:
            is_null = data[position] > 0x7F
            position += 1
            if not is_null:
                position, left = _walk(inside, data, position, left, edits)
        else:
            if kind < _COMPACT_ARRAY:
                count = _read_int32(data, position)[0]
                position += 4
            else:
                count, position = read_unsigned_varint(data, position, VARINT_BYTES_MAX)
                count -= 1
            if count > 0:
                if count * size > len(data) - position:
                    raise ImpossibleCount(f"an array claims {count} items; {len(data) - position} bytes are left")
                left -= count
                if left < 0:
                    raise TooManyItems
                if inside:
                    for _ in range(count):
                        position, left = _walk(inside, data, position, left, edits)
                else:
                    position += count * size
            elif count < 0 and (count != -1 or kind in (_ARRAY, _COMPACT_ARRAY)):
                # Reject null here, because kio accepts null for every array.
                raise ImpossibleCount(f"an array has the invalid length {count}")
    return position, left


def _walk_tags(data: bytes | memoryview, start: int, known: int, left: int, edits: _Edits) -> tuple[int, int]:
    """Same as `_walk` for tagged fields. No tagged field of a request contains an array."""
    count, position = read_unsigned_varint(data, start, VARINT_BYTES_MAX)
    if 2 * count > len(data) - position:
        raise ImpossibleCount(f"{count} tagged fields; {len(data) - position} bytes are left")
    left -= count
    if left < 0:
        raise TooManyItems
    kept: list[bytes] = []
    tag = -1
    for _ in range(count):
        field_start, last_tag = position, tag
        tag, position = read_unsigned_varint(data, position, VARINT_BYTES_MAX)
        size, position = read_unsigned_varint(data, position, VARINT_BYTES_MAX)
        position += size
        if position > len(data):
            raise ImpossibleCount(f"a tagged field claims {size} bytes; {position - len(data)} of them are missing")
        if tag <= last_tag:
            raise ValueError(f"tag {tag} comes after tag {last_tag}")
        if tag < known.bit_length() and known >> tag & 1:
            kept.append(bytes(data[field_start:position]))
    if len(kept) < count:
        # A message has few known tags, so their count fits into one byte.
        edits.append((start, position, b"".join((len(kept).to_bytes(), *kept))))
    return position, left


def _edited(frame: bytes | memoryview, edits: _Edits) -> bytes:
    pieces, done = [], 0
    for start, end, replacement in edits:
        pieces += [frame[done:start], replacement]
        done = end
    return b"".join((*pieces, frame[done:]))


@cache
def _request_plan(api_key: int, version: int) -> _Plan:
    schema = load_request_schema(api_key, version)
    header: list[_Step] = [(_FIXED, 8, _EMPTY), (_STRING, 0, _EMPTY)]
    if schema.__header_schema__.__flexible__:
        # The client id is never compact, not even in a flexible header.
        header.append((_TAGS, 0, _EMPTY))
    return _merged([*header, *_plan(schema)])


def _plan(schema: type[Entity]) -> _Plan:
    hints = typing.get_type_hints(schema)
    steps: list[_Step] = []
    known_tags = 0
    for field in fields(schema):
        tag = field.metadata.get("tag")
        if tag is None:
            steps += _steps(hints[field.name], field.metadata.get("kafka_type"), flexible=schema.__flexible__)
        else:
            known_tags |= 1 << tag
    if schema.__flexible__:
        steps.append((_TAGS, known_tags, _EMPTY))
    return _merged(steps)


def _steps(hint: object, kafka_type: Any, *, flexible: bool) -> _Plan:
    nested, is_array, is_optional = shape_of(hint)
    if nested is not None:
        inner = _plan(nested)
    elif kafka_type in _SIZES:
        inner = ((_FIXED, _SIZES[kafka_type], _EMPTY),)
    elif flexible:
        inner = ((_COMPACT, 0, _EMPTY),)
    else:
        inner = ((_STRING if kafka_type == "string" else _BYTES, 0, _EMPTY),)
    if is_array:
        is_fixed = len(inner) == 1 and inner[0][0] == _FIXED
        kind = (_COMPACT_ARRAY if flexible else _ARRAY) + is_optional
        return ((kind, _bytes_min(inner), _EMPTY if is_fixed else inner),)
    if nested is not None and is_optional:
        return ((_OPTIONAL, 0, inner),)
    return inner


def _bytes_min(plan: _Plan) -> int:
    return sum(size if kind == _FIXED else _BYTES_MIN[kind] for kind, size, _ in plan)


def _merged(steps: list[_Step]) -> _Plan:
    """Merge adjacent fields of fixed size into one step."""
    merged: list[_Step] = []
    for kind, size, inside in steps:
        if kind == _FIXED and merged and merged[-1][0] == _FIXED:
            merged[-1] = (_FIXED, merged[-1][1] + size, _EMPTY)
        else:
            merged.append((kind, size, inside))
    return tuple(merged)
