"""Decodes Avro's JSON encoding: compiles a schema into closures. `serdes.avro.json_encoding` has the rules."""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.serdes.avro.defaults import missing_value
from headgate.serdes.avro.json_compiler import Convert, JsonCompiler
from headgate.serdes.avro.logical import reader_of
from headgate.serdes.avro.scalar_encoder import deeper, wrong
from headgate.serdes.avro.schema import (
    Enum,
    Field,
    Fixed,
    Logical,
    Primitive,
    Union,
    type_name,
)
from headgate.serdes.errors import EncodeError

_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "INF": math.inf, "-INF": -math.inf}
_BITS: Final = {"int": 32, "long": 64}
_FLOAT: Final = struct.Struct("<f")


class FromJson(JsonCompiler):
    def __init__(self, tag_unions: bool) -> None:
        super().__init__()
        self._tag_unions = tag_unions

    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert:
        if isinstance(schema, Primitive):
            return _logical(schema.logical, _PRIMITIVES[schema.kind](schema.kind))
        if isinstance(schema, Fixed):
            return _logical(schema.logical, _fixed(schema.size))
        return _enum(schema)

    def _union(self, schema: Union, branches: list[Convert]) -> Convert:
        names = [type_name(branch) for branch in schema.branches]
        named = {name: branch for name, branch in zip(names, branches, strict=True) if name != "null"}
        return _union(named, "null" in names, ", ".join(names), self._tag_unions)

    def _fields(self, name: str, steps: list[tuple[Field, Convert]]) -> Convert:
        return _record(name, steps)


def _union(branches: dict[str, Convert], nullable: bool, names: str, tag: bool) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if document is None and nullable:
            return None
        if not isinstance(document, Mapping) or len(document) != 1:
            raise EncodeError(f"{document!r:.60} does not name its branch: expected an object with one key of {names}")
        ((name, inner),) = document.items()
        branch = branches.get(name)
        if branch is None:
            raise EncodeError(f"the union of {names} has no branch {name!r:.200}")
        try:
            value = branch(inner, depth)
        except EncodeError as error:
            error.path.append(f".{name}")
            raise
        return (name, value) if tag else value

    return convert


def _record(name: str, steps: list[tuple[Field, Convert]]) -> Convert:
    def convert(document: Any, depth: int) -> Any:
        if not isinstance(document, Mapping):
            raise wrong(document, f"record {name}")
        depth = deeper(depth)
        out: dict[str, Any] = {}
        for field, step in steps:
            try:
                out[field.name] = step(document[field.name], depth) if field.name in document else missing_value(field)
            except EncodeError as error:
                error.path.append(f".{field.name}")
                raise
        if len(document) > len(out) or not document.keys() <= out.keys():
            unknown = next(key for key in document if key not in out)
            raise EncodeError(f"record {name} has no field {unknown!r:.200}")
        return out

    return convert


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
        raise wrong(document, wanted)
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
            raise wrong(document, f"symbol of {schema.name}")
        return document

    return convert


def _null(_: str) -> Convert:
    def convert(document: Any, depth: int) -> None:
        if document is not None:
            raise wrong(document, "null")

    return convert


def _boolean(_: str) -> Convert:
    def convert(document: Any, depth: int) -> bool:
        if not isinstance(document, bool):
            raise wrong(document, "boolean")
        return document

    return convert


def _integer(kind: str) -> Convert:
    end = 1 << (_BITS[kind] - 1)

    def convert(document: Any, depth: int) -> int:
        # 1.0 is an integer, too: some languages cannot write it without the point.
        if isinstance(document, float) and document.is_integer() and abs(document) <= 1 << 53:
            document = int(document)
        if not isinstance(document, int) or isinstance(document, bool):
            raise wrong(document, kind)
        if not -end <= document < end:
            raise EncodeError(f"a number outside {_BITS[kind]} bits")
        return document

    return convert


def _floating(kind: str) -> Convert:
    def convert(document: Any, depth: int) -> float:
        if isinstance(document, str) and document in _FLOATS:
            return _FLOATS[document]
        if not isinstance(document, (int, float)) or isinstance(document, bool):
            raise wrong(document, kind)
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
            raise wrong(document, "string")
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
