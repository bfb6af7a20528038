"""Stream writer for PySpark 4.0, which passes rows instead of Arrow batches."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pyarrow import lib as pa
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headgate.spark_udfs.source.options import WriteOptions
from headgate.spark_udfs.source.records import check_columns
from headgate.spark_udfs.source.writing import write_batches

ROWS_MAX = 10_000
"""Maximum number of rows in one batch, as in Spark."""

_ARROW = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


class RowStreamWriter(DataSourceStreamWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self._options = options
        self._names = [name for name in schema.names if name in {"key", "value", *_ARROW}]

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        return write_batches(self._options, self._batches(iterator))

    def _batches(self, rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        while taken := list(islice(rows, ROWS_MAX)):
            columns = [self._column(name, [row[name] for row in taken]) for name in self._names]
            yield pa.RecordBatch.from_arrays(columns, names=self._names)

    def _column(self, name: str, cells: list[Any]) -> pa.Array:
        if name in ("key", "value"):
            return pa.array([_bytes(cell) for cell in cells], pa.binary())
        if name == "timestamp":
            # Timestamps without a time zone are in local time, because Spark creates them in local time.
            micros = [None if cell is None else round(cell.timestamp() * 1_000_000) for cell in cells]
            return pa.array(micros, pa.int64()).view(_ARROW[name])
        if name == "headers":
            cells = [None if cell is None else [_header(item) for item in cell] for cell in cells]
        return pa.array(cells, _ARROW[name])


def _bytes(cell: Any) -> bytes | None:
    if cell is None:
        return None
    return cell.encode() if isinstance(cell, str) else bytes(cell)


def _header(item: Any) -> dict[str, Any] | None:
    return None if item is None else {"key": item["key"], "value": _bytes(item["value"])}
