"""Encoding of Python values, and errors with their paths."""

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from headgate.serdes.avro import Decoder, Duration, EncodeError, Encoder, Nanoseconds, parse


def logical(kind: str, name: str, **more: object) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, **more: object) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def record(*types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]}


def encode(schema: Any, value: Any, **options: bool) -> bytes:
    return Encoder(parse(json.dumps(schema)), **options).encode(value)


def decode(schema: Any, body: bytes) -> Any:
    return Decoder(parse(json.dumps(schema))).decode(body)


DECIMAL = logical("bytes", "decimal", precision=5, scale=2)
MILLIS, MICROS, NANOS = (logical("long", f"timestamp-{unit}") for unit in ("millis", "micros", "nanos"))
KEY = UUID("12345678-9abc-def0-1234-56789abcdef0")


@pytest.mark.parametrize(
    ("schema", "value", "body"),
    [
        (DECIMAL, Decimal("0"), "02 00"),
        (DECIMAL, Decimal("-0.01"), "02 ff"),
        (DECIMAL, Decimal("1.27"), "02 7f"),
        (DECIMAL, Decimal("1.28"), "04 0080"),
        (DECIMAL, Decimal("-1.28"), "02 80"),
        (DECIMAL, Decimal("-1.29"), "04 ff7f"),
        (fixed(4, logicalType="decimal", precision=9, scale=0), Decimal("-2"), "fffffffe"),
        (logical("int", "date"), date(1, 1, 1), "f3e457"),
        (logical("int", "date"), date(9999, 12, 31), "c082e602"),
        (logical("int", "time-millis"), time(0, 0, 0, 1000), "02"),
        (logical("long", "time-micros"), time(0, 0, 0, 1), "02"),
        (MILLIS, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC), "01"),
        (MICROS, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "01"),
        (NANOS, Nanoseconds(-1), "01"),
        (logical("long", "local-timestamp-micros"), datetime(1970, 1, 1, 0, 0, 0, 1), "02"),
        (logical("string", "uuid"), KEY, "48" + str(KEY).encode().hex()),
        (fixed(16, logicalType="uuid"), KEY, KEY.hex),
        (fixed(12, logicalType="duration"), Duration(1, 2, (1 << 32) - 1), "01000000 02000000 ffffffff"),
    ],
)
def test_a_logical_value_has_one_encoding(schema: Any, value: Any, body: str) -> None:
    assert encode(schema, value).hex() == body.replace(" ", "")
    read = decode(schema, bytes.fromhex(body))
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("schema", "given", "read"),
    [
        (
            MILLIS,
            datetime(1970, 1, 1, 1, 0, 0, 1999, timezone(timedelta(hours=1))),
            datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
        ),
        (NANOS, datetime(1970, 1, 1, 0, 0, 0, 1, UTC), Nanoseconds(1000)),
        (MILLIS, 5, datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)),
        (DECIMAL, 7, Decimal("7.00")),
        (DECIMAL, b"\x01", Decimal("0.01")),
        (logical("string", "uuid"), str(KEY).upper(), KEY),
        (logical("int", "time-millis"), time(1, 2, 3, 999), time(1, 2, 3)),
        ("double", 3, 3.0),
        ("bytes", bytearray(b"x"), b"x"),
        ({"type": "array", "items": "int"}, (1, 2), [1, 2]),
    ],
)
def test_other_forms_of_a_value_are_accepted(schema: Any, given: Any, read: Any) -> None:
    assert decode(schema, encode(schema, given)) == read


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ("int", 1 << 31, "outside 32 bits"),
        ("long", 1 << 63, "outside 64 bits"),
        ("int", True, "not a int"),
        ("int", 1.0, "not a int"),
        ("boolean", 1, "not a boolean"),
        ("float", 1e39, "too large for a float"),
        ("double", 10**400, "too large for a double"),
        ("string", b"x", "not a string"),
        ("string", "\ud800", "unpaired surrogate"),
        ("bytes", "x", "not a bytes"),
        ("null", 0, "not a null"),
        (fixed(2), b"x", "fixed of 2 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "not a symbol of E"),
        ({"type": "array", "items": "int"}, "ab", "not a array"),
        ({"type": "array", "items": "int"}, [1, None], r"^\[1\]: "),
        ({"type": "map", "values": "int"}, {"k": None}, r"^\['k'\]: "),
        ({"type": "map", "values": "int"}, {1: 1}, "not a string"),
        (record("int"), {}, "^f0: no value for this field"),
        (record("int"), {"f0": 1, "typo": 2}, "no field 'typo'"),
        (record("int"), [], "not a record R"),
        (["null", "int"], "x", "value of the union of null, int"),
        (["null", "int"], 1 << 40, "outside 32 bits"),
        (DECIMAL, Decimal("0.001"), "more than 2 digits after the point"),
        (DECIMAL, Decimal("1000.00"), "more than 5 digits"),
        (DECIMAL, Decimal("NaN"), "not a decimal"),
        (DECIMAL, Decimal("1e100000"), "not a decimal"),
        (DECIMAL, Decimal("1e-100000"), "digits after the point"),
        (DECIMAL, b"\x7f\xff\xff", "more than 5 digits"),
        (DECIMAL, b"", "without bytes"),
        (MILLIS, datetime(2020, 1, 1), "with a time zone"),
        (logical("long", "local-timestamp-millis"), datetime(2020, 1, 1, tzinfo=UTC), "without a time zone"),
        (MILLIS, 1 << 62, "years 1 to 9999"),
        (logical("int", "date"), datetime(2020, 1, 1), "datetime instead of a date"),
        (logical("int", "time-millis"), 86_400_000, "outside a day"),
        (logical("string", "uuid"), "{" + str(KEY) + "}", "not a UUID"),
        (fixed(12, logicalType="duration"), Duration(-1, 0, 0), "0 and 4294967295"),
        ({"type": "array", "items": "null"}, [None] * 4097, "4096 items"),
    ],
)
def test_values_that_cannot_be_decoded_again_are_rejected(schema: Any, value: Any, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        encode(schema, value)


def test_a_missing_field_gets_its_default_and_an_unknown_one_can_be_ignored() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]}
    assert encode(schema, {}) == b"\x00"
    assert encode(schema, {"a": 1, "typo": 2}, ignore_unknown_fields=True) == b"\x02\x02"


@pytest.mark.parametrize(
    ("union", "value", "branch"),
    [
        (["float", "int", "long"], 1, 1),
        (["float", "int", "long"], 1 << 40, 2),
        (["float", "double"], 0.1, 1),
        (["int", "float"], 0.5, 1),
        (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], "A", 0),
        (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], ("E", "A"), 1),
        (["int", "long"], ("long", 1), 1),
        (["bytes", fixed(2)], b"ab", 0),
        (["null", logical("long", "timestamp-millis"), "string"], datetime(2020, 1, 1, tzinfo=UTC), 1),
        ([{"type": "map", "values": "int"}, record("int")], {"f0": 1}, 0),
        (
            [
                {"type": "record", "name": "n.A", "fields": [{"name": "x", "type": "int"}]},
                {
                    "type": "record",
                    "name": "n.B",
                    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
                },
            ],
            {"x": 1, "y": 2},
            1,
        ),
        (
            [
                {"type": "record", "name": "n.A", "fields": [{"name": "x", "type": "int"}]},
                {"type": "record", "name": "n.B", "fields": [{"name": "x", "type": "int"}]},
            ],
            ("B", {"x": 1}),
            1,
        ),
    ],
)
def test_a_value_uses_the_branch_that_keeps_it(union: Any, value: Any, branch: int) -> None:
    assert encode(union, value)[0] == branch * 2


def test_a_hopeless_search_for_a_branch_ends() -> None:
    two = [
        {"type": "record", "name": "A", "fields": [{"name": "n", "type": ["null", "int", "A", "B"]}]},
        {"type": "record", "name": "B", "fields": [{"name": "n", "type": ["null", "int", "A", "B"]}]},
    ]
    value: Any = {"n": "never"}
    for _ in range(60):
        value = {"n": value}
    with pytest.raises(EncodeError):
        encode(two, value)


def test_nanoseconds_convert_to_a_datetime() -> None:
    assert Nanoseconds(1_999).to_datetime() == datetime(1970, 1, 1, 0, 0, 0, 1, UTC)
    assert Nanoseconds(-1).to_datetime() == datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)


@pytest.mark.parametrize(
    "declared",
    [
        logical("string", "timestamp-millis"),
        logical("long", "date"),
        logical("bytes", "decimal"),
        logical("bytes", "decimal", precision=2, scale=3),
        logical("bytes", "decimal", precision=10**9),
        logical("long", "no-such-type"),
        fixed(3, logicalType="uuid"),
        fixed(1, logicalType="decimal", precision=3),
    ],
)
def test_a_logical_type_that_does_not_fit_is_ignored(declared: dict[str, Any]) -> None:
    plain = {"string": "x", "long": 7, "bytes": b"xyz", "fixed": b"xyz"[: declared.get("size", 3)]}[declared["type"]]
    assert decode(declared, encode(declared, plain)) == plain


def test_items_of_zero_bytes_are_counted_in_the_whole_value() -> None:
    nulls = {"type": "array", "items": "null"}
    assert encode(record(nulls, nulls), {"f0": [None] * 2000, "f1": [None] * 2096})
    with pytest.raises(EncodeError, match="4096 items"):
        encode(record(nulls, nulls), {"f0": [None] * 2000, "f1": [None] * 2097})


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 16, 20])
def test_a_fixed_decimal_has_at_most_the_digits_that_always_fit(size: int) -> None:
    digits = 1
    while 10 ** (digits + 1) - 1 < 2 ** (8 * size - 1):
        digits += 1

    def declared(precision: int, scale: int = 0) -> Any:
        properties = {"logicalType": "decimal", "precision": precision, "scale": scale}
        schema: Any = parse(json.dumps({"type": "fixed", "name": "F", "size": size, **properties}))
        return schema.logical

    assert declared(digits).precision == digits
    assert declared(digits, digits).scale == digits
    # An invalid logical type is ignored, as the specification demands.
    assert declared(digits + 1) is None
    assert declared(digits, digits + 1) is None
    assert declared(0) is None
    assert declared(digits, -1) is None
