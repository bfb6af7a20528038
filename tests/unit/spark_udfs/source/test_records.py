"""Rows of a DataFrame become records."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from pyarrow import lib as pa
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.spark_udfs.source import row_writer
from headgate.spark_udfs.source.errors import BadOption, UnwritableRow
from headgate.spark_udfs.source.options import WriteOptions, write_options
from headgate.spark_udfs.source.records import Record, Rows, check_columns
from headgate.spark_udfs.source.row_writer import RowStreamWriter

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
INSTANT = datetime(2023, 11, 14, 22, 13, 20, 123_999, UTC)
INSTANT_MS = 1_700_000_000_123
WITH_TOPIC = write_options({"bootstrap.servers": "a:1", "topic": "orders"})


TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "timestamp": TimestampType(),
    "struct": StructType([StructField("id", IntegerType())]),
    "map": MapType(StringType(), BinaryType()),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


EVERY = {
    "topic": "string",
    "key": "binary",
    "value": "binary",
    "partition": "int",
    "timestamp": "timestamp",
    "headers": "headers",
}


def schema(**columns: str) -> StructType:
    return StructType([StructField(name, TYPES[kind]) for name, kind in columns.items()])


def records(option: str | None = "orders", /, **columns: Any) -> list[Record]:
    return list(Rows(pa.RecordBatch.from_pydict(columns), option))


@pytest.mark.parametrize(
    ("columns", "topic", "problem"),
    [
        ({"value": "binary"}, "orders", None),
        ({"value": "string", "key": "string", "other": "map"}, "orders", None),
        (EVERY, None, None),
        (
            {"key": "binary", "id": "int"},
            "orders",
            "'value': the DataFrame has no column value; its columns are key, id",
        ),
        ({"value": "binary"}, None, "'topic': set the option topic, or add a column topic"),
        ({"value": "struct"}, "orders", r"value must be binary or string, not struct<id:int>; encode it with"),
        ({"value": "binary", "key": "int"}, "orders", r"column key must be binary or string, not int$"),
        ({"value": "binary", "topic": "int"}, "orders", "column topic must be string, not int"),
        ({"value": "binary", "partition": "long"}, "orders", "column partition must be int, not bigint"),
        ({"value": "binary", "timestamp": "long"}, "orders", "column timestamp must be timestamp, not bigint"),
        ({"value": "binary", "headers": "map"}, "orders", "column headers must be array<struct<key:string"),
    ],
)
def test_the_columns_of_a_sink_have_fixed_types(
    columns: dict[str, str], topic: str | None, problem: str | None
) -> None:
    if problem is None:
        check_columns(schema(**columns), topic)
    else:
        with pytest.raises(BadOption, match=problem):
            check_columns(schema(**columns), topic)


def test_every_column_becomes_a_part_of_the_record() -> None:
    found = records(
        None,
        topic=["a", "b"],
        key=["é", None],
        value=[b"1", None],
        partition=pa.array([3, None], pa.int32()),
        timestamp=pa.array([INSTANT, datetime(1969, 12, 31, 23, 59, 59, 999_001, UTC)], pa.timestamp("us", "UTC")),
        headers=pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None], HEADERS),
        other=[1, 2],
    )
    assert found == [
        Record("a", 3, "é".encode(), b"1", INSTANT_MS, [("h", b"1"), ("h", None)]),
        Record("b", None, None, None, -1, []),
    ]


def test_the_option_topic_replaces_the_column_and_missing_columns_have_defaults() -> None:
    before = int(time.time() * 1000)
    (record,) = records("orders", value=["v"])
    assert record[:4] == ("orders", None, None, b"v")
    assert before <= record.timestamp_ms <= time.time() * 1000
    (record,) = records("orders", topic=["other"], value=[b"v"])
    assert record.topic == "orders"


def test_a_missing_timestamp_is_the_current_time() -> None:
    before = int(time.time() * 1000)
    first, second = records(value=[b"1", b"2"], timestamp=pa.array([None, INSTANT], pa.timestamp("us", "UTC")))
    assert before <= first.timestamp_ms <= time.time() * 1000
    assert second.timestamp_ms == INSTANT_MS


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"topic": ["a", None], "value": [b"1", b"2"]}, "column topic is null"),
        ({"topic": ["a"], "value": [b"1"], "headers": pa.array([[None]], HEADERS)}, "a header without a key"),
        (
            {"topic": ["a"], "value": [b"1"], "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)},
            "a header without a key",
        ),
    ],
)
def test_a_row_that_is_no_record_fails_the_task(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnwritableRow, match=problem):
        records(None, **columns)


def test_rows_of_spark_4_0_become_arrow_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[pa.RecordBatch] = []

    def write(options: WriteOptions, batches: Any) -> None:
        assert options is WITH_TOPIC
        written.extend(batches)

    monkeypatch.setattr(row_writer, "write_batches", write)
    monkeypatch.setattr(row_writer, "ROWS_MAX", 2)
    columns = schema(key="string", value="binary", id="int", partition="int", timestamp="timestamp", headers="headers")
    header = [Row(key="h", value=bytearray(b"1")), Row(key="i", value=None), None]
    rows = [
        Row(key="é", value=bytearray(b"1"), id=1, partition=3, timestamp=INSTANT, headers=header),
        Row(key=None, value=None, id=2, partition=None, timestamp=None, headers=None),
        Row(key="k", value=b"3", id=3, partition=0, timestamp=INSTANT, headers=[]),
    ]
    RowStreamWriter(WITH_TOPIC, columns).write(iter(rows))
    assert [batch.num_rows for batch in written] == [2, 1]
    assert written[0].schema.names == ["key", "value", "partition", "timestamp", "headers"]
    assert written[0].to_pydict() == {
        "key": ["é".encode(), None],
        "value": [b"1", None],
        "partition": [3, None],
        "timestamp": [INSTANT, None],
        "headers": [[{"key": "h", "value": b"1"}, {"key": "i", "value": None}, None], None],
    }
    assert list(Rows(written[1], "orders")) == [Record("orders", 0, b"k", b"3", INSTANT_MS, [])]


def test_a_writer_of_rows_checks_the_columns_first() -> None:
    with pytest.raises(BadOption, match="no column value"):
        RowStreamWriter(WITH_TOPIC, schema(key="string"))
