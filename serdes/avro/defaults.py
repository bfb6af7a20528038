"""Converts the JSON default of a field to a value.

Follows the Avro 1.12 specification, "Complex Types / Records". Bytes and fixed are strings of code points 0 to 255. The
default of a union is a value of its first branch. Later editions allow any branch, so the other branches are tried
next.
"""

import struct
from typing import Final

from headgate.serdes.avro.logical import reader_of
from headgate.serdes.avro.schema import Array, Enum, Field, Fixed, Logical, Map, Primitive, Record, Schema, Union
from headgate.serdes.errors import EncodeError

DEFAULT_DEPTH_MAX: Final = 100
"""Nested levels of a default. A record whose default omits a field of the same record type would never end."""

DEFAULT_VALUES_MAX: Final = 10_000
"""Values in one default. Records that default to pairs of each other double with each level."""

_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}


class _Endless(ValueError):
    """A separate error, so that a union does not try its next branch."""


def default_value(schema: Schema, json_value: object) -> object:
    """A new value on each call. Raises `ValueError` if the default does not match its schema."""
    return _Defaults().value(schema, json_value, 0)


def missing_value(field: Field) -> object:
    """The default of a field without a value. Raises EncodeError."""
    if not field.has_default:
        raise EncodeError("no value for this field, which has no default")
    try:
        return default_value(field.schema, field.default)
    except ValueError as error:
        raise EncodeError(f"no value, and the default is not valid: {error}") from None


def default_branch(union: Union, json_value: object) -> int:
    """The branch of a valid default."""
    for index, branch in enumerate(union.branches):
        try:
            default_value(branch, json_value)
        except ValueError:
            continue
        return index
    raise AssertionError("resolution rejects a default that matches no branch")


class _Defaults:
    def __init__(self) -> None:
        self._values = 0

    def value(self, schema: Schema, json_value: object, depth: int) -> object:
        self._values += 1
        if depth > DEFAULT_DEPTH_MAX or self._values > DEFAULT_VALUES_MAX:
            raise _Endless(f"deeper than {DEFAULT_DEPTH_MAX} levels or more than {DEFAULT_VALUES_MAX} values")
        if isinstance(schema, Primitive):
            return _logical(schema.logical, _primitive(schema.kind, json_value))
        if isinstance(schema, Union):
            return self._union(schema, json_value, depth)
        if isinstance(schema, Array) and isinstance(json_value, list):
            return [self.value(schema.items, item, depth + 1) for item in json_value]
        if isinstance(schema, Map) and isinstance(json_value, dict):
            return {key: self.value(schema.values, value, depth + 1) for key, value in json_value.items()}
        if isinstance(schema, Enum) and json_value in schema.symbols:
            return json_value
        if isinstance(schema, Fixed) and isinstance(json_value, str):
            value = _latin_bytes(json_value)
            if len(value) == schema.size:
                return _logical(schema.logical, value)
        if isinstance(schema, Record) and isinstance(json_value, dict):
            return self._record(schema, json_value, depth)
        raise ValueError(f"{json_value!r:.60} is not a {type(schema).__name__.lower()}")

    def _record(self, schema: Record, json_value: dict[str, object], depth: int) -> dict[str, object]:
        out: dict[str, object] = {}
        for field in schema.fields:
            if field.name in json_value:
                out[field.name] = self.value(field.schema, json_value[field.name], depth + 1)
            elif field.has_default:
                out[field.name] = self.value(field.schema, field.default, depth + 1)
            else:
                raise ValueError(f"no value for field {field.name!r:.200}")
        return out

    def _union(self, schema: Union, json_value: object, depth: int) -> object:
        for branch in schema.branches:
            try:
                return self.value(branch, json_value, depth + 1)
            except _Endless:
                raise
            except ValueError:
                continue
        raise ValueError(f"{json_value!r:.60} is of no branch of the union")


def _logical(logical: Logical | None, value: object) -> object:
    return value if logical is None else reader_of(logical)(value)


def _latin_bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a code point above 255 in bytes") from None


def _floating(kind: str, value: float) -> float:
    try:
        # Round a float to four bytes, as if it had been decoded.
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else float(value)
    except OverflowError:
        raise ValueError(f"a number too large for a {kind}") from None


def _primitive(kind: str, value: object) -> object:
    match kind:
        case "null" if value is None:
            return None
        case "boolean" if isinstance(value, bool):
            return value
        case "int" | "long" if isinstance(value, int) and not isinstance(value, bool):
            if -_RANGES[kind] <= value < _RANGES[kind]:
                return value
        case "float" | "double" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _floating(kind, value)
        case "float" | "double" if value in ("NaN", "Infinity", "-Infinity"):
            return float(str(value))
        case "string" if isinstance(value, str):
            return value
        case "bytes" if isinstance(value, str):
            return _latin_bytes(value)
    raise ValueError(f"{value!r:.60} is not a {kind}")
