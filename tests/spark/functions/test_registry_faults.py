"""Registry requests of executors, and registry outages."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark_udfs import decode_frame, from_registry_avro, poison_reason
from tests.spark.functions.counting_registry import counting_registry
from tests.spark.functions.forms import FORMS
from tests.spark.functions.payloads import CUSTOMER_V1, CUSTOMER_V2, encoded, frame_of, rows_of
from tests.unit.serdes.stub_registry import StubRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 8
RUNS = 3
WORKERS = 2
"""The number of Python workers of `local[2]`."""


def test_unknown_schema_ids_are_requested_once_per_worker(spark: "SparkSession") -> None:
    stub = StubRegistry()
    first = stub.add("counted-value", {"schema": json.dumps(CUSTOMER_V1)})
    with counting_registry(stub) as url:
        df = frame_of(spark, [b"x"])
        column = from_registry_avro("value", "counted-value", registry=url)
        late = stub.add("counted-value", {"schema": json.dumps({**CUSTOMER_V1, "doc": "late"})})
        value = {"id": 1, "fullname": "Ada", "fax": "1"}
        rows = [encoded(CUSTOMER_V1, value, (first, late, 77)[number % 3]) for number in range(300)]
        del stub.requests[:]
        df = frame_of(spark, rows, TASKS).select(column.alias("d"))
        for _ in range(RUNS):
            counts = {row.reason: row["count"] for row in df.groupBy("d.reason").count().collect()}
            assert counts == {None: 200, "UNKNOWN_SCHEMA": 100}
        asked = stub.paths()
    assert 1 <= asked.count(f"GET /schemas/ids/{late}") <= WORKERS
    assert 1 <= asked.count("GET /schemas/ids/77") <= WORKERS
    assert set(asked) == {f"GET /schemas/ids/{late}", "GET /schemas/ids/77"}


def test_a_registry_outage_adds_reasons_and_loses_no_row(spark: "SparkSession") -> None:
    stub = StubRegistry()
    first = stub.add("dying-value", {"schema": json.dumps(CUSTOMER_V1)})
    with counting_registry(stub) as url:
        decoded = decode_frame(
            frame_of(
                spark,
                [
                    encoded(CUSTOMER_V1, {"id": number, "fullname": "Ada", "fax": "1"}, first)
                    if number % 2
                    else encoded(CUSTOMER_V2, {"id": number, "fullname": "Bob", "email": None}, first + 1)
                    for number in range(100)
                ],
                4,
            ),
            "dying-value",
            registry={"registry.url": url, "registry.retries": "1", "registry.timeout.ms": "500"},
            on_registry_down="DEAD_LETTER",
        )
    rows = rows_of(decoded)
    assert [row.n for row in rows] == list(range(100))
    assert [row.reason for row in rows] == [None if number % 2 else "REGISTRY_UNAVAILABLE" for number in range(100)]
    assert all(row.raw is not None for row in rows[::2])
    assert [row.value.id for row in rows[1::2]] == list(range(1, 100, 2))


def by_reason(df: "DataFrame", subject: str, **options: Any) -> "DataFrame":
    return df.select(poison_reason("value", subject, **options))


@pytest.mark.parametrize("decode", [*FORMS, by_reason])
def test_a_registry_outage_fails_the_task_if_requested(spark: "SparkSession", decode: Any) -> None:
    stub = StubRegistry()
    first = stub.add("failing-value", {"schema": json.dumps(CUSTOMER_V1)})
    df = frame_of(spark, [encoded(CUSTOMER_V1, {"id": 1, "fullname": "Ada", "fax": "1"}, first + 1)])
    with counting_registry(stub) as url:
        registry = {"registry.url": url, "registry.retries": "0"}
        decoded = decode(df, "failing-value", registry=registry, on_registry_down="FAIL")
    with pytest.raises(Exception, match="The schema registry did not return a schema"):
        decoded.collect()
