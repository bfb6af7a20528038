"""Records as rows of JSON text: the v2 shape and the v3 shape, and the explained row of a poison record."""

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from proxy.reading.payloads import Header, KafkaRecord, Side
from serdes import Poison

DETAIL_CHARS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class PoisonRow:
    """A record of which a part cannot be read. `row` tells of it; who asked may want something else done."""

    row: bytes
    poison: Poison
    is_key: bool


Row: TypeAlias = bytes | PoisonRow
RowMaker: TypeAlias = Callable[[str, int, KafkaRecord], Row]


def v2_rows(key_side: Side, value_side: Side) -> RowMaker:
    """`{"topic","key","value","partition","offset","timestamp","headers"}`; headers as `{"key","value"}`."""
    topics: dict[str, bytes] = {}

    def make(topic: str, partition: int, record: KafkaRecord) -> Row:
        headers = record.headers
        key = key_side.bare(record.key, headers)
        value = value_side.bare(record.value, headers)
        name = topics.get(topic)
        if name is None:
            name = topics[topic] = orjson.dumps(topic)
        tail = b'"partition":%d,"offset":%d,"timestamp":%d,"headers":%b}' % (
            partition,
            record.offset,
            record.timestamp,
            _headers(headers, "key") if headers else b"[]",
        )
        if isinstance(key, bytes) and isinstance(value, bytes):
            return b'{"topic":%b,"key":%b,"value":%b,%b' % (name, key, value, tail)
        return _poisoned(b'{"topic":%b,' % name, key, value, tail)

    return make


def v3_rows(key_side: Side, value_side: Side) -> RowMaker:
    """`{"partition_id","offset","timestamp","headers","key":{"type","data"},"value":…}`: what v3 produce takes."""
    seconds: dict[int, bytes] = {}

    def make(topic: str, partition: int, record: KafkaRecord) -> Row:
        headers = record.headers
        key = key_side.wrapped(record.key, headers)
        value = value_side.wrapped(record.value, headers)
        second, milliseconds = divmod(record.timestamp, 1000)
        prefix = seconds.get(second)
        if prefix is None:
            prefix = seconds[second] = _second_text(second)
        head = b'{"partition_id":%d,"offset":%d,"timestamp":"%b.%03dZ","headers":%b,' % (
            partition,
            record.offset,
            prefix,
            milliseconds,
            _headers(headers, "name") if headers else b"[]",
        )
        if isinstance(key, bytes) and isinstance(value, bytes):
            return b'%b"key":%b,"value":%b}' % (head, key, value)
        return _poisoned(head, key, value, b"}")

    return make


def explain(poison: Poison, is_key: bool) -> dict[str, object]:
    raw = poison.raw
    return {
        "part": "key" if is_key else "value",
        "reason": poison.reason.name,
        "schema_id": poison.schema_id,
        "schema_guid": None if poison.schema_guid is None else str(poison.schema_guid),
        "detail": poison.detail[:DETAIL_CHARS_MAX],
        "raw": None if raw is None else base64.b64encode(raw).decode(),
    }


def _poisoned(head: bytes, key: bytes | Poison, value: bytes | Poison, tail: bytes) -> PoisonRow:
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
    return PoisonRow(row, poison, is_key)


def _headers(headers: Sequence[Header], name: str) -> bytes:
    return orjson.dumps(
        [{name: key, "value": None if value is None else base64.b64encode(value).decode()} for key, value in headers]
    )


def _second_text(second: int) -> bytes:
    """ISO 8601 without a fraction; a timestamp that no calendar has stands as the epoch's."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
    except (OverflowError, ValueError, OSError):
        return b"1970-01-01T00:00:00"
