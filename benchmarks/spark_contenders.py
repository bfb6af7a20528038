"""The ways to decode that `benchmarks.spark` compares: ours, and the best form that is known of each peer.

From Parquet, all give the fifteen (or five) fields of the reader's schema as columns; from a topic, the decoded value
as one column, its partition and offset. They go to Spark's `noop` sink, which takes every row and keeps none. Ours keep
what they say of each row besides (its reason; from a frame also the schema id): it is made anyway, and taking it out
again would be work that nobody asked for. The form of columns is asked for the fields alone, as `from_avro` is.
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
"""The same for all; the JVM takes what it is given, so its peak says little beyond it."""
ARROW_ROWS = 50_000
"""Rows in a batch between the JVM and Python, as the guide advises for small payloads; for fastavro's UDF as well."""
ARROW_BYTES = 2**31 - 1
"""No bound on its bytes, which Spark would add up after each row: the guide's advice for payloads known to be small."""
WHERE = ("partition", "offset")
"""What a reader of a topic wants beside the fields, to say which record a row is."""


def session(jars: str, folder: Path) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("benchmarks.spark")
        # What the guide advises; the peers run in the same session.
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
    """spark-avro, told each writer's schema as a literal and chosen by the frame; comparing five bytes is cheapest."""
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
    """`is_narrow`: `from_avro` is told a reader's schema with nothing but the five fields in it, written by hand."""
    writers = dict(zip(schema_ids, texts(), strict=True))
    return from_avro_by_id(frame["value"], writers, reader_text(is_narrow=is_narrow)).alias("value")


def peer_on_frame(
    frame: DataFrame, schema_ids: Sequence[int], fields: Sequence[str] | None = None, *, is_narrow: bool = False
) -> DataFrame:
    """Some of the fields are taken out of the whole, as a query does it."""
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
    """fastavro in a pandas UDF: schemas parsed once a worker, timestamps made by column, bad rows set aside as null."""
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
        # Resolution costs it time: what is written as it is to be read goes without.
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
    """The form of whole frames."""
    # The bytes of bad rows are nothing that the peers give back.
    return decode_frame(frame, SUBJECT, registry=registry_url, fields=fields, flat=True, on_poison="NULL")


def ours_as_column(frame: DataFrame, registry_url: str, fields: Sequence[str] | None = None) -> DataFrame:
    """The form of columns, as the guide shows it first: the mode is the default, which sends bad rows' bytes back."""
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
        # Spark tells its own source which columns are wanted; a Python source has to be told.
        .option("columns", ",".join(("value", "reason", *WHERE)))
        .load()
    )
