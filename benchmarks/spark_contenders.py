"""The decoders that `benchmarks.spark` compares: ours, and the fastest known variant of each peer.

- From Parquet, all return the fifteen (or five) fields of the reader's schema as columns.
- From a topic, all return the decoded value as one column, its partition and its offset.
- All write to Spark's `noop` sink, which discards every row.

Ours also keep the reason of each row, and `decode_frame` keeps the schema id. The decoder creates these columns anyway,
and removing them would be extra work. `from_registry_avro` selects only the fields, as `from_avro` does.
"""

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType

from benchmarks.spark_data import SUBJECT, VERSIONS, few_fields, texts
from headgate.spark_udfs import FAST_SETTINGS, decode_frame, from_registry_avro

DRIVER_MEMORY = "2g"
"""The same for all contenders. The JVM uses the whole heap, so its peak memory mostly shows this setting."""
ARROW_ROWS = 50_000
"""Rows per Arrow batch between the JVM and Python, as the guide advises for small payloads. Also used by the UDF."""
ARROW_BYTES = 2**31 - 1
"""No byte limit, because Spark would sum the bytes after each row. The guide advises this for small payloads."""
WHERE = ("partition", "offset")
"""Columns that identify the record of a row."""


def session(jars: str, folder: Path) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("benchmarks.spark")
        # The settings that the guide advises. The peers run in the same session.
        .config(map=dict(FAST_SETTINGS))
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        .config("spark.sql.execution.arrow.maxBytesPerBatch", str(ARROW_BYTES))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def flat(frame: DataFrame) -> DataFrame:
    return frame.select("value.*")


def from_avro_by_id(value: Column, writers: Mapping[int, str], reader: str) -> Column:
    """Decode with spark-avro. A CASE over the five frame bytes, the cheapest test, selects the writer's schema."""
    options = {"avroSchema": reader, "mode": "PERMISSIVE"}
    frame, body = F.substring(value, 1, 5), F.expr("substring(value, 6)")
    branches: Column | None = None
    for schema_id, text in writers.items():
        condition, decoded = frame == F.lit(struct.pack(">BI", 0, schema_id)), from_avro(body, text, options)
        branches = F.when(condition, decoded) if branches is None else branches.when(condition, decoded)
    assert branches is not None
    return branches


def reader_text(*, is_narrow: bool = False) -> str:
    return json.dumps(few_fields(VERSIONS[-1]) if is_narrow else VERSIONS[-1])


def decoded_by_peer(frame: DataFrame, schema_ids: Sequence[int], *, is_narrow: bool = False) -> Column:
    """Decode with `from_avro`. With `is_narrow`, the reader's schema contains only the five fields."""
    writers = dict(zip(schema_ids, texts(), strict=True))
    return from_avro_by_id(frame["value"], writers, reader_text(is_narrow=is_narrow)).alias("value")


def peer_on_frame(
    frame: DataFrame, schema_ids: Sequence[int], fields: Sequence[str] | None = None, *, is_narrow: bool = False
) -> DataFrame:
    """Decode a frame with the peer. `fields` are selected after decoding, as a query does."""
    decoded = frame.select(decoded_by_peer(frame, schema_ids, is_narrow=is_narrow))
    return flat(decoded) if fields is None else decoded.select(*(f"value.{name}" for name in fields))


def peer_on_topic(spark: SparkSession, address: str, topic: str, schema_ids: Sequence[int]) -> DataFrame:
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    return raw.select(decoded_by_peer(raw, schema_ids), *WHERE)


def pandas_on_frame(frame: DataFrame, schema_ids: Sequence[int], result: StructType) -> DataFrame:
    """Decode with fastavro in a pandas UDF.

    The UDF parses schemas once per task, converts timestamps per column, and returns null for bad rows.
    """
    writers = dict(zip(schema_ids, texts(), strict=True))
    reader = reader_text()

    def decode(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        def numbers_for_times(schema: Any) -> Any:
            if isinstance(schema, dict):
                kept = {name: numbers_for_times(part) for name, part in schema.items()}
                if kept.get("logicalType") == "timestamp-millis":
                    del kept["logicalType"]
                return kept
            return [numbers_for_times(part) for part in schema] if isinstance(schema, list) else schema

        parsed = [fastavro.parse_schema(numbers_for_times(json.loads(text))) for text in (*writers.values(), reader)]
        target = parsed.pop()
        # Schema resolution is slow in fastavro: skip it if writer and reader schema are equal.
        pairs = {
            schema_id: (schema, None if text == reader else target)
            for (schema_id, text), schema in zip(writers.items(), parsed, strict=True)
        }
        names = [field["name"] for field in json.loads(reader)["fields"]]
        nothing = dict.fromkeys(names)
        read: Any = fastavro.schemaless_reader
        for batch in batches:
            rows = []
            for payload in batch:
                row = nothing
                if len(payload) >= 5 and payload[0] == 0:
                    pair = pairs.get(int.from_bytes(payload[1:5], "big"))
                    if pair is not None:
                        body = io.BytesIO(payload)
                        body.seek(5)
                        try:
                            row = read(body, *pair)
                            if body.read(1):
                                row = nothing
                        except Exception:
                            row = nothing
                rows.append(row)
            columns = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in names})
            columns["at"] = pd.to_datetime(columns["at"].astype("Int64"), unit="ms", utc=True)
            yield columns

    make: Any = pandas_udf
    return flat(frame.select(make(decode, result)(frame["value"]).alias("value")))


def ours_on_frame(frame: DataFrame, registry_url: str, fields: Sequence[str] | None = None) -> DataFrame:
    """Decode a whole DataFrame with `decode_frame`."""
    # Do not return the bytes of bad rows, because the peers do not return them either.
    return decode_frame(frame, SUBJECT, registry=registry_url, fields=fields, flat=True, on_poison="NULL")


def ours_as_column(frame: DataFrame, registry_url: str, fields: Sequence[str] | None = None) -> DataFrame:
    """Decode a column with `from_registry_avro` in its default mode, which returns the bytes of bad rows."""
    decoded = from_registry_avro(frame["value"], SUBJECT, registry=registry_url, fields=fields)
    return frame.select(decoded.alias("decoded")).select("decoded.value.*")


def ours_on_topic(spark: SparkSession, address: str, topic: str, registry_url: str) -> DataFrame:
    return (
        spark.read.format("headgate")
        .option("bootstrap.servers", address)
        .option("registry.url", registry_url)
        .option("subscribe", topic)
        .option("subject", SUBJECT)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        # Spark pushes the projection down to its Kafka source. A Python source needs this option instead.
        .option("columns", ",".join(("value", "reason", *WHERE)))
        .load()
    )
