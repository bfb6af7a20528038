"""Renders records as rows of JSON text, in the formats of v2 and v3. The row of a poison record contains the reason."""

import asyncio
import base64
import bisect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from headgate.proxy.reading.formats import Formats
from headgate.proxy.reading.payloads import Header, KafkaRecord, Payloads, Side, one_line, unreadable_poison
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
"""Renders the records of one partition. This is the hot loop of all reads."""


@dataclass(frozen=True, slots=True)
class Rows:
    rows: list[Row]
    offsets: list[int]

    def since(self, offset: int) -> "Rows":
        """Drops rows before an offset, because a batch may start before the requested offset."""
        if not self.offsets or self.offsets[0] >= offset:
            return self
        at = bisect.bisect_left(self.offsets, offset)
        return Rows(self.rows[at:], self.offsets[at:])


def v2_rows(key_side: Side, value_side: Side) -> RowMaker:
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
        return Rows(rows, offsets)

    return make


def v3_rows(key_side: Side, value_side: Side) -> RowMaker:
    """Row format of v3 produce: `{"partition_id","offset","timestamp","headers","key":{"type","data"},"value":…}`."""
    render_key, render_value = key_side.wrapped(), value_side.wrapped()
    times: dict[int, bytes] = {}

    def make(topic: str, partition: int, records: Iterable[KafkaRecord]) -> Rows:
        place = b'{"partition_id":%d,"offset":' % partition
        rows: list[Row] = []
        offsets: list[int] = []
        for record in records:
            headers, key, value, moment = record.headers, record.key, record.value, record.timestamp
            key_text = b"null" if key is None else render_key(key, headers)
            value_text = _absent(record) if value is None else render_value(value, headers)
            time_text = times.get(moment)
            if time_text is None:
                time_text = times[moment] = _time_text(moment)
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
        return Rows(rows, offsets)

    return make


async def make_rows(
    payloads: Payloads,
    formats: Formats,
    shape: Callable[[Side, Side], RowMaker],
    topic: str,
    partition: int,
    records: Callable[[], Iterable[KafkaRecord]],
) -> Rows:
    """Renders each record as one line. Other tasks on the event loop run between slices of the records.

    If schemas are missing, loads them and renders the slice again.
    """
    sides = payloads.sides(formats)
    make = shape(*sides.both)
    rows: list[Row] = []
    offsets: list[int] = []
    for taken in _slices(records()):
        if rows:
            await asyncio.sleep(0)
        while True:
            made = make(topic, partition, taken)
            if not await sides.look_up():
                break
        text = b"".join([row for row in made.rows if type(row) is bytes])
        if b"\n" in text or b"\r" in text:
            rows += [one_line(row) if type(row) is bytes else row for row in made.rows]
        else:
            rows += made.rows
        offsets += made.offsets
    return Rows(rows, offsets)


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
    return PoisonRow(row, poison, is_key, record)


def _headers(headers: Sequence[Header], name: str) -> bytes:
    return orjson.dumps(
        [{name: key, "value": None if value is None else base64.b64encode(value).decode()} for key, value in headers]
    )


def _time_text(moment_ms: int) -> bytes:
    """Returns ISO 8601 as JSON. Returns null without a timestamp, or after the year 9999."""
    if not 0 <= moment_ms < _YEAR_10000_MS:
        return b"null"
    second, millisecond = divmod(moment_ms, 1000)
    return b'"%b.%03dZ"' % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode(), millisecond)
