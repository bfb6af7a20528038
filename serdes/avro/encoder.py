"""Encodes one Python value to an Avro body: compiles a schema into closures.

Follows the Avro 1.12 specification, "Binary encoding", and writes the same bytes as Java's encoder: shortest varints,
one block per array or map, no byte sizes. A value that could not be decoded to the same value is an error with its
path.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headgate.serdes.avro.binary import write_long
from headgate.serdes.avro.decoder import ZERO_SIZE_ITEMS_MAX
from headgate.serdes.avro.defaults import missing_value
from headgate.serdes.avro.scalar_encoder import (
    Buffer,
    Write,
    converted_writer,
    deeper,
    enum_writer,
    fixed_writer,
    primitive_writer,
    write_string,
    wrong,
)
from headgate.serdes.avro.schema import Array, Enum, Field, Fixed, Map, Primitive, Record, Schema, Union, is_zero_size
from headgate.serdes.avro.union_encoder import union_writer
from headgate.serdes.errors import EncodeError


class Encoder:
    """Encodes values of one schema. Immutable, so that threads can share it.

    A union value may be a pair `(branch name, value)`. Otherwise the first branch that fits is used. For records, it is
    the one that shares the most fields with the value.
    """

    __slots__ = ("_write",)

    def __init__(self, schema: Schema, *, ignore_unknown_fields: bool = False) -> None:
        self._write = _Compiler(ignore_unknown_fields).compile(schema)

    def encode(self, value: object) -> bytes:
        """The body. Raises `EncodeError` and no other error."""
        out = Buffer()
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
            return converted_writer(primitive_writer(schema.kind), schema.logical, schema.kind)
        if isinstance(schema, Fixed):
            return converted_writer(fixed_writer(schema.size), schema.logical, "fixed", schema.size)
        if isinstance(schema, Enum):
            return enum_writer(schema)
        if isinstance(schema, Array):
            return _array(self._writer(schema.items), is_zero_size(schema.items))
        if isinstance(schema, Map):
            return _map(self._writer(schema.values))
        if isinstance(schema, Union):
            return union_writer(schema, [self._writer(branch) for branch in schema.branches])
        return self._record(schema)

    def _record(self, schema: Record) -> Write:
        if schema in self._records:
            return self._records[schema]
        steps: list[tuple[str, Write, Field]] = []
        names = None if self._ignore_unknown_fields else frozenset(field.name for field in schema.fields)
        write = self._records[schema] = _record(schema.name, steps, names)
        self._work.append(lambda: steps.extend((each.name, self._writer(each.schema), each) for each in schema.fields))
        return write


def _array(item: Write, zero_size: bool) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
            raise wrong(value, "array")
        if zero_size:
            out.zero_size_items += len(value)
            if out.zero_size_items > ZERO_SIZE_ITEMS_MAX:
                raise EncodeError(f"more than {ZERO_SIZE_ITEMS_MAX} items of no bytes")
        depth = deeper(depth)
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
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Mapping):
            raise wrong(value, "map")
        depth = deeper(depth)
        key = None
        if value:
            write_long(out, len(value))
            try:
                for key, entry in value.items():
                    if not isinstance(key, str):
                        raise wrong(key, "string")
                    write_string(out, key)
                    item(out, entry, depth)
            except EncodeError as error:
                error.path.append(f"[{key!r:.60}]")
                raise
        out.append(0)

    return write


def _record(record: str, steps: list[tuple[str, Write, Field]], names: frozenset[str] | None) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, Mapping):
            raise wrong(value, f"record {record}")
        depth = deeper(depth)
        name = ""
        try:
            for name, step, field in steps:
                step(out, value[name] if name in value else missing_value(field), depth)
        except EncodeError as error:
            error.path.append(f".{name}")
            raise
        if names is not None and not names.issuperset(value):
            unknown = next(key for key in value if key not in names)
            raise EncodeError(f"record {record} has no field {unknown!r:.200}")

    return write
