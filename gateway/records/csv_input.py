"""Parses CSV into records: the first row names the fields, and the schema gives their types. No I/O.

| type | cell |
|---|---|
| numbers, booleans | `12`, `-0.5`, `true` |
| strings, enums, bytes | the text itself |
| decimals, dates, times, timestamps, uuids | the readable form of `logical=native` |
| arrays, maps, records | JSON |
| optional | an empty cell is null |
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headgate.gateway.records.input import InputRow, LineFormat
from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord
from headgate.serdes.avro import parse
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union, type_name
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.json_text import loads

Convert = Callable[[str], Any]
"""Converts a cell. Raises ValueError."""

COLUMNS_MAX: Final = 10_000
_TEXT_LOGICAL: Final = frozenset({"decimal", "uuid", "duration"})
_PROTOBUF_BOOL: Final = 8
_PROTOBUF_TEXT: Final = frozenset({9, 12})
"""String and bytes. Protobuf's JSON accepts texts for numbers and enums too, but an empty cell is only valid here."""


class CsvInput:
    def __init__(self, schema: WholeSchema, line_format: LineFormat, key_column: str | None, separator: str) -> None:
        self._converters = converters(schema)
        self._line_format = line_format
        self._key_column = key_column
        self._separator = separator
        self._columns: list[str] | None = None
        self._open: list[bytes] = []
        """Lines of a row with a line break inside quotes."""
        self._line_number = 0
        self._row_line = 0

    def feed(self, line: bytes) -> Iterator[InputRow]:
        """Raises BadRecord if the header is not usable."""
        self._line_number += 1
        self._row_line = self._row_line or self._line_number
        self._open.append(line)
        if sum(part.count(b'"') for part in self._open) % 2:
            return
        yield from self._finish()

    def end(self) -> Iterator[InputRow]:
        """The end of a file: the next file has its own header."""
        if self._open:
            yield from self._finish()
        self._columns, self._line_number = None, 0

    def _finish(self) -> Iterator[InputRow]:
        text, at = b"\n".join(self._open), self._row_line
        self._open, self._row_line = [], 0
        if not text.strip():
            return
        if self._columns is None:
            self._columns = self._header(self._cells(text))
            return
        try:
            record: NewRecord | BadRecord = self._record(self._cells(text), self._columns)
        except BadRecord as error:
            record = error
        yield InputRow(f"line {at}", text, record)

    def _cells(self, text: bytes) -> list[str]:
        try:
            return next(
                csv.reader([text.decode("utf-8-sig").removesuffix("\r")], delimiter=self._separator, strict=True)
            )
        except (UnicodeDecodeError, csv.Error, StopIteration) as error:
            raise BadRecord(f"not CSV: {error}") from error

    def _header(self, names: list[str]) -> list[str]:
        names = [name.strip() for name in names]
        if len(names) > COLUMNS_MAX:
            raise BadRecord(f"the header has more than {COLUMNS_MAX} columns")
        unknown = [name for name in names if name not in self._converters and name != self._key_column]
        if unknown:
            known = ", ".join(list(self._converters)[:20])
            raise BadRecord(f"the header has a column {unknown[0][:60]!r}; the fields of the schema are {known}")
        if len(set(names)) < len(names):
            raise BadRecord("the header has a column twice")
        if self._key_column is not None and self._key_column not in names:
            raise BadRecord(f"the header has no column {self._key_column!r}")
        return names

    def _record(self, cells: list[str], columns: list[str]) -> NewRecord:
        if len(cells) != len(columns):
            raise BadRecord(f"the row has {len(cells)} cells and the header {len(columns)} columns")
        key, document = None, {}
        for name, cell in zip(columns, cells, strict=True):
            if name == self._key_column:
                key = cell.encode()
            convert = self._converters.get(name)
            if convert is not None:
                try:
                    document[name] = convert(cell)
                except ValueError as error:
                    raise BadRecord(f"column {name}: {error}") from error
        return self._line_format.with_defaults(NewRecord(key, json.dumps(document).encode()))


def converters(schema: WholeSchema) -> Mapping[str, Convert]:
    """By field name. Raises BadRecord if the schema has no fields."""
    definition = schema.definition
    language = definition.type.value
    if language == "AVRO":
        parsed = parse(definition.text, schema.texts)
        if isinstance(parsed, Record):
            return {field.name: _avro(field.schema) for field in parsed.fields}
    elif language == "PROTOBUF":
        from headgate.serdes.protobuf.messages import Messages

        message = Messages(definition.text, schema.texts).first()
        return {field.name: _protobuf(field) for field in message.fields}
    else:
        document = json.loads(definition.text)
        properties = document.get("properties") if isinstance(document, dict) else None
        if isinstance(properties, dict):
            return {name: _json_schema(one) for name, one in properties.items()}
    raise BadRecord("the schema has no fields, so CSV cannot be converted; send JSON lines")


def _avro(schema: Schema) -> Convert:
    if isinstance(schema, Union):
        return _union(schema)
    if isinstance(schema, (Record, Array, Map)):
        return _json
    if isinstance(schema, (Enum, Fixed)):
        return str
    if schema.logical is not None:
        return str if schema.logical.name in _TEXT_LOGICAL else _number_or_text
    return {"int": _integer, "long": _integer, "float": _float, "double": _float, "boolean": _boolean}.get(
        schema.kind, str
    )


def _union(schema: Union) -> Convert:
    is_optional = any(_is_null(branch) for branch in schema.branches)
    branches = [(type_name(branch), _avro(branch)) for branch in schema.branches if not _is_null(branch)]

    def convert(cell: str) -> object:
        if not cell and is_optional:
            return None
        problem = ValueError("the cell is empty")
        for name, branch in branches:
            try:
                return {name: branch(cell)}
            except ValueError as error:
                problem = error
        raise problem

    return convert


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"


def _protobuf(field: Any) -> Convert:
    if field.is_repeated or field.message_type is not None:
        return lambda cell: _json(cell) if cell else None
    if field.type == _PROTOBUF_BOOL:
        return lambda cell: _boolean(cell) if cell else None
    return str if field.type in _PROTOBUF_TEXT else lambda cell: cell or None


def _json_schema(schema: object) -> Convert:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else ["any"]
    by_kind: dict[str, Convert] = {"integer": _integer, "number": _float, "boolean": _boolean, "string": str}
    choices = [by_kind.get(kind, _json) for kind in kinds if kind != "null"]

    def convert(cell: str) -> object:
        if not cell and "null" in kinds:
            return None
        problem = ValueError("the cell is empty")
        for choice in choices:
            try:
                return choice(cell)
            except ValueError as error:
                problem = error
        raise problem

    return convert


def _integer(cell: str) -> int:
    if not cell.removeprefix("-").isascii() or not cell.removeprefix("-").isdigit() or len(cell) > 20:
        raise ValueError(f"{cell[:60]!r} is not a whole number")
    return int(cell)


def _number_or_text(cell: str) -> int | str:
    try:
        return _integer(cell)
    except ValueError:
        return cell


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{cell[:60]!r} is not a number") from None


def _boolean(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError(f"{cell[:60]!r} is neither true nor false")
    return cell.lower() == "true"


def _json(cell: str) -> object:
    try:
        return loads(cell.encode())
    except ValueError as error:
        raise ValueError(f"{cell[:60]!r} is not JSON: {error}") from None
