"""A walk over a request's bytes before anything is built from them: do its counts fit, and are they bearable?

kio's reader makes room for as many items as an array claims to have. A frame of ten bytes that claims two billion would
end the process, and an honest one of `socket.request.max.bytes` that names thirty million topics would hold everyone
else up for minutes. So each count is held against the bytes that are left and against a bound on all items together.
Tagged fields that are not known here are taken out on the way: they are to be passed over (KIP-482), and kio refuses
them. Everything else about the bytes is kio's to judge.

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

from headgate.wire.entities import shape_of
from headgate.wire.errors import MalformedVarint
from headgate.wire.varint import VARINT_BYTES_MAX, read_unsigned_varint

# Topics, partitions, groups, configs … of one request, all together. Reading, handling and answering one takes some
# ten microseconds in which nobody else is served. Clients stay far below: a consumer of ten thousand partitions names
# twenty thousand items, and whoever wants to know of all topics names none.
request_items_max = 50_000

# Java's tools name every group, or every offset of a group, at once. The handlers of groups have finer bounds.
group_request_items_max = 200_000
_GROUP_APIS = frozenset({8, 9, 10, 11, 13, 14, 15, 16, 42, 47})

_FIXED, _STRING, _BYTES, _COMPACT, _OPTIONAL, _TAGS = range(6)
_ARRAY, _NULLABLE_ARRAY, _COMPACT_ARRAY, _NULLABLE_COMPACT_ARRAY = range(6, 10)

_known_tag_max = 31

_Step: TypeAlias = tuple[int, int, "_Plan"]
"""What to do, a number, the plan of what is inside.

The number is how many bytes to skip, how many an array's item takes at the least, or a bit for each tag that is known.
"""

_Plan: TypeAlias = tuple[_Step, ...]

_Edits: TypeAlias = list[tuple[int, int, bytes]]
"""Stretches to replace: start, end, with what."""

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
_LEAST_BYTES = {
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
    """A count that its frame has no bytes for."""


class TooManyItems(ValueError):
    """More items than one request may name."""


def guarded(api_key: int, version: int, frame: bytes | memoryview) -> bytes | memoryview:
    """The frame from its header on, safe to give to kio; as it is unless it has tagged fields that nobody knows.

    Raises ValueError for one not worth reading.
    """
    edits: _Edits = []
    most = group_request_items_max if api_key in _GROUP_APIS else request_items_max
    try:
        _walk(_request_plan(api_key, version), frame, 0, most, edits)
    except TooManyItems:
        raise TooManyItems(f"more than {most} items in one request") from None
    except (IndexError, struct.error) as error:
        raise ImpossibleCount(f"the frame of {len(frame)} bytes is truncated") from error
    except MalformedVarint as error:
        raise ImpossibleCount(str(error)) from error
    return _edited(frame, edits) if edits else frame


def _walk(plan: _Plan, data: bytes | memoryview, position: int, left: int, edits: _Edits) -> tuple[int, int]:
    """(the position behind what `plan` describes, how many more items there may be)"""
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
                    raise ImpossibleCount(f"an array claims {count} items and {len(data) - position} bytes are left")
                left -= count
                if left < 0:
                    raise TooManyItems
                if inside:
                    for _ in range(count):
                        position, left = _walk(inside, data, position, left, edits)
                else:
                    position += count * size
            elif count < 0 and (count != -1 or kind in (_ARRAY, _COMPACT_ARRAY)):
                # kio would let a null pass wherever it comes.
                raise ImpossibleCount(f"an array of {count} items where that means nothing")
    return position, left


def _walk_tags(data: bytes | memoryview, start: int, known: int, left: int, edits: _Edits) -> tuple[int, int]:
    """The same for tagged fields. They carry their size, and none that kio knows in a request has an array inside."""
    count, position = read_unsigned_varint(data, start, VARINT_BYTES_MAX)
    if 2 * count > len(data) - position:
        raise ImpossibleCount(f"{count} tagged fields and {len(data) - position} bytes are left")
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
            raise ImpossibleCount(
                f"a tagged field claims {size} bytes and {position - len(data)} of them are not there"
            )
        if tag <= last_tag:
            raise ValueError(f"tag {tag} comes after tag {last_tag}")
        if tag <= _known_tag_max and known >> tag & 1:
            kept.append(bytes(data[field_start:position]))
    if len(kept) < count:
        # A message has a handful of tags, so that the count of those kept fits into one byte.
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
    header: list[_Step] = [(_FIXED, 8, _NOTHING), (_STRING, 0, _NOTHING)]
    if schema.__header_schema__.__flexible__:
        # The client id keeps its old encoding even there.
        header.append((_TAGS, 0, _NOTHING))
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
        steps.append((_TAGS, known_tags, _NOTHING))
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
        kind = (_COMPACT_ARRAY if flexible else _ARRAY) + is_optional
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
