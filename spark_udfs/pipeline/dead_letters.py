"""Where rows go that cannot be read, and rows that a sink cannot hold: a topic, or a table.

The table has the columns of `spark_udfs.dead_letter` and three more: the source (or the sink) that the row comes from,
the pipeline, and the time. In a topic the layout is that of `serdes.dead_letter`. Tables are exactly once, as their
sinks are; a topic is at least once.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import OnPoison, Options, TopicLetters
from headgate.spark_udfs.pipeline.sinks.topic import SPARE_BYTES, send, value_bytes_max
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, REFUSED_AT_ONCE_MAX, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EXAMPLES_MAX = 3
"""Bad rows that a failure quotes."""
HEADERS_BYTES_MAX = SPARE_BYTES // 2
"""Of a dead letter's own headers; larger ones are left out, since ours must fit as well."""


class Letters:
    """Takes poison of every source and sink of one pipeline."""

    def __init__(self, place: TopicLetters | Writer | None, kafka: Options, pipeline: str) -> None:
        self._place = place
        self._kafka = kafka
        self._pipeline = pipeline

    @property
    def guarantee(self) -> str:
        if self._place is None or isinstance(self._place, TopicLetters):
            return AT_LEAST_ONCE
        return self._place.guarantee

    def check(self, spark: "SparkSession") -> None:
        if self._place is not None and not isinstance(self._place, TopicLetters):
            self._place.check(table_schema(spark))

    def write(self, decoded: "DataFrame", source: str, batch: BatchId) -> None:
        """The bad rows of a decoded frame."""
        from headgate.spark_udfs.dead_letter import dead_letters

        self._write(dead_letters(decoded), source, batch)

    def _write(self, letters: "DataFrame", source: str, batch: BatchId) -> None:
        from pyspark.sql import functions as f

        from headgate.spark_udfs.dead_letter import COLUMNS, to_dead_letter_records

        assert self._place is not None, "the checks let no DEAD_LETTER through without [dead_letters]"
        if isinstance(self._place, TopicLetters):
            options = {**self._kafka, **self._place.options}
            fitting = _fitting(letters, value_bytes_max(options))
            records = to_dead_letter_records(fitting, self._place.topic, application=self._pipeline)
            send(records.drop("topic"), self._place.topic, options)
            return
        table = letters.select(
            *COLUMNS,
            f.lit(source).alias("source"),
            f.lit(self._pipeline).alias("pipeline"),
            f.timestamp_millis(f.lit(time.time_ns() // 1_000_000)).alias("failed_at"),
        )
        self._place.write(table, batch)

    def refuse(
        self, spark: "SparkSession", policy: OnPoison, sink: str, rows: Sequence[tuple[str, str]], batch: BatchId
    ) -> None:
        """Rows (as JSON, with what is wrong) that a sink cannot hold. Raises `PipelineError` if the policy is FAIL."""
        if policy is OnPoison.FAIL or len(rows) > REFUSED_AT_ONCE_MAX:
            shown = "; ".join(f"{detail}: {text[:200]}" for text, detail in rows[:EXAMPLES_MAX])
            raise PipelineError(
                f"sink {sink} cannot hold {len(rows):,} rows of a batch",
                why=shown,
                advice="filter or repair them in a transform; or set on_refused to DEAD_LETTER or DROP",
            )
        if policy is OnPoison.DROP:
            return
        from pyspark.sql import functions as f

        from headgate.spark_udfs.dead_letter import COLUMNS

        given = spark.createDataFrame([(text.encode(), detail) for text, detail in rows], "raw binary, detail string")
        known = {"raw": f.col("raw"), "detail": f.col("detail"), "reason": f.lit("INVALID_VALUE")}
        head = [known.get(name, f.lit(None)).cast(kind).alias(name) for name, kind in COLUMNS.items()]
        # A mark of its own: the same batch may have dead letters of its source as well.
        own = BatchId(batch.pipeline, batch.identity, f"{batch.query}-{sink}", batch.number)
        self._write(given.select(*head), f"sink {sink}", own)


def _fitting(letters: "DataFrame", bytes_max: int) -> "DataFrame":
    """A letter is longer than its record was, and one that the brokers refuse would stop everything: what is too long
    is cut, and says so. The record itself is where the letter says it was."""
    from pyspark.sql import functions as f

    left = f.lit(bytes_max) - f.least(f.coalesce(f.octet_length("key"), f.lit(0)), f.lit(bytes_max))
    cut = f.octet_length("raw") > left
    said = f.concat(
        f.coalesce(f.col("detail"), f.lit("")),
        f.lit(" (cut: the record had "),
        f.octet_length("raw"),
        f.lit(" bytes)"),
    )
    headers = f.when(f.coalesce(f.length(f.to_json("headers")), f.lit(0)) <= HEADERS_BYTES_MAX, f.col("headers"))
    return letters.withColumns(
        {
            "detail": f.when(cut, said).otherwise(f.col("detail")),
            "raw": f.when(cut, f.substring(f.col("raw"), f.lit(1), left)).otherwise(f.col("raw")),
            "headers": headers,
        }
    )


def table_schema(spark: "SparkSession") -> "StructType":
    """The columns of a dead-letter table."""
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.dead_letter import COLUMNS

    listed = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    found = StructType.fromDDL(f"{listed}, source STRING, pipeline STRING, failed_at TIMESTAMP")
    assert isinstance(found, StructType)
    return found


def failure(source: str, poison: int, examples: Sequence[tuple[str, str]]) -> PipelineError:
    """What `on_poison = "FAIL"` raises."""
    return PipelineError(
        f"source {source}: {poison:,} rows of a batch cannot be read, and on_poison is FAIL",
        why="; ".join(f"{reason}: {where}" for reason, where in examples),
        advice="nothing of the batch was written; set on_poison to DEAD_LETTER or DROP to go on without them",
    )
