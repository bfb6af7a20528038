"""A Python value to one body of Avro: a schema compiled into closures that write strictly.

Follows the Avro 1.12 specification, "Binary encoding", and writes what Java's encoder writes: the shortest varints, one
block for an array or map, no byte sizes. What could not be read back as the same value is refused, with the path to it.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from serdes.avro.binary import write_long
from serdes.avro.decoder import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX
from serdes.avro.defaults import default_value
from serdes.avro.logical import reader_of, writer_of
from serdes.avro.schema import (
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    is_zero_size,
    type_name,
    unqualified,
)
from serdes.errors import EncodeError

UNION_ATTEMPTS_MAX = 10_000
"""Branches tried in vain for one value: records that differ only at their deepest leaf double the work per level."""

_INTEGER_BITS = {"int": 32, "long": 64}
_FLOATING = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


class _Buffer(bytearray):
    """What is written, and how many branches did not fit on the way."""

    attempts = 0


Write: TypeAlias = Callable[[_Buffer, Any, int], None]


class Encoder:
    """Writes values of one schema. Immutable; safe to share between threads.

    A value for a union may name its branch, as a pair `(branch name, value)`; otherwise the first branch that fits is
    taken, for records the one that shares the most fields with the value.
    """

    __slots__ = ("_write",)

    def __init__(self, schema: Schema, *, ignore_unknown_fields: bool = False) -> None:
        self._write = _Compiler(ignore_unknown_fields).compile(schema)

    def encode(self, value: object) -> bytes:
        """The body. Raises `EncodeError`, and nothing else, for any value."""
        out = _Buffer()
        try:
            self._write(out, value, 0)
        except RecursionError:
            raise EncodeError("nested deeper than the caller's stack allows") from None
        return bytes(out)


class _Compiler:
    def __init__(self, ignore_unknown_fields: bool) -> None:
        self._ignore_unknown_fields = ignore_unknown_fields
        self._records: dict[Record, Write] = {}
        self._work: list[Callable[[], None]] = []

    def compile(self, schema: Schema) -> Write:
        write = self._writer(schema)
        while self._work:
            self._work.pop()()
        return write

    def _writer(self, schema: Schema) -> Write:
        if isinstance(schema, Primitive):
            return _converted(_PRIMITIVES[schema.kind](schema.kind), schema.logical, schema.kind)
        if isinstance(schema, Fixed):
            return _converted(_fixed(schema.size), schema.logical, "fixed", schema.size)
        if isinstance(schema, Enum):
            return _enum(schema)
        if isinstance(schema, Array):
            return _array(self._writer(schema.items), is_zero_size(schema.items))
        if isinstance(schema, Map):
            return _map(self._writer(schema.values))
        if isinstance(schema, Union):
            return _union(schema, [self._writer(branch) for branch in schema.branches])
        return self._record(schema)

    def _record(self, schema: Record) -> Write:
        if schema in self._records:
            return self._records[schema]
        steps: list[tuple[str, Write, Callable[[], object] | None]] = []
        names = None if self._ignore_unknown_fields else frozenset(field.name for field in schema.fields)
        write = self._records[schema] = _record(schema.name, steps, names)

        def fill() -> None:
            for field in schema.fields:
                default = _default_maker(field.schema, field.default) if field.has_default else None
                steps.append((field.name, self._writer(field.schema), default))

        self._work.append(fill)
        return write


def _default_maker(schema: Schema, default: object) -> Callable[[], object]:
    def make() -> object:
        try:
            return default_value(schema, default)
        except ValueError as error:
            raise EncodeError(f"no value, and the default is not valid: {error}") from None

    return make


class _WrongKind(EncodeError):
    """The value is of another kind altogether, which says little where a union offers several."""


def _wrong(value: object, wanted: str) -> EncodeError:
    return _WrongKind(f"{value!r:.60} ({type(value).__name__}) is not a {wanted}")


def _closeness(error: EncodeError) -> tuple[int, bool]:
    return len(error.path), not isinstance(error, _WrongKind)


def _null(_: str) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if value is not None:
            raise _wrong(value, "null")

    return write


def _boolean(_: str) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if value is not True and value is not False:
            raise _wrong(value, "boolean")
        out.append(1 if value else 0)

    return write


def _integer(kind: str) -> Write:
    end = 1 << (_INTEGER_BITS[kind] - 1)

    def write(out: _Buffer, value: Any, depth: int) -> None:
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            raise _wrong(value, kind)
        if -64 <= value < 64:
            out.append((value << 1) ^ (value >> 63))
        elif -end <= value < end:
            write_long(out, value)
        else:
            raise EncodeError(f"a number outside {_INTEGER_BITS[kind]} bits")

    return write


def _floating(kind: str) -> Write:
    pack = _FLOATING[kind].pack

    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise _wrong(value, kind)
        try:
            out += pack(value)
        except (OverflowError, struct.error):
            raise EncodeError(f"a number too large for a {kind}") from None

    return write


def _bytes(_: str) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _wrong(value, "bytes")
        view = bytes(value)
        write_long(out, len(view))
        out += view

    return write


def _string(_: str) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, str):
            raise _wrong(value, "string")
        _write_string(out, value)

    return write


def _write_string(out: bytearray, value: str) -> None:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise EncodeError("a lone surrogate, which UTF-8 cannot hold") from None
    write_long(out, len(encoded))
    out += encoded


_PRIMITIVES: dict[str, Callable[[str], Write]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": _string,
}


def _converted(write: Write, logical: Logical | None, kind: str, size: int = 0) -> Write:
    if logical is None:
        return write
    convert, check = writer_of(logical, kind, size), reader_of(logical)

    def converted(out: _Buffer, value: Any, depth: int) -> None:
        start = len(out)
        try:
            raw = convert(value)
        except (ValueError, OverflowError) as error:
            raise EncodeError(str(error)) from None
        write(out, raw, depth)
        if raw is value:
            # The underlying value was given: it must still be one that a reader accepts.
            try:
                check(raw)
            except ValueError as error:
                del out[start:]
                raise EncodeError(str(error)) from None

    return converted


def _fixed(size: int) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)) or len(bytes(value)) != size:
            raise _wrong(value, f"fixed of {size} bytes")
        out += bytes(value)

    return write


def _enum(schema: Enum) -> Write:
    places = {symbol: index for index, symbol in enumerate(schema.symbols)}

    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, str) or value not in places:
            raise _wrong(value, f"symbol of {schema.name}")
        write_long(out, places[value])

    return write


def _enter(depth: int) -> int:
    if depth >= DEPTH_MAX:
        raise EncodeError(f"nested more than {DEPTH_MAX} levels deep")
    return depth + 1


def _array(item: Write, zero_size: bool) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
            raise _wrong(value, "array")
        if zero_size and len(value) > ZERO_SIZE_ITEMS_MAX:
            raise EncodeError(f"more than {ZERO_SIZE_ITEMS_MAX} items of no bytes")
        depth = _enter(depth)
        index = 0
        if value:
            write_long(out, len(value))
            try:
                for index, entry in enumerate(value):  # noqa: B007  # the index is for the error
                    item(out, entry, depth)
            except EncodeError as error:
                error.path.append(f"[{index}]")
                raise
        out.append(0)

    return write


def _map(item: Write) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(value, "map")
        depth = _enter(depth)
        key = None
        if value:
            write_long(out, len(value))
            try:
                for key, entry in value.items():
                    if not isinstance(key, str):
                        raise _wrong(key, "string")
                    _write_string(out, key)
                    item(out, entry, depth)
            except EncodeError as error:
                error.path.append(f"[{key!r:.60}]")
                raise
        out.append(0)

    return write


def _record(
    record: str, steps: list[tuple[str, Write, Callable[[], object] | None]], names: frozenset[str] | None
) -> Write:
    def write(out: _Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(value, f"record {record}")
        depth = _enter(depth)
        name = ""
        try:
            for name, step, default in steps:
                if name in value:
                    step(out, value[name], depth)
                elif default is not None:
                    step(out, default(), depth)
                else:
                    raise EncodeError("no value for this field, which has no default")
        except EncodeError as error:
            error.path.append(f".{name}")
            raise
        if names is not None and not names.issuperset(value):
            unknown = next(key for key in value if key not in names)
            raise EncodeError(f"record {record} has no field {unknown!r:.200}")

    return write


def _preferring(schema: Union, *kinds: str) -> list[int]:
    def is_other(index: int) -> bool:
        branch = schema.branches[index]
        return not (isinstance(branch, Primitive) and branch.kind in kinds)

    return sorted((index for index, branch in enumerate(schema.branches) if not _is_null(branch)), key=is_other)


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"


def _distance(fields: frozenset[str] | None, value: Mapping[Any, Any]) -> tuple[int, int]:
    """Less is nearer: the more fields shared, the fewer left to defaults. What is no record comes last."""
    if fields is None:
        return 1, 0
    shared = len(fields.intersection(value))
    return -shared, len(fields) - shared


def _union(schema: Union, writers: list[Write]) -> Write:
    names: dict[str, int] = {}
    for index, branch in enumerate(schema.branches):
        names[type_name(branch)] = index
    for index, branch in enumerate(schema.branches):
        names.setdefault(unqualified(type_name(branch)), index)
    records = {
        index: frozenset(field.name for field in branch.fields)
        for index, branch in enumerate(schema.branches)
        if isinstance(branch, Record)
    }

    null = names.get("null")
    default_order = [index for index in range(len(writers)) if index != null]
    # A number goes where it keeps its value: an int not into a float, a float not into four bytes, given the choice.
    orders = {int: _preferring(schema, "int", "long"), float: _preferring(schema, "double")}

    def attempt(out: _Buffer, value: Any, depth: int, index: int) -> EncodeError | None:
        start = len(out)
        write_long(out, index)
        try:
            writers[index](out, value, depth)
        except EncodeError as error:
            out.attempts += 1
            if out.attempts > UNION_ATTEMPTS_MAX:
                raise
            del out[start:]
            return error
        return None

    def write(out: _Buffer, value: Any, depth: int) -> None:
        if value is None and null is not None:
            write_long(out, null)
            return
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in names:
            write_long(out, names[value[0]])
            writers[names[value[0]]](out, value[1], depth)
            return
        order = orders.get(type(value), default_order)
        if len(records) > 1 and isinstance(value, Mapping):
            order = sorted(order, key=lambda index: _distance(records.get(index), value))
        deepest: EncodeError | None = None
        for index in order:
            error = attempt(out, value, depth, index)
            if error is None:
                return
            if deepest is None or _closeness(error) > _closeness(deepest):
                deepest = error
        if deepest is not None and (deepest.path or not isinstance(deepest, _WrongKind)):
            raise deepest
        raise _wrong(value, f"value of the union of {', '.join(type_name(branch) for branch in schema.branches)}")

    return write
