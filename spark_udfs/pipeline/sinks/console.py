"""Rows as JSON on stdout, the first few of each batch: for looking, not for keeping."""

import sys
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.model import ConsoleSink
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId


class ConsoleWriter:
    guarantee = AT_LEAST_ONCE

    def __init__(self, sink: ConsoleSink) -> None:
        self._sink = sink

    def check(self, schema: "StructType") -> None:
        """It takes any columns."""

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
