"""Compare the columns with Spark's `from_avro`: equal types, and equal values of all good rows."""

import json
import math
import struct
from collections.abc import Iterator
from datetime import time
from random import Random
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headgate.serdes import RegistryClient
from headgate.serdes.framing import frame
from headgate.spark_udfs import decode_frame, from_registry_avro
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.peers.good_bodies import GoodBodies
from tests.spark.registering import registered

ROWS = 1500
STRICT = {"mode": "FAILFAST", "datetimeRebaseMode": "CORRECTED"}
"""A row that `from_avro` cannot read fails the test. Both use the proleptic Gregorian calendar."""

ALL: dict[str, Any] = {
    "type": "record",
    "name": "All",
    "fields": [
        {"name": "a_boolean", "type": "boolean"},
        {"name": "an_int", "type": "int"},
        {"name": "a_long", "type": "long"},
        {"name": "a_float", "type": "float"},
        {"name": "a_double", "type": "double"},
        {"name": "some_bytes", "type": "bytes"},
        {"name": "a_string", "type": "string"},
        {"name": "an_enum", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        {"name": "a_fixed", "type": {"type": "fixed", "name": "Five", "size": 5}},
        {"name": "a_date", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time_ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "time_us", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "at_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "at_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local_ms", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "local_us", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "small", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "large", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}},
        {
            "name": "fixed_decimal",
            "type": {
                "type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 4,
            },
        },
        {"name": "a_uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "maybe_int", "type": ["null", "int"]},
        {"name": "maybe_string", "type": ["string", "null"]},
        {"name": "int_or_long", "type": ["int", "long"]},
        {"name": "float_or_double", "type": ["null", "float", "double"]},
        {"name": "several", "type": ["null", "boolean", "long", "string", {"type": "array", "items": "int"}]},
        {"name": "strings", "type": {"type": "array", "items": "string"}},
        {"name": "maybe_longs", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "doubles_by_name", "type": {"type": "map", "values": "double"}},
        {"name": "lists_by_name", "type": {"type": "map", "values": {"type": "array", "items": ["null", "string"]}}},
        {
            "name": "inner",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Inner",
                    "fields": [
                        {"name": "x", "type": "long"},
                        {"name": "kind", "type": "Kind"},
                        {"name": "when", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
                    ],
                },
            ],
        },
        {"name": "inners", "type": {"type": "array", "items": "Inner"}},
    ],
}  # fmt: skip

VERSIONS: tuple[dict[str, Any], ...] = (
    {
        "type": "record",
        "name": "Customer",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": "string"},
            {"name": "fax", "type": ["null", "string"]},
            {"name": "score", "type": "float"},
        ],
    },
    {
        "type": "record",
        "name": "Customer",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "score", "type": "float"},
            {"name": "city", "type": "string", "default": "?"},
        ],
    },
    {
        "type": "record",
        "name": "Customer",
        "fields": [
            {"name": "city", "type": "string", "default": "?"},
            {"name": "id", "type": "long"},
            {"name": "full_name", "type": "string", "aliases": ["name"]},
            {"name": "score", "type": "double"},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    },
)


@pytest.fixture(scope="module")
def from_avro(spark: SparkSession) -> Any:
    from tests.conftest import unavailable

    if "spark-avro" not in (spark.conf.get("spark.jars", "") or ""):
        unavailable("Spark's own Avro functions could not be fetched")
    from pyspark.sql.avro.functions import from_avro

    return from_avro


@pytest.fixture(scope="module")
def client(registry: HeadgateRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(registry.url) as client:
        yield client


def framed(spark: SparkSession, rows: list[tuple[int, bytes]]) -> DataFrame:
    return spark.createDataFrame(
        [(number, frame(schema_id, body)) for number, (schema_id, body) in enumerate(rows)], "row long, value binary"
    )


def without_nullability(kind: DataType) -> Any:
    """A type as nested names, without nullability: our columns are nullable, because bad rows are null."""
    if isinstance(kind, StructType):
        return [(field.name, without_nullability(field.dataType)) for field in kind.fields]
    if isinstance(kind, ArrayType):
        return ["array", without_nullability(kind.elementType)]
    if isinstance(kind, MapType):
        return ["map", without_nullability(kind.keyType), without_nullability(kind.valueType)]
    # spark-avro 4.1 and later uses Spark's time type for time-micros. Spark 4.0 has no such type; ours is a number.
    return "bigint" if kind.simpleString() == "time(6)" else kind.simpleString()


def same(ours: Any, theirs: Any) -> bool:
    """Equal values of equal types. NaN equals NaN, and 0.0 does not equal -0.0."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return (math.isnan(ours) and math.isnan(theirs)) or struct.pack("<d", ours) == struct.pack("<d", theirs)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(theirs, time):
        theirs = ((theirs.hour * 60 + theirs.minute) * 60 + theirs.second) * 1_000_000 + theirs.microsecond
    return type(ours) is type(theirs) and bool(ours == theirs)


def compare(decoded: DataFrame, theirs: Column) -> int:
    """Compare every field of every good row, and return the number of good rows."""
    both = decoded.where("reason IS NULL").select("row", "ours", theirs.alias("theirs"))
    assert without_nullability(both.schema["ours"].dataType) == without_nullability(both.schema["theirs"].dataType)
    rows = both.collect()
    for row in rows:
        for name, ours, peers in zip(row["ours"].__fields__, row["ours"], row["theirs"], strict=True):
            assert same(ours, peers), (row["row"], name, ours, peers)
    return len(rows)


def test_every_common_type_has_the_values_of_from_avro(
    spark: SparkSession, registry: HeadgateRegistry, client: RegistryClient, from_avro: Any
) -> None:
    subject = "peers-all-value"
    schema_id = registered(client, subject, ALL)
    bodies = GoodBodies(Random(7), ALL)
    raw = framed(spark, [(schema_id, bodies.body()) for _ in range(ROWS)])
    raw = raw.withColumn("body", F.expr("substring(value, 6)"))
    decoded = decode_frame(raw, subject, registry=registry.url).withColumnRenamed("value", "ours")
    assert compare(decoded, from_avro(F.col("body"), json.dumps(ALL), STRICT)) == ROWS


def test_three_versions_have_the_values_of_from_avro(
    spark: SparkSession, registry: HeadgateRegistry, client: RegistryClient, from_avro: Any
) -> None:
    subject = "peers-versions-value"
    ids = [registered(client, subject, version) for version in VERSIONS]
    rows = [
        (schema_id, bodies.body())
        for schema_id, version in zip(ids, VERSIONS, strict=True)
        for bodies in [GoodBodies(Random(schema_id), version)]
        for _ in range(300)
    ]
    raw = framed(spark, rows).withColumn("body", F.expr("substring(value, 6)"))
    column = from_registry_avro("value", subject, registry=registry.url)
    decoded = raw.select("row", "body", column.alias("decoded")).select("row", "body", "decoded.*")
    decoded = decoded.withColumnRenamed("value", "ours")
    options = {"avroSchema": json.dumps(VERSIONS[-1]), **STRICT}
    theirs = F.when(F.lit(False), None)
    for schema_id, version in zip(ids, VERSIONS, strict=True):
        theirs = theirs.when(F.col("schema_id") == schema_id, from_avro(F.col("body"), json.dumps(version), options))
    assert compare(decoded, theirs) == len(rows)


def test_selected_fields_have_the_values_of_the_full_decoding(
    spark: SparkSession, registry: HeadgateRegistry, client: RegistryClient, from_avro: Any
) -> None:
    subject, chosen = "peers-all-value", ["a_long", "inner", "a_string", "large"]
    schema_id = registered(client, subject, ALL)
    bodies = GoodBodies(Random(8), ALL)
    raw = framed(spark, [(schema_id, bodies.body()) for _ in range(ROWS)])
    raw = raw.withColumn("body", F.expr("substring(value, 6)"))
    decoded = decode_frame(raw, subject, fields=chosen, registry=registry.url).withColumnRenamed("value", "ours")
    names = decoded.schema["ours"].dataType.fieldNames()  # type: ignore[attr-defined]  # it is a struct
    assert set(names) == set(chosen)
    theirs = from_avro(F.col("body"), json.dumps(ALL), STRICT)
    assert compare(decoded, F.struct(*(theirs[name] for name in names))) == ROWS
