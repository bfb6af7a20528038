"""Three schema versions, payloads of each, and DataFrames of payloads."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.serdes import RegistryClient, SchemaDefinition, avro_schema
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from tests.live.headgate_registry import HeadgateRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CUSTOMER_V1: dict[str, Any] = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "fullname", "type": "string"},
        {"name": "fax", "type": "string"},
    ],
}
CUSTOMER_V2: dict[str, Any] = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "fullname", "type": "string"},
        {"name": "email", "type": ["null", "string"], "default": None},
    ],
}
"""`id` is promoted, `fax` removed, `email` added."""
CUSTOMER_V3: dict[str, Any] = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string", "aliases": ["fullname"]},
        {"name": "points", "type": "int", "default": 10},
    ],
}
"""`fullname` is renamed by alias, `points` added, the order changed."""
CUSTOMERS = (CUSTOMER_V1, CUSTOMER_V2, CUSTOMER_V3)


def register(registry: HeadgateRegistry, subject: str, *schemas: Any) -> list[int]:
    """Register the versions without compatibility checks, and return their ids."""
    with RegistryClient(registry.url) as client:
        ids: list[int] = []
        for schema in schemas:
            definition = schema if isinstance(schema, SchemaDefinition) else avro_schema(json.dumps(schema))
            found = client.register(subject, definition).id
            assert found is not None
            ids.append(found)
        return ids


def encoded(schema: Any, value: object, schema_id: int) -> bytes:
    return frame(schema_id, Encoder(parse(json.dumps(schema))).encode(value))


def frame_of(spark: "SparkSession", payloads: Sequence[bytes | None], slices: int = 2) -> "DataFrame":
    """A DataFrame of `n`, the row number, and `value`."""
    rows = [(number, None if payload is None else bytearray(payload)) for number, payload in enumerate(payloads)]
    df = spark.createDataFrame(rows, "n bigint, value binary")
    # Spark creates one partition per core by default.
    return df if slices == 2 else df.repartition(slices)


def rows_of(df: "DataFrame", by: str = "n") -> list[Any]:
    """The rows in order, sorted without a shuffle."""
    return sorted(df.collect(), key=lambda row: row[by])


def customers(ids: Sequence[int]) -> list[bytes]:
    return [
        encoded(CUSTOMER_V1, {"id": 1, "fullname": "Ada", "fax": "1815"}, ids[0]),
        encoded(CUSTOMER_V2, {"id": 2**40, "fullname": "Bob", "email": "b@x"}, ids[1]),
        encoded(CUSTOMER_V3, {"id": 3, "name": "Cyd", "email": None, "points": 5}, ids[2]),
    ]
