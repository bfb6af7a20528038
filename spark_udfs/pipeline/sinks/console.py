"""Console sink: prints the first rows of each batch as JSON to stdout."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headgate.spark_udfs.pipeline.sinks.sink import Sink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

ROWS_DEFAULT = 20
ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ConsoleSink(Sink):
    rows: int = ROWS_DEFAULT

    requires_distinct_columns: ClassVar[bool] = False

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "ConsoleSink":
        return cls(name, input_, table.number("rows", most=ROWS_MAX) or ROWS_DEFAULT)

    def describe(self) -> tuple[str, str]:
        return f"the first {self.rows} rows of each batch on stdout", AT_LEAST_ONCE

    def open(self, context: SinkContext) -> "ConsoleWriter":
        return ConsoleWriter(self)


class ConsoleWriter:
    def __init__(self, sink: ConsoleSink) -> None:
        self._sink = sink

    def check(self, schema: "StructType") -> None:
        """Any columns can be printed."""

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        kept = rows.persist()
        try:
            count = kept.count()
            lines = kept.limit(self._sink.rows).toJSON().collect() if count else []
        finally:
            kept.unpersist()
        for line in lines:
            print(line, file=sys.stdout)
        if count > len(lines):
            print(f"… and {count - len(lines):,} more rows in this batch", file=sys.stderr)
        sys.stdout.flush()
        return Written(count)
