"""Readable JSON for logical types: exact in both directions, strict on input."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.serdes.avro import Encoder, JsonEncoding, parse
from headgate.serdes.avro.codec import AvroReader
from headgate.serdes.avro.logical import Duration, Nanoseconds
from headgate.serdes.codec import ReadOptions
from headgate.serdes.errors import EncodeError
from headgate.serdes.framing import Frame
from tests.unit.serdes.avro_strategies import schemas, values

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
UUID_FIXED = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
DURATION = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
TEXT = "c4b8d5a2-0d0f-4b7c-9b1e-2f7a6c1d9e00"


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def encoding(schema: Any) -> JsonEncoding:
    return JsonEncoding(parse(json.dumps(schema)), native_logical=True)


CASES: list[tuple[Any, object, object]] = [
    (DECIMAL, Decimal("9.99"), "9.99"),
    (DECIMAL, Decimal("-0.01"), "-0.01"),
    (DECIMAL, Decimal("123456789012345678.00"), "123456789012345678.00"),
    (logical("int", "date"), date(2026, 11, 18), "2026-11-18"),
    (logical("int", "time-millis"), time(10, 15, 30, 123000), "10:15:30.123"),
    (logical("long", "time-micros"), time(0, 0, 0, 1), "00:00:00.000001"),
    (logical("long", "timestamp-millis"), datetime(2026, 11, 18, 10, 0, tzinfo=UTC), "2026-11-18T10:00:00.000Z"),
    (logical("long", "timestamp-micros"), datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
    (logical("long", "timestamp-nanos"), Nanoseconds(-1), "1969-12-31T23:59:59.999999999Z"),
    (logical("long", "local-timestamp-millis"), datetime(2026, 1, 2, 3), "2026-01-02T03:00:00.000"),
    (logical("string", "uuid"), UUID(TEXT), TEXT),
    (UUID_FIXED, UUID(TEXT), TEXT),
    (DURATION, Duration(1, 2, 3), {"months": 1, "days": 2, "milliseconds": 3}),
]


@pytest.mark.parametrize(("schema", "value", "document"), CASES)
def test_a_value_has_a_readable_form_that_is_read_back(schema: Any, value: object, document: object) -> None:
    assert encoding(schema).to_json(value) == document
    encode = Encoder(parse(json.dumps(schema))).encode
    assert encode(encoding(schema).from_json(document)) == encode(value)


@pytest.mark.parametrize(
    ("schema", "document", "value"),
    [
        (DECIMAL, 9.99, Decimal("9.99")),
        (DECIMAL, 7, Decimal("7")),
        (DECIMAL, "1e3", Decimal("1000")),
        (logical("int", "date"), 1, date(1970, 1, 2)),
        (logical("long", "timestamp-millis"), "2026-11-18T11:00:00+01:00", datetime(2026, 11, 18, 10, tzinfo=UTC)),
        (logical("long", "timestamp-millis"), 1500, datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)),
    ],
)
def test_other_forms_are_accepted(schema: Any, document: object, value: object) -> None:
    encode = Encoder(parse(json.dumps(schema))).encode
    assert encode(encoding(schema).from_json(document)) == encode(value)


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (DECIMAL, "9.999"),
        (DECIMAL, "nine"),
        (DECIMAL, "NaN"),
        (DECIMAL, True),
        (DECIMAL, None),
        (DECIMAL, "1" * 3000),
        (DECIMAL, "1e9999"),
        (logical("int", "date"), "2026-02-30"),
        (logical("int", "date"), "18.11.2026"),
        (logical("int", "time-millis"), "10:15:30.1234"),
        (logical("int", "time-millis"), "24:00:00"),
        (logical("long", "timestamp-millis"), "2026-11-18T10:00:00"),
        (logical("long", "timestamp-millis"), "2026-11-18T10:00:00.0001Z"),
        (logical("long", "timestamp-nanos"), "9999-01-01T00:00:00Z"),
        (logical("long", "local-timestamp-millis"), "2026-11-18T10:00:00Z"),
        (logical("string", "uuid"), "not a uuid"),
        (UUID_FIXED, 5),
        ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, {"months": 1}),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            {"months": -1, "days": 0, "milliseconds": 0},
        ),
    ],
)
def test_a_text_that_the_type_cannot_store_exactly_is_rejected(schema: Any, document: object) -> None:
    with pytest.raises(EncodeError):
        Encoder(parse(json.dumps(schema))).encode(encoding(schema).from_json(document))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_every_value_survives_both_directions(data: st.DataObject) -> None:
    # In a record: Confluent's serializers write top-level bytes without a length.
    schema = {"type": "record", "name": "Root", "fields": [{"name": "field", "type": data.draw(schemas(logical=True))}]}
    value = data.draw(values(schema))
    text = json.dumps(schema)
    parsed = parse(text)
    body = Encoder(parsed).encode(value)
    # Decode first, as a consumer does.
    decoded = AvroReader(parsed, None, ReadOptions(tag_unions=True)).read(Frame(1, None, body))
    codec = JsonEncoding(parsed, tag_unions=True, native_logical=True)
    document = json.loads(json.dumps(codec.to_json(decoded)))
    assert Encoder(parsed).encode(codec.from_json(document)) == body
