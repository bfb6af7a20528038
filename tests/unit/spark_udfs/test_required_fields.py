"""Nullability of decoded fields, in types and arrays."""

import json
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import parse
from headgate.spark_udfs.executor.required_fields import with_required, with_type
from headgate.spark_udfs.executor.spark_types import spark_type

ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "only", "type": ["long"]},
        {"name": "either", "type": ["long", "string"]},
        {"name": "nothing", "type": "null"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "holes", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "labels", "type": {"type": "map", "values": "string"}},
        {"name": "address", "type": ["null", ADDRESS]},
        {"name": "home", "type": "Address"},
    ],
}
TEXT = pa.string()
PLACE = pa.struct([("city", TEXT)])
KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("note", TEXT),
        ("only", pa.int64()),
        ("either", pa.struct([("member0", pa.int64()), ("member1", TEXT)])),
        ("nothing", pa.null()),
        ("tags", pa.list_(TEXT)),
        ("holes", pa.list_(pa.int32())),
        ("labels", pa.map_(TEXT, TEXT)),
        ("address", PLACE),
        ("home", PLACE),
    ]
)
ROW: dict[str, Any] = {
    "id": 1,
    "note": None,
    "only": 2,
    "either": {"member0": None, "member1": "x"},
    "nothing": None,
    "tags": ["a", "b"],
    "holes": [None, 3],
    "labels": [("k", "v")],
    "address": None,
    "home": {"city": "Delft"},
}


@pytest.fixture
def required() -> pa.DataType:
    return with_required(KIND, parse(json.dumps(SCHEMA)))


def test_fields_other_than_unions_are_not_nullable(required: pa.DataType) -> None:
    assert [field.name for field in required if not field.nullable] == ["id", "tags", "holes", "labels", "home"]
    assert not required.field("tags").type.value_field.nullable
    assert required.field("holes").type.value_field.nullable
    assert not required.field("address").type.field("city").nullable
    assert all(member.nullable for member in required.field("either").type)


def test_the_spark_type_has_the_same_nullability(required: pa.DataType) -> None:
    pytest.importorskip("pyspark")
    from pyspark.sql.types import ArrayType, StructType

    kind = spark_type(required)
    assert isinstance(kind, StructType)
    assert [field.name for field in kind if not field.nullable] == ["id", "tags", "holes", "labels", "home"]
    tags = kind["tags"].dataType
    assert isinstance(tags, ArrayType)
    assert not tags.containsNull


@pytest.mark.parametrize("rows", [[ROW, ROW], [ROW, None, ROW], [None, None], []])
def test_values_are_unchanged_with_the_new_type(required: pa.DataType, rows: list[Any]) -> None:
    array = pa.array(rows, KIND)
    made = with_type(array, required)
    assert made.type == required
    assert made.to_pylist() == array.to_pylist()


def test_a_slice_keeps_its_offset(required: pa.DataType) -> None:
    rows = [None, ROW, {**ROW, "id": 7, "tags": []}, None, {**ROW, "id": 8, "tags": ["z"]}]
    part = pa.array(rows, KIND).slice(1, 3)
    assert with_type(part, required).to_pylist() == part.to_pylist()


def test_recursive_records_are_marked_at_every_level() -> None:
    schema = {
        "type": "record",
        "name": "Tree",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "next", "type": ["null", "Tree"]},
            {"name": "children", "type": {"type": "array", "items": "Tree"}},
        ],
    }
    leaf = pa.struct([("id", pa.int64())])
    kind = with_required(pa.struct([("id", pa.int64()), ("next", leaf)]), parse(json.dumps(schema)))
    assert [field.nullable for field in kind] == [False, True]
    assert not kind.field("next").type.field("id").nullable
