"""Dead-letter topic, at least once: records with the raw bytes and the headers of `serdes.dead_letter`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.serdes.dead_letter import TRUNCATED
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.model import Options
from headgate.spark_udfs.pipeline.sinks.sink import DEAD_LETTERS, DeadLetterSink, SinkContext
from headgate.spark_udfs.pipeline.sinks.topic import OVERHEAD_BYTES, send, value_bytes_max
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

HEADERS_BYTES_MAX = OVERHEAD_BYTES // 2
"""Maximum size of the original headers. Larger ones are removed, because the dead-letter headers must fit too."""


@dataclass(frozen=True, slots=True)
class DeadLetterTopicSink(DeadLetterSink):
    topic: str
    options: Options = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "DeadLetterTopicSink":
        return cls(name, input_, fields.topic_name(table, "topic"), table.options("options"))

    @classmethod
    def for_dead_letters(cls, table: "TableReader") -> "DeadLetterTopicSink":
        return cls.from_table(table, DEAD_LETTERS, "")

    def describe(self) -> tuple[str, str]:
        return f"topic {self.topic}", AT_LEAST_ONCE

    def open(self, context: SinkContext) -> "DeadLetterTopicWriter":
        return DeadLetterTopicWriter(self.topic, {**context.pipeline.kafka, **self.options}, context.pipeline.name)

    @property
    def topic_options(self) -> tuple[str, Options] | None:
        return self.topic, self.options


class DeadLetterTopicWriter:
    """Writes rows of the dead-letter table (`spark_udfs.dead_letter`)."""

    def __init__(self, topic: str, options: Options, application: str) -> None:
        self._topic = topic
        self._options = options
        self._application = application

    def check(self, schema: "StructType") -> None:
        """The columns of the dead-letter table are fixed."""

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        from headgate.spark_udfs.dead_letter import to_dead_letter_records

        fitting = _truncated(rows, value_bytes_max(self._options))
        records = to_dead_letter_records(fitting, self._topic, application=self._application)
        send(records.drop("topic"), self._topic, self._options)
        return Written(0)


def _truncated(letters: "DataFrame", bytes_max: int) -> "DataFrame":
    """Truncate values that exceed the request size, and note it in `detail`.

    A dead letter is larger than its record, and one that the broker refuses would block the pipeline. The original
    record is at the topic, partition and offset of the dead letter.
    """
    from pyspark.sql import functions as f

    left = f.lit(bytes_max) - f.least(f.coalesce(f.octet_length("key"), f.lit(0)), f.lit(bytes_max))
    is_long = f.octet_length("raw") > left
    detail = f.concat(
        f.lit(TRUNCATED), f.octet_length("raw"), f.lit(" bytes; "), f.coalesce(f.col("detail"), f.lit(""))
    )
    headers = f.when(f.coalesce(f.length(f.to_json("headers")), f.lit(0)) <= HEADERS_BYTES_MAX, f.col("headers"))
    return letters.withColumns(
        {
            "detail": f.when(is_long, detail).otherwise(f.col("detail")),
            "raw": f.when(is_long, f.substring(f.col("raw"), f.lit(1), left)).otherwise(f.col("raw")),
            "headers": headers,
        }
    )
