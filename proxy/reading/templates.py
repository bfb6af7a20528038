"""Fast path of `proxy.reading.rows`: renders many records with a few operations per column.

It supports records without headers and without null values whose payloads are all readable. For other records, these
functions return None, and `proxy.reading.rows` renders each record separately. Both ways return the same bytes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from headgate.proxy.reading.formats import ReadFormat
from headgate.proxy.reading.json_validation import json_lines
from headgate.proxy.reading.payloads import KafkaRecord, Render, Side, one_line
from headgate.serdes import Poison

Template: TypeAlias = Sequence[bytes | list[bytes]]
"""Parts of a row: constant text, or a column with one text per row."""
RenderColumn: TypeAlias = Callable[["list[bytes] | None"], "Template | None"]
"""Renders all keys or all values. Returns None if a payload is poison."""

_HEADERS: Final = attrgetter("headers")
_JSON_FORMATS: Final = frozenset({ReadFormat.JSON, ReadFormat.AUTO})


class Fields(NamedTuple):
    """Columns of records without headers. `keys` is None if all keys are null."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes] | None
    values: list[bytes]


def read_fields(records: Sequence[KafkaRecord], bytes_max: int) -> Fields | None:
    """Returns None for keys and values of more than `bytes_max` bytes, because they need several time slices."""
    if any(map(_HEADERS, records)):
        return None
    keys: list[Any] = [record.key for record in records]
    values: list[Any] = [record.value for record in records]
    present_keys = None if keys.count(None) == len(keys) else keys
    try:
        size = sum(map(len, values)) + sum(map(len, present_keys or ()))
    except TypeError:
        return None  # A value or some of the keys are null.
    if size > bytes_max:
        return None
    offsets = [record.offset for record in records]
    return Fields(offsets, [record.timestamp for record in records], present_keys, values)


def bare_column(side: Side) -> RenderColumn:
    """Renders the data without type and schema."""
    return partial(_render_column, side.format, side.bare(), b"", b"")


def wrapped_column(side: Side) -> RenderColumn:
    """Renders the v3 format: `{"type":…,"schema_id":…,"data":…}`."""
    return partial(_render_column, side.format, side.wrapped(), b'{"type":"JSON","data":', b"}")


def _render_column(
    wanted: ReadFormat, render: Render, json_prefix: bytes, json_suffix: bytes, payloads: list[bytes] | None
) -> Template | None:
    if payloads is None:
        return [b"null"]
    if wanted in _JSON_FORMATS and (lines := json_lines(payloads)) is not None:
        return [json_prefix, lines, json_suffix]
    if wanted is ReadFormat.JSON:
        return None
    texts: list[Any] = [render(payload, ()) for payload in payloads]
    return None if Poison in set(map(type, texts)) else [list(map(one_line, texts))]


def decimal_column(numbers: list[int]) -> list[bytes]:
    return orjson.dumps(numbers)[1:-1].split(b",")


def fill(count: int, template: Template) -> bytes:
    """Returns the text of `count` rows."""
    row: list[bytes] = []
    columns: dict[int, list[bytes]] = {}
    for part in template:
        if isinstance(part, list):
            columns[len(row)] = part
            row.append(b"")
        elif row and len(row) - 1 not in columns:
            row[-1] += part
        else:
            row.append(part)
    pieces = row * count
    for index, column in columns.items():
        pieces[index :: len(row)] = column
    return b"".join(pieces)
