"""Converts rows of a DataFrame to records. The columns are those of Spark's Kafka sink.

`value` is required. `topic`, `key`, `headers`, `partition` and `timestamp` are optional. Other columns are ignored.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.spark_udfs.source.errors import BadOption, UnwritableRow

Header = tuple[str, bytes | None]

_BYTES = (BinaryType, StringType)
_KINDS: dict[str, tuple[str, tuple[type[DataType], ...]]] = {
    "topic": ("string", (StringType,)),
    "key": ("binary or string", _BYTES),
    "value": ("binary or string", _BYTES),
    "partition": ("int", (IntegerType,)),
    "timestamp": ("timestamp", (TimestampType,)),
}
HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


class Record(NamedTuple):
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: list[Header]


def check_columns(schema: StructType, topic: str | None) -> None:
    """Runs on the driver. Raises `BadOption`."""
    kinds = {field.name: field.dataType for field in schema.fields}
    if "value" not in kinds:
        raise BadOption("value", f"the DataFrame has no column value; its columns are {', '.join(kinds)}")
    if topic is None and "topic" not in kinds:
        raise BadOption("topic", "set the option topic, or add a column topic to the DataFrame")
    for name, (wanted, classes) in _KINDS.items():
        if name in kinds and not isinstance(kinds[name], classes):
            advice = "; encode it with to_registry_avro" if name == "value" else ""
            raise BadOption(name, f"column {name} must be {wanted}, not {kinds[name].simpleString()[:60]}{advice}")
    if "headers" in kinds and kinds["headers"].simpleString() != HEADERS_TYPE.simpleString():
        raise BadOption("headers", f"column headers must be {HEADERS_TYPE.simpleString()}")


class Rows:
    """One Arrow batch as records."""

    def __init__(self, batch: pa.RecordBatch, topic: str | None) -> None:
        self._batch = batch
        self._topic = topic
        self._names = set(batch.schema.names)
        self.keys = self._bytes("key")

    def __iter__(self) -> Iterator[Record]:
        """Raises `UnwritableRow`."""
        count = len(self._batch)
        nothing = [None] * count
        topics = nothing if self._topic is not None else self._batch.column("topic").to_pylist()
        keys = nothing if self.keys is None else self.keys.to_pylist()
        values = self._bytes("value")
        assert values is not None
        partitions = self._batch.column("partition").to_pylist() if "partition" in self._names else nothing
        times = self._times().tolist()
        headers = self._batch.column("headers").to_pylist() if "headers" in self._names else nothing
        rows = zip(topics, partitions, keys, values.to_pylist(), times, headers, strict=True)
        for topic, partition, key, value, timestamp_ms, header in rows:
            name = self._topic or topic
            if name is None:
                raise UnwritableRow("A row's column topic is null. Set the option topic for all rows.")
            yield Record(name, partition, key, value, timestamp_ms, _headers(header))

    def _bytes(self, name: str) -> pa.Array | None:
        return self._batch.column(name).cast(pa.binary()) if name in self._names else None

    def _times(self) -> NDArray[np.int64]:
        """Returns timestamps in milliseconds. The current time replaces a missing timestamp."""
        now = int(time.time() * 1000)
        if "timestamp" not in self._names:
            return np.full(len(self._batch), now, np.int64)
        column = self._batch.column("timestamp").cast(pa.timestamp("us", "UTC"))
        micros = column.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        return np.where(is_null, now, np.floor_divide(micros, 1000))


def _headers(rows: list[dict[str, bytes | str | None] | None] | None) -> list[Header]:
    headers: list[Header] = []
    for row in rows or ():
        if row is None or row["key"] is None:
            raise UnwritableRow("A row contains a header without a key. Every Kafka header requires a key.")
        key, value = row["key"], row["value"]
        assert isinstance(key, str)
        assert not isinstance(value, str)
        headers.append((key, value))
    return headers
