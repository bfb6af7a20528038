"""Arrow columns to framed Avro: encoded values, and errors of rows and columns."""

import datetime
import json
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import Decoder, parse
from headgate.serdes.columnar import ColumnarEncoder, Engine, NotEncodable
from headgate.serdes.outcome import Reason
from tests.unit.columnar.checked import Checked


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def encode(schema: Any, column: pa.Array, engine: Engine | None = None) -> list[Any]:
    """The decoded value or the reason of each row."""
    parsed = parse(json.dumps(schema))
    encoded = ColumnarEncoder(parsed, 258, engine=engine).encode(column)
    encoded.payloads.validate(full=True)
    out: list[Any] = []
    for payload, reason in zip(encoded.payloads.to_pylist(), encoded.reasons.to_pylist(), strict=True):
        assert (payload is None) == (reason != 0)
        assert payload is None or payload[:5] == b"\0\0\0\1\2"
        out.append(Reason(reason) if payload is None else Decoder(parsed).decode(payload[5:]))
    return out


@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
def test_rows_are_written_as_the_row_wise_decoder_reads_them(engine: Engine | None) -> None:
    schema = record(
        ("id", "long"),
        ("name", ["null", "string"]),
        ("scores", {"type": "array", "items": "double"}),
        ("labels", {"type": "map", "values": "int"}),
        ("kind", {"type": "enum", "name": "K", "symbols": ["A", "B"]}),
        ("either", ["string", "null", "long"]),
    )
    rows: list[dict[str, Any]] = [
        {
            "id": number,
            "name": None if number % 3 else "n" * number,
            "scores": [0.5] * (number % 4),
            "kind": "AB"[number % 2],
        }
        for number in range(50)
    ]
    members = [{"member0": "x", "member1": None}, {"member0": None, "member1": 7}, None]
    kind = pa.struct(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("scores", pa.list_(pa.float64())),
            ("labels", pa.map_(pa.string(), pa.int32())),
            ("kind", pa.string()),
            ("either", pa.struct([("member0", pa.string()), ("member1", pa.int64())])),
        ]
    )
    given = [{**row, "labels": [("a", row["id"])], "either": members[row["id"] % 3]} for row in rows]
    column = pa.array(given, kind)
    expected = [{**row, "labels": {"a": row["id"]}, "either": ["x", 7, None][row["id"] % 3]} for row in rows]
    assert encode(schema, column, engine) == expected
    assert encode(schema, column.slice(7, 20), engine) == expected[7:27]
    assert encode(schema, pa.chunked_array([column.slice(0, 5), column.slice(5)]), engine) == expected


def test_large_rows_enlarge_the_output() -> None:
    texts = ["x" * (3**size) for size in range(11)]
    assert encode(record(("t", "string")), pa.array([{"t": text} for text in texts])) == [{"t": text} for text in texts]


@pytest.mark.parametrize(
    ("schema", "values", "kind", "reason"),
    [
        (record(("a", "int")), [{"a": None}], pa.struct([("a", pa.int32())]), Reason.INVALID_VALUE),
        (record(("a", "int")), [None], pa.struct([("a", pa.int32())]), Reason.NULL),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["Z"], pa.string(), Reason.INVALID_VALUE),
        ({"type": "string", "logicalType": "uuid"}, ["no"], pa.string(), Reason.INVALID_VALUE),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, ["no"], pa.string(), Reason.INVALID_VALUE),
        ({"type": "int", "logicalType": "time-millis"}, [datetime.time(1)], pa.time32("ms"), None),
        ({"type": "long", "logicalType": "timestamp-millis"}, [2**60], pa.int64(), Reason.INVALID_VALUE),
        (["int", "string"], [{"member0": 1, "member1": "x"}], None, Reason.INVALID_VALUE),
        (["int", "string"], [{"member0": None, "member1": None}], None, Reason.INVALID_VALUE),
        ({"type": "array", "items": "null"}, [[None] * 5000], pa.list_(pa.null()), Reason.INVALID_VALUE),
        (
            {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 0},
            [9999],
            pa.decimal128(4, 0),
            None,
        ),
    ],
)
def test_a_row_that_does_not_match_the_schema_has_a_reason(schema: Any, values: Any, kind: Any, reason: Any) -> None:
    members = pa.struct([("member0", pa.int32()), ("member1", pa.string())])
    outcome = encode(schema, pa.array(values, kind or members))
    assert outcome == [reason] if reason else not isinstance(outcome[0], Reason)


def test_good_rows_next_to_a_bad_one_are_encoded() -> None:
    column = pa.array([{"a": 1}, {"a": None}, {"a": 3}], pa.struct([("a", pa.int32())]))
    assert encode(record(("a", "int")), column) == [{"a": 1}, Reason.INVALID_VALUE, {"a": 3}]


def test_columns_that_arrow_can_cast_are_cast() -> None:
    schema = record(("a", "long"), ("b", "string"), ("c", {"type": "array", "items": "long"}))
    kind = pa.struct([("a", pa.int16()), ("b", pa.large_string()), ("c", pa.large_list(pa.int8()))])
    assert encode(schema, pa.array([{"a": 1, "b": "x", "c": [2]}], kind)) == [{"a": 1, "b": "x", "c": [2]}]


def test_a_missing_column_gets_the_default_of_its_field() -> None:
    schema = record(("a", "int"))
    schema["fields"].append({"name": "d", "type": ["null", "string"], "default": None})
    schema["fields"].append({"name": "e", "type": {"type": "array", "items": "int"}, "default": [1, 2]})
    assert encode(schema, pa.array([{"a": 1}])) == [{"a": 1, "d": None, "e": [1, 2]}]


@pytest.mark.parametrize(
    ("schema", "column", "detail"),
    [
        (record(("a", "int"), ("b", "int")), [{"a": 1}], "b: the column is missing"),
        (record(("a", "int")), [{"a": 1, "z": 2}], "no field z"),
        (record(("a", record(("b", "int")) | {"name": "S"})), [{"a": {"b": "x"}}], r"a\.b: a column of string"),
        (record(("a", "int")), ["x"], "not a struct"),
        (record(("a", {"type": "array", "items": "int"})), [{"a": 1}], "a: a column of int64 is not a list"),
        (["int", "string"], [1], "struct of members"),
        ("null", [1], "only null"),
    ],
)
def test_a_column_that_does_not_match_is_rejected_with_its_name(schema: Any, column: Any, detail: str) -> None:
    with pytest.raises(NotEncodable, match=detail):
        encode(schema, pa.array(column))


def test_a_schema_of_bytes_is_written_without_a_length() -> None:
    encoded = ColumnarEncoder(parse('"bytes"'), 1).encode(pa.array([b"abc", b""]))
    assert encoded.payloads.to_pylist() == [b"\0\0\0\0\1abc", b"\0\0\0\0\1"]
