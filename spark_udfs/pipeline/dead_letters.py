"""Dead letters of a pipeline: rows that cannot be decoded, and rows that a sink refuses.

The table has the columns of `spark_udfs.dead_letter` and three more: `source` (or sink), `pipeline` and `failed_at`.
The delivery guarantee is that of the dead-letter sink.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.sinks.sink import Sink
from headgate.spark_udfs.pipeline.sinks.writer import REFUSED_ROWS_MAX, Writer
from headgate.spark_udfs.spec.policy import OnPoison

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EXAMPLES_MAX = 3
"""Bad rows that an error message quotes."""


class DeadLetterWriter:
    """Writes the dead letters of every source and sink of one pipeline."""

    def __init__(self, writer: Writer | None, pipeline: str) -> None:
        self._writer = writer
        self._pipeline = pipeline

    def check(self) -> None:
        if self._writer is not None:
            self._writer.check(table_schema())

    def write(self, decoded: "DataFrame", source: str, batch: BatchId) -> None:
        """Write the bad rows of a decoded DataFrame."""
        from headgate.spark_udfs.dead_letter import dead_letters

        self._write(dead_letters(decoded), source, batch)

    def _write(self, letters: "DataFrame", source: str, batch: BatchId) -> None:
        from pyspark.sql import functions as f

        from headgate.spark_udfs.dead_letter import COLUMNS

        if self._writer is None:
            raise PipelineError(
                f"{source} has rows that cannot be read, and the pipeline has no [dead_letters]",
                advice="add [dead_letters]; or set on_poison to DROP or FAIL",
            )
        table = letters.select(
            *COLUMNS,
            f.lit(source).alias("source"),
            f.lit(self._pipeline).alias("pipeline"),
            f.timestamp_millis(f.lit(time.time_ns() // 1_000_000)).alias("failed_at"),
        )
        self._writer.write(table, batch)

    def refuse(self, spark: "SparkSession", sink: Sink, rows: Sequence[tuple[str, str]], batch: BatchId) -> None:
        """Handle rows that a sink cannot write (JSON and reason). Raises `PipelineError` if the policy is FAIL."""
        is_failure = sink.on_refused not in {OnPoison.DROP, OnPoison.DEAD_LETTER}
        if is_failure or len(rows) > REFUSED_ROWS_MAX:
            examples = "; ".join(f"{detail}: {text[:200]}" for text, detail in rows[:EXAMPLES_MAX])
            raise PipelineError(
                f"sink {sink.name} cannot write {len(rows):,} rows of a batch",
                why=examples,
                advice="filter or repair them in a transform; or set on_refused to DEAD_LETTER or DROP",
            )
        if sink.on_refused is OnPoison.DROP:
            return
        from pyspark.sql import functions as f

        from headgate.spark_udfs.dead_letter import COLUMNS

        given = spark.createDataFrame([(text.encode(), detail) for text, detail in rows], "raw binary, detail string")
        known = {"raw": f.col("raw"), "detail": f.col("detail"), "reason": f.lit("INVALID_VALUE")}
        columns = [known.get(name, f.lit(None)).cast(kind).alias(name) for name, kind in COLUMNS.items()]
        # A separate batch id: the same batch may have dead letters of its source as well.
        own = BatchId(batch.pipeline, batch.identity, f"{batch.query}-{sink.name}", batch.number)
        self._write(given.select(*columns), f"sink {sink.name}", own)


def table_schema() -> "StructType":
    """The columns of a dead-letter table."""
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.dead_letter import COLUMNS

    listed = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    found = StructType.fromDDL(f"{listed}, source STRING, pipeline STRING, failed_at TIMESTAMP")
    assert isinstance(found, StructType)
    return found


def poison_failure(source: str, poison: int, examples: Sequence[tuple[str, str]]) -> PipelineError:
    """The error of `on_poison = "FAIL"`."""
    return PipelineError(
        f"source {source}: {poison:,} rows of a batch cannot be read, and on_poison is FAIL",
        why="; ".join(f"{reason}: {where}" for reason, where in examples),
        advice="nothing of the batch was written; set on_poison to DEAD_LETTER or DROP to continue without them",
    )
