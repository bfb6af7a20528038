"""Decodes Avro's JSON encoding: compiles a schema into closures. `serdes.avro.json_encoding` has the rules."""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.defaults import default_value
from headgate.serdes.avro.logical import reader_of
from headgate.serdes.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    type_name,
)
from headgate.serdes.errors import EncodeError

Convert: TypeAlias = Callable[[Any, int], Any]

_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf, "-INF": -math.inf}
_BITS: Final = {"int": 32, "long": 64}
_FLOAT: Final = struct.Struct("<f")


class FromJson:
    """Compiles records from a work list, because chains of records can exceed the stack."""

    def __init__(self, tag_unions: bool) -> None:
        self._tag_unions = tag_unions
        self._records: dict[Record, Convert] = {}
        self._work: list[Callable[[], None]] = []

    def compile(self, schema: Schema) -> Convert:
        convert = self._converter(schema)
        while self._work:
            self._work.pop()()
        return convert

    def _converter(self, schema: Schema) -> Convert:
        if isinstance(schema, Primitive):
            return _logical(schema.logical, _PRIMITIVES[schema.kind](schema.kind))
        if isinstance(schema, Fixed):
            return _logical(schema.logical, _fixed(schema.size))
        if isinstance(schema, Enum):
            return _enum(schema)
        if isinstance(schema, Union):
            return self._union(schema)
        if isinstance(schema, Array):
            return _array(self._converter(schema.items))
        if isinstance(schema, Map):
            return _map(self._converter(schema.values))
        return self._record(schema)

    def _record(self, schema: Record) -> Convert:
        if schema in self._records:
            return self._records[schema]
        steps: list[tuple[Field, Convert]] = []
        convert = self._records[schema] = _record(schema.name, steps)
        self._work.append(lambda: steps.extend((field, self._converter(field.schema)) for field in schema.fields))
        return convert

    def _union(self, schema: Union) -> Convert:
        branches: dict[str, tuple[str, Convert]] = {}
        names = [type_name(branch) for branch in schema.branches]
        for name, branch in zip(names, schema.branches, strict=True):
            if name != "null":
                branches[name] = (name, self._converter(branch))
        return _union(branches, "null" in names, ", ".join(names), self._tag_unions)


def _deeper(depth: int) -> int:
    if depth >= DEPTH_MAX:
        raise EncodeError(f"nested more than {DEPTH_MAX} levels deep")
    return depth + 1


def _wrong(document: object, wanted: str) -> EncodeError:
    return EncodeError(f"{document!r:.60} ({type(document).__name__}) is not a {wanted}")


def _union(branches: dict[str, tuple[str, Convert]], nullable: bool, names: str, tag: bool) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if document is None and nullable:
            return None
        if not isinstance(document, Mapping) or len(document) != 1:
            raise EncodeError(f"{document!r:.60} does not name its branch: expected an object with one key of {names}")
        ((name, inner),) = document.items()
        found = branches.get(name)
        if found is None:
            raise EncodeError(f"the union of {names} has no branch {name!r:.200}")
        label, branch = found
        try:
            value = branch(inner, depth)
        except EncodeError as error:
            error.path.append(f".{label}")
            raise
        return (label, value) if tag else value

    return convert


def _array(item: Convert) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if not isinstance(document, list):
            raise _wrong(document, "array")
        depth = _deeper(depth)
        out: list[Any] = []
        try:
            for entry in document:
                out.append(item(entry, depth))  # noqa: PERF401  # its length is the place of a fault
        except EncodeError as error:
            error.path.append(f"[{len(out)}]")
            raise
        return out

    return convert


def _map(item: Convert) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if not isinstance(document, Mapping):
            raise _wrong(document, "map")
        depth = _deeper(depth)
        key = None
        out: dict[str, Any] = {}
        try:
            for key, entry in document.items():
                out[key] = item(entry, depth)
        except EncodeError as error:
            error.path.append(f"[{key!r:.60}]")
            raise
        return out

    return convert


def _record(name: str, steps: list[tuple[Field, Convert]]) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if not isinstance(document, Mapping):
            raise _wrong(document, f"record {name}")
        depth = _deeper(depth)
        out: dict[str, Any] = {}
        for field, step in steps:
            try:
                out[field.name] = step(document[field.name], depth) if field.name in document else _default(field)
            except EncodeError as error:
                error.path.append(f".{field.name}")
                raise
        if len(document) > len(out) or not document.keys() <= out.keys():
            unknown = next(key for key in document if key not in out)
            raise EncodeError(f"record {name} has no field {unknown!r:.200}")
        return out

    return convert


def _default(field: Field) -> object:
    if not field.has_default:
        raise EncodeError("no value for this field, which has no default")
    try:
        return default_value(field.schema, field.default)
    except ValueError as error:
        raise EncodeError(f"no value, and the default is not valid: {error}") from None


def _logical(logical: Logical | None, convert: Convert) -> Convert:
    if logical is None:
        return convert
    read = reader_of(logical)

    def converted(document: Any, depth: int) -> Any:
        try:
            return read(convert(document, depth))
        except EncodeError:
            raise
        except ValueError as error:
            raise EncodeError(str(error)) from None

    return converted


def _latin_bytes(document: Any, wanted: str) -> bytes:
    if not isinstance(document, str):
        raise _wrong(document, wanted)
    try:
        return document.encode("latin-1")
    except UnicodeEncodeError:
        raise EncodeError(f"{document!r:.60} contains a code point above 255") from None


def _fixed(size: int) -> Convert:
    def convert(document: Any, depth: int) -> bytes:
        raw = _latin_bytes(document, "fixed")
        if len(raw) != size:
            raise EncodeError(f"{len(raw)} bytes instead of {size}")
        return raw

    return convert


def _enum(schema: Enum) -> Convert:
    symbols = frozenset(schema.symbols)

    def convert(document: Any, depth: int) -> str:
        if not isinstance(document, str) or document not in symbols:
            raise _wrong(document, f"symbol of {schema.name}")
        return document

    return convert


def _null(_: str) -> Convert:
    def convert(document: Any, depth: int) -> None:
        if document is not None:
            raise _wrong(document, "null")

    return convert


def _boolean(_: str) -> Convert:
    def convert(document: Any, depth: int) -> bool:
        if not isinstance(document, bool):
            raise _wrong(document, "boolean")
        return document

    return convert


def _integer(kind: str) -> Convert:
    end = 1 << (_BITS[kind] - 1)

    def convert(document: Any, depth: int) -> int:
        # 1.0 is an integer, too: some languages cannot write it without the point.
        if isinstance(document, float) and document.is_integer() and abs(document) <= 1 << 53:
            document = int(document)
        if not isinstance(document, int) or isinstance(document, bool):
            raise _wrong(document, kind)
        if not -end <= document < end:
            raise EncodeError(f"a number outside {_BITS[kind]} bits")
        return document

    return convert


def _floating(kind: str) -> Convert:
    def convert(document: Any, depth: int) -> float:
        if isinstance(document, str) and document in _FLOATS:
            return _FLOATS[document]
        if not isinstance(document, (int, float)) or isinstance(document, bool):
            raise _wrong(document, kind)
        try:
            if kind == "float":
                _FLOAT.pack(document)
            return float(document)
        except OverflowError:
            raise EncodeError(f"a number too large for a {kind}") from None

    return convert


def _bytes(_: str) -> Convert:
    return lambda document, depth: _latin_bytes(document, "bytes")


def _string(_: str) -> Convert:
    def convert(document: Any, depth: int) -> str:
        if not isinstance(document, str):
            raise _wrong(document, "string")
        return document

    return convert


_PRIMITIVES: dict[str, Callable[[str], Convert]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": _string,
}
