"""Columns of JSON Schema and Protobuf."""

import json
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from pyarrow import lib as pa

from headgate.serdes.framing import frame
from headgate.serdes.protobuf.messages import Messages
from headgate.spark_udfs.executor import json_schema_columns
from headgate.spark_udfs.executor.column_converter import ConversionError
from headgate.spark_udfs.executor.json_schema_columns import json_schema_converter
from headgate.spark_udfs.executor.protobuf_columns import protobuf_converter
from tests.unit.spark_udfs.plans import binary, decoding


def kind_of(schema: Any, references: dict[str, Any] | None = None) -> str:
    texts = {name: json.dumps(text) for name, text in (references or {}).items()}
    return str(json_schema_converter(json.dumps(schema), texts).arrow_type)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "int64"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"type": ["null", "integer"]}, "int64"),
        ({"type": ["string", "integer"]}, "string"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "int64"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "string"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, "b"]}, "string"),
        ({"const": "a"}, "string"),
        ({"type": "array", "items": {"type": "integer"}}, "list<item: int64>"),
        ({"type": "array"}, "string"),
        ({"type": "array", "items": [{"type": "integer"}]}, "string"),
        ({"type": "object"}, "string"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string, double>"),
        ({"type": "object", "properties": {"a": {"type": "string"}, "b": True}}, "struct<a: string, b: string>"),
        ({"properties": {"a": {"type": "string"}}}, "string"),
        (True, "string"),
        ({"$ref": "#/definitions/x", "definitions": {"x": {"type": "integer"}}}, "int64"),
        ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "integer"}}}, "int64"),
        ({"$ref": "#/$defs/x", "definitions": {"x": {"type": "integer"}}}, "int64"),
        ({"$ref": "#/definitions/x", "$defs": {"x": {"type": "integer"}}}, "int64"),
        ({"$ref": "#/nowhere"}, "string"),
        ({"$ref": "#/definitions/x", "definitions": {"x": {"$ref": "#/definitions/x"}}}, "string"),
    ],
)
def test_a_json_schema_has_the_expected_column_type(schema: Any, kind: str) -> None:
    assert kind_of(schema) == kind


def test_a_reference_to_another_schema_is_resolved() -> None:
    place = {"type": "object", "properties": {"city": {"$ref": "#/definitions/name"}}}
    other = {"definitions": {"place": place, "name": {"type": "string"}}}
    assert kind_of({"$ref": "place.json#/definitions/place"}, {"place.json": other}) == "struct<city: string>"


def test_recursive_json_schemas_end_in_json_text() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert "left: string" in kind_of(tree)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2**63),
        ({"type": "integer"}, 1.5),
        ({"type": "integer"}, True),
        ({"type": "integer"}, float("inf")),
        ({"type": "number"}, 10**400),
        ({"type": "number"}, float("inf")),
        ({"type": "string"}, "\ud800"),
        ({"type": "string"}, 5),
        ({"type": "boolean"}, 1),
        ({"type": "array", "items": {"type": "integer"}}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, []),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"\udfff": 1}),
    ],
)
def test_a_value_that_the_column_cannot_represent_is_rejected(schema: Any, value: Any) -> None:
    with pytest.raises(ConversionError):
        json_schema_converter(json.dumps(schema), {}).convert(value)


def test_values_are_converted_to_the_column_type() -> None:
    assert json_schema_converter('{"type": "integer"}', {}).convert(5.0) == 5
    assert json_schema_converter("{}", {}).convert({"ö": [1, None]}) == '{"ö":[1,null]}'


def test_json_payloads_are_decoded_with_reasons() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    bodies = (b'{"a": 1, "b": 2}', b'{"b": 2}', b"[", b'{"a": 1} x', b'{"a": 18446744073709551616}')
    rows = [frame(1, body) for body in bodies]
    columns = decoding(schema, language="JSON").decode(binary([*rows, None, b"\1"]))
    assert columns.values.to_pylist() == [{"a": 1}, None, None, None, None, None, None]
    assert columns.reasons.to_pylist() == [
        None, "INVALID_VALUE", "TRUNCATED", "TRAILING_BYTES", "INVALID_VALUE", "NULL", "TOO_SHORT",
    ]  # fmt: skip
    assert columns.schema_ids.to_pylist() == [1, 1, 1, 1, 1, None, None]


PROTO = """
syntax = "proto2";
message M {
  required int32 a = 1;
  optional uint64 b = 2 [default = 7];
  repeated M more = 3;
  enum E { X = 0; Y = 1; }
  optional E e = 4;
  map<int32, string> names = 5;
}
"""


def test_protobuf_payloads_are_decoded_with_reasons() -> None:
    good = b"\x00\x08\x05\x1a\x02\x08\x06\x20\x01\x2a\x05\x08\x01\x12\x01x"
    bodies = (good, b"\x00", b"\x00\x08", b"\x00\x08\x05\x1a\x09", b"", b"\x00\x08\x05\x20\x09")
    rows = [frame(1, body) for body in bodies]
    columns = decoding(PROTO, language="PROTOBUF").decode(binary(rows))
    first = columns.values.to_pylist()[0]
    assert (first["a"], first["b"], first["e"], first["names"]) == (5, None, "Y", [(1, "x")])
    assert [inner["a"] for inner in first["more"]] == [6]
    assert columns.reasons.to_pylist() == [None, "INVALID_VALUE", "TRUNCATED", "TRUNCATED", "TRUNCATED", None]


def test_recursive_messages_end_in_bytes() -> None:
    shape = protobuf_converter(Messages(PROTO, {}).first())
    inner = shape.arrow_type.field("more").type.value_type
    assert inner.field("more").type.value_type == pa.binary()


@pytest.mark.parametrize(
    ("seconds", "nanos", "micros"),
    [
        (0, 0, 0),
        (1, 999_999_999, 1_999_999),
        (-1, 1_000, -999_999),
        (-62_135_596_800, 0, -62_135_596_800_000_000),
        (253_402_300_799, 999_999_999, 253_402_300_799_999_999),
        (-62_135_596_801, 0, None),
        (253_402_300_800, 0, None),
        (0, -1, None),
        (0, 10**9, None),
    ],
)
def test_timestamps_of_protobuf_are_microseconds_of_the_years_1_to_9999(
    seconds: int, nanos: int, micros: int | None
) -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
    )
    message = timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos).SerializeToString()
    body = b"\0\x0a" + bytes([len(message)]) + message
    columns = decoding(text, language="PROTOBUF").decode(binary([frame(1, body)]))
    assert columns.reasons.to_pylist() == ["INVALID_VALUE" if micros is None else None]
    if micros is not None:
        assert columns.values.field("at")[0].value == micros


def test_null_entries_of_objects_and_arrays_stay_null() -> None:
    numbers = json_schema_converter('{"type": "object", "additionalProperties": {"type": "number"}}', {})
    assert numbers.convert({"a": None, "b": 1}) == [("a", None), ("b", 1.0)]
    listed = json_schema_converter('{"type": "array", "items": {"type": "integer"}}', {})
    assert listed.convert([None, 2.0]) == [None, 2]
    known = json_schema_converter('{"type": "object", "properties": {"a": {"type": "integer"}}}', {})
    assert (known.convert({"a": None}), known.convert({}), known.convert({"a": 3})) == (
        {"a": None},
        {"a": None},
        {"a": 3},
    )


def test_columns_of_a_json_schema_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema_columns, "COLUMNS_MAX", 3)
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    assert kind_of(schema) == "struct<a: int64, b: int64>"
    schema["properties"]["c"] = {"type": "integer"}
    assert kind_of(schema) == "struct<a: int64, b: int64, c: string>"
    monkeypatch.setattr(json_schema_columns, "COLUMNS_MAX", 100)
    monkeypatch.setattr(json_schema_columns, "DEPTH_MAX", 1)
    deep = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    assert kind_of(deep) == "list<item: list<item: string>>"
