"""Fast path from Avro's JSON encoding to binary: compiles a schema into closures that return bytes.

`JsonEncoding` and `Encoder` convert a document in two steps and report errors with their path. This encoder needs one
step. It handles only documents that are certainly valid and returns None for all others. The caller then uses the two
steps. Therefore both ways have the same results and the same errors.
"""

import contextlib
import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from headgate.serdes.avro.binary import write_long
from headgate.serdes.avro.json_decoder import FromJson
from headgate.serdes.avro.scalar_encoder import Buffer, converted_writer, fixed_writer, primitive_writer
from headgate.serdes.avro.schema import (
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    is_zero_size,
    type_name,
)
from headgate.serdes.errors import EncodeError

Encode: TypeAlias = Callable[[Any], bytes | bytearray]
"""Encodes a document. Raises one of _DOUBTFUL."""

NESTING_MAX: Final = 32
"""Levels of a schema. Deeper and recursive schemas have no fast path, because they need a check of the depth."""
_SHORT_VARINTS: Final = 1024
"""Numbers with a precomputed varint: lengths of strings, indexes of branches and small integers."""


def _varint(value: int) -> bytes:
    out = bytearray()
    write_long(out, value)
    return bytes(out)


_VARINTS: Final = tuple(_varint(value) for value in range(_SHORT_VARINTS))


class _Unfit(Exception):
    """The document may be invalid, or it needs a conversion."""


class _Unsupported(Exception):
    """The schema has no fast path."""


_DOUBTFUL: Final = (_Unfit, EncodeError, KeyError, TypeError, UnicodeEncodeError, OverflowError, struct.error)


class JsonToBinary:
    """Encodes documents of one schema. Immutable, so that threads can share it."""

    __slots__ = ("_encode",)

    def __init__(self, schema: Schema) -> None:
        self._encode: Encode | None = None
        if isinstance(schema, Record):
            with contextlib.suppress(_Unsupported):
                self._encode, _ = _Compiler().compile(schema)

    def encode(self, document: object) -> bytes | bytearray | None:
        """The body, or None if this document needs the conversion in two steps. Raises nothing."""
        if self._encode is None:
            return None
        try:
            return self._encode(document)
        except _DOUBTFUL:
            return None


class _Compiler:
    def __init__(self) -> None:
        self._records: dict[Record, tuple[Encode, int] | None] = {}
        """Compiled records with their nesting. None while a record is being compiled."""

    def compile(self, schema: Schema, level: int = 0) -> tuple[Encode, int]:
        """The encoder of a schema, and how many levels it nests. Raises _Unsupported."""
        if isinstance(schema, Primitive):
            return (_PRIMITIVES[schema.kind] if schema.logical is None else _converted(schema)), 0
        if isinstance(schema, Fixed):
            return _converted(schema), 0
        if isinstance(schema, Enum):
            return _enum(schema), 0
        if isinstance(schema, Union):
            branches = [(type_name(branch), *self.compile(branch, level)) for branch in schema.branches]
            return _union([(name, encode) for name, encode, _ in branches]), max(nested for _, _, nested in branches)
        if level >= NESTING_MAX:
            raise _Unsupported
        if isinstance(schema, Record):
            return self._record(schema, level)
        if isinstance(schema, Map):
            item, nested = self.compile(schema.values, level + 1)
            return _map(item), _deeper(nested)
        if is_zero_size(schema.items):
            raise _Unsupported  # The number of these items is limited per document.
        item, nested = self.compile(schema.items, level + 1)
        return _array(item), _deeper(nested)

    def _record(self, schema: Record, level: int) -> tuple[Encode, int]:
        if schema in self._records:
            known = self._records[schema]
            if known is None:
                raise _Unsupported  # A recursive schema.
            return known
        self._records[schema] = None
        fields = [(field.name, *self.compile(field.schema, level + 1)) for field in schema.fields]
        nested = max((nested for _, _, nested in fields), default=0)
        made = _record(tuple((name, encode) for name, encode, _ in fields)), _deeper(nested)
        self._records[schema] = made
        return made


def _deeper(nested: int) -> int:
    if nested >= NESTING_MAX:
        raise _Unsupported
    return nested + 1


def _record(steps: tuple[tuple[str, Encode], ...]) -> Encode:
    count = len(steps)

    def encode(document: Any) -> bytes:
        # With as many members as fields, a document that has all fields has no other member.
        if type(document) is not dict or len(document) != count:
            raise _Unfit
        return b"".join([step(document[name]) for name, step in steps])

    return encode


def _union(steps: list[tuple[str, Encode]]) -> Encode:
    null: bytes | None = None
    branches: dict[str, tuple[bytes, Encode]] = {}
    for index, (name, encode_branch) in enumerate(steps):
        if name == "null":
            null = _varint(index)
        else:
            branches[name] = (_varint(index), encode_branch)

    def encode(document: Any) -> bytes:
        if document is None:
            if null is None:
                raise _Unfit
            return null
        if type(document) is not dict or len(document) != 1:
            raise _Unfit
        for name in document:
            prefix, step = branches[name]
            return prefix + step(document[name])
        raise _Unfit

    return encode


def _array(item: Encode) -> Encode:
    def encode(document: Any) -> bytes:
        if type(document) is not list:
            raise _Unfit
        if not document:
            return b"\0"
        return b"%b%b\0" % (_varint(len(document)), b"".join([item(entry) for entry in document]))

    return encode


def _map(item: Encode) -> Encode:
    def encode(document: Any) -> bytes:
        if type(document) is not dict:
            raise _Unfit
        if not document:
            return b"\0"
        parts: list[bytes | bytearray] = [_varint(len(document))]
        for key, entry in document.items():
            parts += (_string(key), item(entry))
        parts.append(b"\0")
        return b"".join(parts)

    return encode


def _enum(schema: Enum) -> Encode:
    return {symbol: _varint(index) for index, symbol in enumerate(schema.symbols)}.__getitem__


def _converted(schema: Primitive | Fixed) -> Encode:
    """Both steps for one scalar: a logical type may change its form."""
    convert = FromJson(tag_unions=True).compile(schema)
    if isinstance(schema, Fixed):
        write = converted_writer(fixed_writer(schema.size), schema.logical, "fixed", schema.size)
    else:
        write = converted_writer(primitive_writer(schema.kind), schema.logical, schema.kind)

    def encode(document: Any) -> bytearray:
        out = Buffer()
        write(out, convert(document, 0), 0)
        return out

    return encode


def _null(document: Any) -> bytes:
    if document is not None:
        raise _Unfit
    return b""


def _boolean(document: Any) -> bytes:
    if document is True:
        return b"\1"
    if document is False:
        return b"\0"
    raise _Unfit


def _integer(bits: int) -> Encode:
    end = 1 << (bits - 1)

    def encode(document: Any) -> bytes:
        if type(document) is not int or not -end <= document < end:
            raise _Unfit
        return _VARINTS[document] if 0 <= document < _SHORT_VARINTS else _varint(document)

    return encode


def _floating(layout: str) -> Encode:
    pack = struct.Struct(layout).pack

    def encode(document: Any) -> bytes:
        if type(document) is not float and type(document) is not int:
            raise _Unfit
        return pack(document)

    return encode


def _string(document: Any) -> bytes:
    if type(document) is not str:
        raise _Unfit
    text = document.encode()
    size = len(text)
    return (_VARINTS[size] if size < _SHORT_VARINTS else _varint(size)) + text


def _bytes(document: Any) -> bytes:
    if type(document) is not str:
        raise _Unfit
    content = document.encode("latin-1")
    return _varint(len(content)) + content


_PRIMITIVES: Final[dict[str, Encode]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "float": _floating("<f"),
    "double": _floating("<d"),
    "bytes": _bytes,
    "string": _string,
}
