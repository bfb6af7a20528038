import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.payloads import Header, Payloads
from headgate.proxy.reading.rows import V2_ROWS, V3_ROWS, PoisonRow, Rows, make_rows
from headgate.serdes import AsyncRegistryClient, RegistrySettings
from headgate.serdes.framing import frame


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp: int = 1_700_000_000_123
    headers: list[Header] = field(default_factory=list)


def rows(
    kind: ReadFormat, *records: Record, shape: Any = V2_ROWS, schemas: dict[int, dict[str, str]] | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows as a client parses them, and the paths of all requests to the registry."""
    asked: list[str] = []

    def registry(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        schema = (schemas or {}).get(int(request.url.path.rsplit("/", 1)[1])) if "ids" in request.url.path else None
        if schema is None:
            return httpx.Response(404, json={"error_code": 40403, "message": "Schema not found"})
        return httpx.Response(200, json=schema)

    async def make() -> Rows:
        client = AsyncRegistryClient(RegistrySettings(("http://registry",)), transport=httpx.MockTransport(registry))
        try:
            return await make_rows(Payloads(client), Formats(kind, kind), shape, "t", 4, [records])
        finally:
            await client.close()

    made = asyncio.run(make())
    assert made.offsets == [record.offset for record in records]
    texts = [row.row if isinstance(row, PoisonRow) else row for row in made.rows]
    assert not any(b"\n" in text or b"\r" in text for text in texts)
    return [json.loads(text) for text in texts], asked


def test_v2_rows_have_every_field() -> None:
    found, _ = rows(ReadFormat.BINARY, Record(5, b"v", b"k", headers=[("h", b"1"), ("n", None)]))
    headers = [{"key": "h", "value": "MQ=="}, {"key": "n", "value": None}]
    assert found == [
        {
            "topic": "t",
            "key": "aw==",
            "value": "dg==",
            "partition": 4,
            "offset": 5,
            "timestamp": 1_700_000_000_123,
            "headers": headers,
        }
    ]


def test_v3_rows_name_the_type_of_each_side() -> None:
    found, _ = rows(ReadFormat.AUTO, Record(1, b"\xff", b"k"), Record(2, None), shape=V3_ROWS)
    assert [row["value"] for row in found] == [{"type": "BINARY", "data": "/w=="}, None]
    assert found[0]["timestamp"] == "2023-11-14T22:13:20.123Z"


def test_a_timestamp_out_of_range_is_null() -> None:
    moments = (-1, 2**62)
    found, _ = rows(ReadFormat.BINARY, *(Record(i, b"", timestamp=at) for i, at in enumerate(moments)), shape=V3_ROWS)
    assert [row["timestamp"] for row in found] == [None, None]


@pytest.mark.parametrize("shape", [V2_ROWS, V3_ROWS])
@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (ReadFormat.JSON, b"{", "CORRUPT"),
        (ReadFormat.JSON, b"", "CORRUPT"),
        (ReadFormat.JSON, b'"\xff"', "CORRUPT"),
        (ReadFormat.JSON, b"[" * 100_000, "CORRUPT"),
        (ReadFormat.STRING, b"\xc3(", "CORRUPT"),
        (ReadFormat.AVRO, b"\x01\x00\x00\x00\x01", "BAD_MAGIC"),
        (ReadFormat.AVRO, frame(9, b""), "UNKNOWN_SCHEMA"),
    ],
)
def test_a_poison_row_contains_the_raw_bytes(shape: Any, kind: ReadFormat, value: bytes, reason: str) -> None:
    (row,), _ = rows(kind, Record(1, value), shape=shape)
    assert row["value"] is None
    assert row["poison"]["reason"] == reason
    assert base64.b64decode(row["poison"]["raw"]) == value


def test_numbers_keep_all_digits() -> None:
    text = b'{"big": 123456789012345678901234567890, "long": 0.1000000000000000055511151231257827}'
    made, _ = rows(ReadFormat.JSON, Record(1, text))
    assert made[0]["value"]["big"] == 123456789012345678901234567890


def test_each_schema_is_requested_once() -> None:
    schema = {"schema": '"string"'}
    records = [Record(i, frame(1 + i % 2, b"\x02a")) for i in range(10)]
    found, asked = rows(ReadFormat.AVRO, *records, schemas={1: schema, 2: schema})
    assert [row["value"] for row in found] == ["a"] * 10
    assert sorted(asked) == ["/schemas/ids/1", "/schemas/ids/2"]


def test_an_invalid_schema_is_reported_as_poison() -> None:
    (row,), _ = rows(ReadFormat.AVRO, Record(1, frame(1, b"x")), schemas={1: {"schema": '{"type":"nonsense"}'}})
    assert row["poison"]["reason"] == "UNRESOLVABLE"
    assert row["poison"]["schema_id"] == 1


def test_rows_before_an_offset_are_dropped() -> None:
    made = Rows([[b"a", b"b", b"c"]], [3, 7, 9])
    assert made.since(3) is made
    assert made.since(4).offsets == [7, 9]
    assert made.since(10).rows == []
