"""Renders records as rows of JSON text, in the formats of v2 and v3. The row of a poison record contains the reason."""

import asyncio
import base64
import bisect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, cast

import orjson

from headgate.proxy.reading.formats import Formats
from headgate.proxy.reading.payloads import Header, KafkaRecord, Payloads, Side, one_line, unreadable_poison
from headgate.proxy.reading.templates import Fields, bare_column, decimal_column, fill, read_fields, wrapped_column
from headgate.serdes import Poison
from headgate.wire.expansion import Unreadable

DETAIL_CHARS_MAX: Final = 500
SLICE_BYTES_MAX: Final = 512 * 1024
"""Size of the values that are rendered in one time slice."""
RECORD_OVERHEAD_BYTES: Final = 200
"""Cost of a record without its value. It limits a slice to about 2,500 small records."""
_YEAR_10000_MS: Final = 253_402_300_800_000


@dataclass(frozen=True, slots=True)
class PoisonRow:
    """An undecodable record. `row` contains the reason. The caller applies the poison policy."""

    row: bytes
    poison: Poison
    is_key: bool
    record: KafkaRecord


Row: TypeAlias = bytes | PoisonRow
RowMaker: TypeAlias = Callable[[str, int, Iterable[KafkaRecord]], "Rows"]
"""Renders the records of one partition, one by one."""
RowFiller: TypeAlias = Callable[[str, int, Fields], bytes | None]
"""Fast path: returns all rows with line feeds, or None if it does not support the records."""


class Shape(NamedTuple):
    """Format of rows. Both ways to render records return the same bytes."""

    maker: Callable[[Side, Side], RowMaker]
    filler: Callable[[Side, Side], RowFiller]


class Rows:
    """Rows and their offsets."""

    __slots__ = ("_parts", "offsets")

    def __init__(self, parts: Sequence[bytes | list[Row]], offsets: list[int]) -> None:
        """A part is a list of rows, or a text in which a line feed ends each row."""
        self._parts = parts
        self.offsets = offsets

    @property
    def rows(self) -> list[Row]:
        if len(self._parts) != 1 or not isinstance(self._parts[0], list):
            rows: list[Row] = []
            for part in self._parts:
                rows += part if isinstance(part, list) else part[:-1].split(b"\n")
            self._parts = [rows]
            return rows
        return self._parts[0]

    @property
    def texts(self) -> Sequence[bytes] | None:
        """Texts of many rows without poison. None if the rows are not available in this form."""
        return cast(Sequence[bytes], self._parts) if all(isinstance(part, bytes) for part in self._parts) else None

    def since(self, offset: int) -> "Rows":
        """Drops rows before an offset, because a batch may start before the requested offset."""
        if not self.offsets or self.offsets[0] >= offset:
            return self
        at = bisect.bisect_left(self.offsets, offset)
        return Rows([self.rows[at:]], self.offsets[at:])


class _TimeTexts(dict[int, bytes]):
    """Timestamps in milliseconds as ISO 8601."""

    def __missing__(self, moment_ms: int) -> bytes:
        text = self[moment_ms] = _time_text(moment_ms)
        return text


def _v2_maker(key_side: Side, value_side: Side) -> RowMaker:
    """Row format: `{"topic","key","value","partition","offset","timestamp","headers"}`. Headers: `{"key","value"}`."""
    render_key, render_value = key_side.bare(), value_side.bare()

    def make(topic: str, partition: int, records: Iterable[KafkaRecord]) -> Rows:
        head = b'{"topic":%b,' % orjson.dumps(topic)
        place = b'"partition":%d,"offset":' % partition
        rows: list[Row] = []
        offsets: list[int] = []
        for record in records:
            headers, key, value = record.headers, record.key, record.value
            key_text = b"null" if key is None else render_key(key, headers)
            value_text = _absent(record) if value is None else render_value(value, headers)
            shown = _headers(headers, "key") if headers else b"[]"
            offset = record.offset
            offsets.append(offset)
            tail = b'%b%d,"timestamp":%d,"headers":%b}' % (place, offset, record.timestamp, shown)
            if type(key_text) is bytes and type(value_text) is bytes:
                rows.append(b'%b"key":%b,"value":%b,%b' % (head, key_text, value_text, tail))
            else:
                rows.append(_poisoned(record, head, key_text, value_text, tail))
        return Rows([rows], offsets)

    return make


def _v3_maker(key_side: Side, value_side: Side) -> RowMaker:
    """Row format of v3 produce: `{"partition_id","offset","timestamp","headers","key":{"type","data"},"value":…}`."""
    render_key, render_value = key_side.wrapped(), value_side.wrapped()
    times = _TimeTexts()

    def make(topic: str, partition: int, records: Iterable[KafkaRecord]) -> Rows:
        place = b'{"partition_id":%d,"offset":' % partition
        rows: list[Row] = []
        offsets: list[int] = []
        for record in records:
            headers, key, value, moment = record.headers, record.key, record.value, record.timestamp
            key_text = b"null" if key is None else render_key(key, headers)
            value_text = _absent(record) if value is None else render_value(value, headers)
            time_text = times[moment]
            shown = _headers(headers, "name") if headers else b"[]"
            offset = record.offset
            offsets.append(offset)
            if type(key_text) is bytes and type(value_text) is bytes:
                rows.append(
                    b'%b%d,"timestamp":%b,"headers":%b,"key":%b,"value":%b}'
                    % (place, offset, time_text, shown, key_text, value_text)
                )
            else:
                head = b'%b%d,"timestamp":%b,"headers":%b,' % (place, offset, time_text, shown)
                rows.append(_poisoned(record, head, key_text, value_text, b"}"))
        return Rows([rows], offsets)

    return make


def _v2_filler(key_side: Side, value_side: Side) -> RowFiller:
    render_keys, render_values = bare_column(key_side), bare_column(value_side)

    def fill_rows(topic: str, partition: int, fields: Fields) -> bytes | None:
        keys, values = render_keys(fields.keys), render_values(fields.values)
        if keys is None or values is None:
            return None
        offsets, timestamps = decimal_column(fields.offsets), decimal_column(fields.timestamps)
        head = b'{"topic":%b,"key":' % orjson.dumps(topic)
        place = b',"partition":%d,"offset":' % partition
        return fill(
            len(offsets),
            [head, *keys, b',"value":', *values, place, offsets, b',"timestamp":', timestamps, b',"headers":[]}\n'],
        )

    return fill_rows


def _v3_filler(key_side: Side, value_side: Side) -> RowFiller:
    render_keys, render_values = wrapped_column(key_side), wrapped_column(value_side)
    times = _TimeTexts()

    def fill_rows(topic: str, partition: int, fields: Fields) -> bytes | None:
        keys, values = render_keys(fields.keys), render_values(fields.values)
        if keys is None or values is None:
            return None
        offsets, moments = decimal_column(fields.offsets), list(map(times.__getitem__, fields.timestamps))
        place = b'{"partition_id":%d,"offset":' % partition
        return fill(
            len(offsets),
            [place, offsets, b',"timestamp":', moments, b',"headers":[],"key":', *keys, b',"value":', *values, b"}\n"],
        )

    return fill_rows


V2_ROWS: Final = Shape(_v2_maker, _v2_filler)
V3_ROWS: Final = Shape(_v3_maker, _v3_filler)


async def make_rows(
    payloads: Payloads,
    formats: Formats,
    shape: Shape,
    topic: str,
    partition: int,
    lists: Iterable[Sequence[KafkaRecord]],
) -> Rows:
    """Renders each record as one line. Other tasks on the event loop run between slices of the records.

    If schemas are missing, loads them and renders the slice again.
    """
    sides = payloads.sides(formats)
    make, fill_rows = shape.maker(*sides.both), shape.filler(*sides.both)
    parts: list[bytes | list[Row]] = []
    offsets: list[int] = []
    for records in lists:
        if parts:
            await asyncio.sleep(0)
        fields = read_fields(records, SLICE_BYTES_MAX)
        text = None if fields is None else fill_rows(topic, partition, fields)
        if fields is not None and text is not None:
            parts.append(text)
            offsets += fields.offsets
            continue
        for number, taken in enumerate(_slices(records)):
            if number:
                await asyncio.sleep(0)
            while True:
                made = make(topic, partition, taken)
                if not await sides.look_up():
                    break
            payloads.poison.update(row.poison.reason for row in made.rows if isinstance(row, PoisonRow))
            parts.append([one_line(row) if type(row) is bytes else row for row in made.rows])
            offsets += made.offsets
    return Rows(parts, offsets)


def _slices(records: Iterable[KafkaRecord]) -> Iterator[list[KafkaRecord]]:
    """Yields slices of records that take a few milliseconds to render."""
    taken: list[KafkaRecord] = []
    left = SLICE_BYTES_MAX
    for record in records:
        taken.append(record)
        left -= RECORD_OVERHEAD_BYTES + len(record.value or b"")
        if left <= 0:
            yield taken
            taken = []
            left = SLICE_BYTES_MAX
    if taken:
        yield taken


def _absent(record: KafkaRecord) -> bytes | Poison:
    """Returns null, or poison for an unreadable record. Called only for missing values, to keep the fast path fast."""
    unreadable: Unreadable | None = getattr(record, "unreadable", None)
    return b"null" if unreadable is None else unreadable_poison(unreadable)


def explain(poison: Poison, is_key: bool) -> dict[str, object]:
    raw = poison.raw
    return {
        "part": "key" if is_key else "value",
        "reason": poison.reason.name,
        "schema_id": poison.schema_id,
        "schema_guid": None if poison.schema_guid is None else str(poison.schema_guid),
        # The detail may contain invalid Unicode.
        "detail": poison.detail[:DETAIL_CHARS_MAX].encode("utf-8", "backslashreplace").decode(),
        "raw": None if raw is None else base64.b64encode(raw).decode(),
    }


def _poisoned(record: KafkaRecord, head: bytes, key: bytes | Poison, value: bytes | Poison, tail: bytes) -> PoisonRow:
    bad_key = key if isinstance(key, Poison) else None
    bad_value = value if isinstance(value, Poison) else None
    poison, is_key = (bad_value, False) if bad_value is not None else (bad_key, True)
    assert poison is not None
    told = explain(poison, is_key)
    if bad_key is not None and bad_value is not None:
        told["also"] = explain(bad_key, True)
    shown_key = b"null" if isinstance(key, Poison) else key
    shown_value = b"null" if isinstance(value, Poison) else value
    explained = orjson.dumps(told, default=str)
    separator = b"," if tail != b"}" else b""
    row = b'%b"key":%b,"value":%b,"poison":%b%b%b' % (head, shown_key, shown_value, explained, separator, tail)
    return PoisonRow(one_line(row), poison, is_key, record)


def _headers(headers: Sequence[Header], name: str) -> bytes:
    return orjson.dumps(
        [{name: key, "value": None if value is None else base64.b64encode(value).decode()} for key, value in headers]
    )


def _time_text(moment_ms: int) -> bytes:
    """Returns ISO 8601 as JSON. Returns null without a timestamp, or after the year 9999."""
    if not 0 <= moment_ms < _YEAR_10000_MS:
        return b"null"
    second, millisecond = divmod(moment_ms, 1000)
    return b'"%b.%03dZ"' % (_second_text(second), millisecond)


@lru_cache(maxsize=1000)
def _second_text(second: int) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
