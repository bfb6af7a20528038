"""Spark columns of a JSON Schema.

| schema | column |
|---|---|
| `object` with `properties` | struct; other members are dropped |
| `object` with only `additionalProperties` | map with string keys |
| `array` with one `items` schema | array |
| `string`, `boolean`, `integer`, `number` | string, boolean, bigint, double |
| one of these or `null` (`type`, `anyOf`, `oneOf`) | the same, because every column is nullable |
| `enum` or `const` of strings | string |
| anything else: several types, open objects, recursion | string: the JSON text of the value |

`$ref` is resolved inside the document and in the referenced schemas. `serdes` validates the values before. After that,
a column can only reject integers beyond 64 bits, numbers beyond double precision and unpaired surrogates.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag

from pyarrow import lib as pa

from headgate.spark_udfs.executor.column_converter import (
    COLUMNS_MAX,
    DEPTH_MAX,
    LONG_MAX,
    LONG_MIN,
    ColumnConverter,
    ConversionError,
)

_SYNONYMS: Final = {"$defs": "definitions", "definitions": "$defs"}
REFERENCES_MAX = 50
"""Maximum length of a chain of `$ref`. It ends reference cycles."""


def json_schema_converter(text: str, references: Mapping[str, str]) -> ColumnConverter:
    """The converter of any schema that the registry accepts. Ambiguous values become JSON text."""
    documents = {"": json.loads(text)} | {name: json.loads(other) for name, other in references.items()}
    return _Converters(documents).converter(documents[""], "", 0)


class _Converters:
    def __init__(self, documents: dict[str, Any]) -> None:
        self._documents = documents
        self._columns = 0

    def converter(self, schema: Any, base: str, depth: int) -> ColumnConverter:
        self._columns += 1
        schema, base = self._resolved(schema, base)
        if not isinstance(schema, dict) or depth > DEPTH_MAX or self._columns > COLUMNS_MAX:
            return TEXT
        kind = _one_type(schema)
        if kind is None:
            return self._alternative(schema, base, depth)
        if kind == "object":
            return self._object(schema, base, depth)
        if kind == "array":
            items = schema.get("items")
            return TEXT if not isinstance(items, dict) else _array(self.converter(items, base, depth + 1))
        return _SCALARS.get(kind, TEXT)

    def _resolved(self, schema: Any, base: str) -> tuple[Any, str]:
        for _ in range(REFERENCES_MAX):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str):
                return schema, base
            document, fragment = urldefrag(reference)
            base = document or base
            schema = _at(self._documents.get(base), fragment)
        return None, base

    def _alternative(self, schema: dict[str, Any], base: str, depth: int) -> ColumnConverter:
        """The converter of a nullable schema, or of an enumeration of strings."""
        for word in ("anyOf", "oneOf"):
            branches = schema.get(word)
            if isinstance(branches, list) and "properties" not in schema:
                others = [branch for branch in branches if branch != {"type": "null"}]
                if len(others) == 1:
                    return self.converter(others[0], base, depth)
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and values and all(value is None or isinstance(value, str) for value in values):
            return _SCALARS["string"]
        return TEXT

    def _object(self, schema: dict[str, Any], base: str, depth: int) -> ColumnConverter:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties and not ("anyOf" in schema or "oneOf" in schema):
            return _struct({name: self.converter(inner, base, depth + 1) for name, inner in properties.items()})
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and not properties and "patternProperties" not in schema:
            return _map(self.converter(more, base, depth + 1))
        return TEXT


def _one_type(schema: dict[str, Any]) -> str | None:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in kinds if kind != "null"]
        kinds = rest[0] if len(rest) == 1 else None
    if kinds is None and isinstance(schema.get("properties"), dict) and "type" not in schema:
        # Without a type, the value may be something other than an object.
        return None
    return kinds if isinstance(kinds, str) else None


def _at(document: Any, pointer: str) -> Any:
    """Resolve a JSON pointer (RFC 6901) without anchors. `$defs` and `definitions` are equal, as in the registry."""
    if pointer and not pointer.startswith("/"):
        return None
    parts = unquote(pointer).split("/")[1:]
    if parts and isinstance(document, dict) and parts[0] not in document:
        parts[0] = _SYNONYMS.get(parts[0], parts[0])
    for part in parts:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        elif isinstance(document, dict) and name in document:
            document = document[name]
        else:
            return None
    return document


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ConversionError(f"{value!r:.60} is not a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConversionError("the string has an unpaired surrogate, which UTF-8 cannot encode") from None
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
        raise ConversionError(f"{value!r:.60} is not an integer")
    if not LONG_MIN <= value <= LONG_MAX:
        raise ConversionError("the integer exceeds 64 bits")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConversionError(f"{value!r:.60} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ConversionError("the number exceeds double precision")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConversionError(f"{value!r:.60} is neither true nor false")
    return value


def _encoded(value: Any) -> str:
    return _string(_text(value))


TEXT = ColumnConverter(pa.string(), _encoded)
_SCALARS = {
    "string": ColumnConverter(pa.string(), _string),
    "integer": ColumnConverter(pa.int64(), _integer),
    "number": ColumnConverter(pa.float64(), _number),
    "boolean": ColumnConverter(pa.bool_(), _boolean),
    "null": ColumnConverter(pa.null(), lambda value: None),
}


def _array(item: ColumnConverter) -> ColumnConverter:
    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise ConversionError(f"{value!r:.60} is not an array")
        return [None if entry is None else item.convert(entry) for entry in value]

    return ColumnConverter(pa.list_(item.arrow_type), convert)


def _map(item: ColumnConverter) -> ColumnConverter:
    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(f"{value!r:.60} is not an object")
        return [(_string(name), None if entry is None else item.convert(entry)) for name, entry in value.items()]

    return ColumnConverter(pa.map_(pa.string(), item.arrow_type), convert)


def _struct(members: dict[str, ColumnConverter]) -> ColumnConverter:
    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ConversionError(f"{value!r:.60} is not an object")
        return {
            name: None if value.get(name) is None else member.convert(value[name]) for name, member in members.items()
        }

    return ColumnConverter(pa.struct([(name, member.arrow_type) for name, member in members.items()]), convert)
