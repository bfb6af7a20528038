"""A walk over a request's bytes before anything is built from them: do its counts fit, and are they bearable?

kio's reader makes room for as many items as an array claims to have. A frame of ten bytes that claims two billion would
end the process, and an honest one of `socket.request.max.bytes` that names thirty million topics would hold everyone
else up for minutes. So each count is held against the bytes that are left and against a bound on all items together.
Everything else about the bytes is kio's to judge.

The walk is over a flat plan per API and version, made once from kio's schema. A run of fields of fixed size is one step
of it, so that a Produce or Fetch of one partition costs about a dozen steps.
"""

import struct
import typing
from dataclasses import fields
from functools import cache
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema
from kio.static.protocol import Entity

from broker.protocol.annotations import shape_of

# Topics, partitions, groups, configs … of one request, all together. Reading, handling and answering one takes some
# microseconds in which nobody else is served. Clients stay far below: Java's tools name every group or every partition
# of a cluster at once, which is tens of thousands.
request_items_max = 200_000

_FIXED, _STRING, _BYTES, _COMPACT, _ARRAY, _COMPACT_ARRAY, _OPTIONAL, _TAGS = range(8)

# A varint of 32 bits has at most five bytes.
_varint_shift_max = 28

_Step: TypeAlias = tuple[int, int, "_Plan"]
"""What to do, a number of bytes (skipped, or the least that an array's item takes), the plan of what is inside."""

_Plan: TypeAlias = tuple[_Step, ...]

_NOTHING: Final[_Plan] = ()
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
_LEAST_BYTES = {_STRING: 2, _BYTES: 4, _COMPACT: 1, _ARRAY: 4, _COMPACT_ARRAY: 1, _OPTIONAL: 1, _TAGS: 1}

_read_int16 = struct.Struct(">h").unpack_from
_read_int32 = struct.Struct(">i").unpack_from


class ImpossibleCount(ValueError):
    """A count that its frame has no bytes for."""


class TooManyItems(ValueError):
    """More items than one request may name."""


def check_counts(api_key: int, version: int, frame: bytes | memoryview, position: int) -> None:
    """Raises ImpossibleCount, TooManyItems, IndexError or struct.error for a body at `position` not worth reading."""
    _walk(_request_plan(api_key, version), frame, position, 0)


def _walk(plan: _Plan, data: bytes | memoryview, position: int, items: int) -> tuple[int, int]:
    """(the position behind what `plan` describes, how many items were met so far)"""
    for kind, size, inside in plan:
        if kind == _FIXED:
            position += size
        elif kind == _COMPACT:
            length = data[position]
            position += 1
            if length > 0x7F:
                length, position = _varint(data, position, length)
            if length:
                position += length - 1
        elif kind == _TAGS:
            count = data[position]
            position += 1
            if count:
                if count > 0x7F:
                    count, position = _varint(data, position, count)
                position = _skip_tags(data, position, count)
                items += count
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
                position, items = _walk(inside, data, position, items)
        else:
            if kind == _ARRAY:
                count = _read_int32(data, position)[0]
                position += 4
            else:
                count = data[position]
                position += 1
                if count > 0x7F:
                    count, position = _varint(data, position, count)
                count -= 1
            if count > 0:
                if count * size > len(data) - position:
                    raise ImpossibleCount(f"an array claims {count} items and {len(data) - position} bytes are left")
                items += count
                if items > request_items_max:
                    raise TooManyItems(f"more than {request_items_max} items in one request")
                if inside:
                    for _ in range(count):
                        position, items = _walk(inside, data, position, items)
                else:
                    position += count * size
    return position, items


def _varint(data: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte says that it goes on."""
    result, shift = first & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > _varint_shift_max:
            raise ImpossibleCount("a number is longer than 32 bits")


def _skip_tags(data: bytes | memoryview, position: int, count: int) -> int:
    """Tagged fields carry their size. None of those that kio knows in a request has an array inside."""
    if 2 * count > len(data) - position:
        raise ImpossibleCount(f"{count} tagged fields and {len(data) - position} bytes are left")
    if count > request_items_max:
        raise TooManyItems(f"more than {request_items_max} items in one request")
    for _ in range(count):
        for is_size in (False, True):
            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = _varint(data, position, number)
            if is_size:
                position += number
    return position


@cache
def _request_plan(api_key: int, version: int) -> _Plan:
    return _plan(load_request_schema(api_key, version))


def _plan(schema: type[Entity]) -> _Plan:
    hints = typing.get_type_hints(schema)
    steps: list[_Step] = []
    for field in fields(schema):
        if "tag" not in field.metadata:
            steps += _steps(hints[field.name], field.metadata.get("kafka_type"), flexible=schema.__flexible__)
    if schema.__flexible__:
        steps.append((_TAGS, 0, _NOTHING))
    return _merged(steps)


def _steps(hint: object, kafka_type: Any, *, flexible: bool) -> _Plan:
    nested, is_array, is_optional = shape_of(hint)
    if nested is not None:
        inner = _plan(nested)
    elif kafka_type in _SIZES:
        inner = ((_FIXED, _SIZES[kafka_type], _NOTHING),)
    elif flexible:
        inner = ((_COMPACT, 0, _NOTHING),)
    else:
        inner = ((_STRING if kafka_type == "string" else _BYTES, 0, _NOTHING),)
    if is_array:
        is_fixed = len(inner) == 1 and inner[0][0] == _FIXED
        kind = _COMPACT_ARRAY if flexible else _ARRAY
        return ((kind, _least_bytes(inner), _NOTHING if is_fixed else inner),)
    if nested is not None and is_optional:
        return ((_OPTIONAL, 0, inner),)
    return inner


def _least_bytes(plan: _Plan) -> int:
    return sum(size if kind == _FIXED else _LEAST_BYTES[kind] for kind, size, _ in plan)


def _merged(steps: list[_Step]) -> _Plan:
    """Neighbours of fixed size as one step."""
    merged: list[_Step] = []
    for kind, size, inside in steps:
        if kind == _FIXED and merged and merged[-1][0] == _FIXED:
            merged[-1] = (_FIXED, merged[-1][1] + size, _NOTHING)
        else:
            merged.append((kind, size, inside))
    return tuple(merged)
