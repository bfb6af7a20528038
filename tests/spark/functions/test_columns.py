"""`from_registry_avro`, `poison_reason` and `schema_id` in a Spark session."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark_udfs import (
    OptionError,
    PolicyError,
    ReaderError,
    RegistryNotReady,
    from_registry_avro,
    poison_reason,
    register_function,
    schema_id,
)
from headgate.spark_udfs.databricks import from_avro
from headgate.spark_udfs.driver.session_settings import COLUMNAR_INPUT
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import CUSTOMER_V2, CUSTOMERS, customers, encoded, frame_of, register, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def ids(registry: HeadgateRegistry) -> list[int]:
    return register_all(registry, "columns-value")


def register_all(registry: HeadgateRegistry, subject: str) -> list[int]:
    import httpx

    httpx.put(f"{registry.url}/config/{subject}", json={"compatibility": "NONE"}).raise_for_status()
    return register(registry, subject, *CUSTOMERS)


def structs_of(df: "DataFrame") -> list[Any]:
    return [row.d.asDict(recursive=True) for row in rows_of(df)]


def test_versions_with_added_removed_promoted_and_renamed_fields_become_one_column(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    df = frame_of(spark, customers(ids))
    decoded = df.select("n", from_registry_avro("value", "columns-value", registry=registry.url).alias("d"))
    assert decoded.schema["d"].dataType.simpleString() == (
        "struct<value:struct<email:string,id:bigint,name:string,points:int>,reason:string,schema_id:bigint,raw:binary>"
    )
    assert [row["value"] for row in structs_of(decoded)] == [
        {"email": None, "id": 1, "name": "Ada", "points": 10},
        {"email": "b@x", "id": 2**40, "name": "Bob", "points": 10},
        {"email": None, "id": 3, "name": "Cyd", "points": 5},
    ]
    assert [row["schema_id"] for row in structs_of(decoded)] == ids


def test_required_fields_are_not_nullable_and_bad_rows_are_null(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    from pyspark.sql.types import StructType

    good = customers(ids)
    column = from_registry_avro("value", "columns-value", registry=registry.url)
    decoded = (
        frame_of(spark, [good[0], b"x", good[1], good[2][:-1], None, good[2]]).coalesce(1).select(column.alias("d"))
    )
    outcome = decoded.schema["d"].dataType
    assert isinstance(outcome, StructType)
    value = outcome["value"].dataType
    assert isinstance(value, StructType)
    assert outcome["value"].nullable
    # PySpark 4.0 uses pandas, where every field is nullable.
    assert {field.name for field in value if field.nullable} in ({"email"}, set(value.names))
    assert [row.id for row in decoded.select("d.value.id").collect()] == [1, None, 2**40, None, None, 3]
    assert decoded.where("d.value.id IS NULL").count() == decoded.where("d.value IS NULL").count() == 3
    assert decoded.where("d.value.name = ''").count() == 0


def test_the_reader_can_be_a_version_an_id_or_a_schema_text(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    df = frame_of(spark, customers(ids)[:2])
    second = {"id": 1, "fullname": "Ada", "email": None}, {"id": 2**40, "fullname": "Bob", "email": "b@x"}
    choices: list[dict[str, Any]] = [
        {"subject": "columns-value", "version": 2},
        {"schema_id": ids[1]},
        {"schema": json.dumps(CUSTOMER_V2)},
        {"subject": "columns-value", "schema": json.dumps(CUSTOMER_V2)},
    ]
    for choice in choices:
        decoded = df.select("n", from_registry_avro(df.value, registry=registry.url, **choice).alias("d"))
        assert tuple(row["value"] for row in structs_of(decoded)) == second, choice


def test_a_projection_keeps_only_its_fields(spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]) -> None:
    df = frame_of(spark, customers(ids))
    column = from_registry_avro("value", "columns-value", registry=registry.url, fields=["name", "id"])
    assert [row["value"] for row in structs_of(df.select("n", column.alias("d")))] == [
        {"id": 1, "name": "Ada"},
        {"id": 2**40, "name": "Bob"},
        {"id": 3, "name": "Cyd"},
    ]


def test_each_mode_handles_a_bad_row(spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]) -> None:
    good = customers(ids)[2]
    df = frame_of(spark, [good, good[:-1], None])

    def decoded(mode: str) -> list[Any]:
        column = from_registry_avro("value", "columns-value", registry=registry.url, on_poison=mode)
        return structs_of(df.select("n", column.alias("d")))

    kept = decoded("dead_letter")
    assert [(row["reason"], row["raw"]) for row in kept] == [
        (None, None), ("TRUNCATED", bytearray(good[:-1])), ("NULL", None),
    ]  # fmt: skip
    assert [row["value"] is None for row in kept] == [False, True, True]
    assert [sorted(row) for row in decoded("NULL")] == [["reason", "schema_id", "value"]] * 3
    with pytest.raises(Exception, match=r"PoisonError.*(TRUNCATED|NULL)") as caught:
        decoded("FAIL")
    text = str(caught.value)
    assert f"schema id {ids[2]}" in text or "the payload is null" in text


def test_a_failed_task_reports_the_bytes_of_the_bad_row(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    bad = customers(ids)[2] + b"!"
    df = frame_of(spark, [bad])
    column = from_registry_avro("value", "columns-value", registry=registry.url, on_poison="FAIL")
    with pytest.raises(Exception, match="TRAILING_BYTES") as caught:
        df.select(column).collect()
    assert bad[:8].hex() in str(caught.value)
    assert f"schema id {ids[2]}" in str(caught.value)


@pytest.mark.usefixtures("_classic_session")
def test_schema_ids_are_read_without_python_and_without_a_registry(spark: "SparkSession", ids: list[int]) -> None:
    rows = [customers(ids)[0], b"\0\xff\xff\xff\xff", b"\1\0\0\0\1", b"\0\0\0\1", b"", None]
    df = frame_of(spark, rows).select("n", schema_id("value").alias("id"))
    assert [row.id for row in rows_of(df)] == [ids[0], 2**32 - 1, None, None, None, None]
    plan = df._jdf.queryExecution().toString()
    assert "Python" not in plan


def test_poison_reason_returns_only_the_reason(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    good = customers(ids)[0]
    df = frame_of(spark, [good, good[:-1], b"x", good])
    reason = poison_reason("value", "columns-value", registry=registry.url)
    found = rows_of(df.select("n", reason.alias("r")))
    assert [row.r for row in found] == [None, "TRUNCATED", "TOO_SHORT", None]


def stored(spark: "SparkSession", folder: Path, payloads: list[bytes]) -> "DataFrame":
    frame_of(spark, payloads).write.parquet(str(folder / "stored"))
    return spark.read.parquet(str(folder / "stored"))


def settings_of(spark: "SparkSession") -> list[Any]:
    return spark.sql("SET").collect()


def test_the_functions_change_no_setting_of_the_session(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    before = settings_of(spark)
    df = frame_of(spark, customers(ids))
    df.select(from_registry_avro("value", "columns-value", registry=registry.url), schema_id("value"))
    df.select(poison_reason("value", "columns-value", registry=registry.url))
    register_function(spark, "decode_columns", "columns-value", registry=registry.url)
    assert settings_of(spark) == before


@pytest.mark.usefixtures("_classic_session")
@pytest.mark.parametrize("is_columnar", ["true", "false"])
def test_parquet_columns_are_decoded_once_per_row(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int], tmp_path: Path, is_columnar: str
) -> None:
    before = spark.conf.get(COLUMNAR_INPUT, None)
    spark.conf.set(COLUMNAR_INPUT, is_columnar)
    try:
        df = stored(spark, tmp_path, customers(ids))
        decoded = df.select("n", from_registry_avro("value", "columns-value", registry=registry.url).alias("d"))
        plan = decoded.select("d.value.*")._jdf.queryExecution().executedPlan().toString()
        assert plan.count("ArrowEvalPython") == 1, "all fields come from one call"
        assert [row["value"]["id"] for row in structs_of(decoded)] == [1, 2**40, 3]
    finally:
        if before is None:
            spark.conf.unset(COLUMNAR_INPUT)
        else:
            spark.conf.set(COLUMNAR_INPUT, before)


def test_the_registry_address_comes_from_the_spark_configuration(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    spark.conf.set("spark.headgate.registry.url", registry.url)
    try:
        df = frame_of(spark, customers(ids)).select(from_registry_avro("value", "columns-value").alias("d"))
        assert df.where("d.reason IS NULL").count() == 3
    finally:
        spark.conf.unset("spark.headgate.registry.url")


def test_invalid_arguments_fail_on_the_driver_with_advice(
    spark: "SparkSession", registry: HeadgateRegistry, ids: list[int]
) -> None:
    with pytest.raises(RegistryNotReady, match=r"registry at http://127\.0\.0\.1:9 does not respond.*Check"):
        from_registry_avro(
            "value", "columns-value", registry={"registry.url": "http://127.0.0.1:9", "registry.retries": "0"}
        )
    with pytest.raises(ReaderError, match="spelling"):
        from_registry_avro("value", "colums-value", registry=registry.url)
    with pytest.raises(ReaderError, match="no field 'nam'"):
        from_registry_avro("value", "columns-value", registry=registry.url, fields=["nam"])
    with pytest.raises(ReaderError, match="subject"):
        from_registry_avro("value", registry=registry.url)
    with pytest.raises(PolicyError, match="DEAD_LETTER"):
        from_registry_avro("value", "columns-value", registry=registry.url, on_poison="IGNORE")
    with pytest.raises(OptionError, match=r"registry\.ulr"):
        from_registry_avro("value", "columns-value", registry={"registry.ulr": registry.url})


def test_from_avro_has_the_parameters_and_modes_of_databricks(
    spark: "SparkSession", registry: HeadgateRegistry
) -> None:
    (number,) = register(registry, "databricks-value", CUSTOMER_V2)
    good = encoded(CUSTOMER_V2, {"id": 1, "fullname": "Ada", "email": None}, number)
    df = frame_of(spark, [good, good[:-1]])
    place: dict[str, Any] = {"subject": "databricks-value", "schemaRegistryAddress": registry.url}
    decoded = df.select("n", from_avro(data=df.value, options={"mode": "PERMISSIVE"}, **place).alias("value"))
    assert decoded.schema["value"].dataType.simpleString() == "struct<id:bigint,fullname:string,email:string>"
    assert [row.value and row.value.fullname for row in rows_of(decoded)] == ["Ada", None]
    with pytest.raises(Exception, match="TRUNCATED"):
        df.select(from_avro("value", **place)).collect()
