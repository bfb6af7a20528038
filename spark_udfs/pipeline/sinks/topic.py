"""Topic sink, at least once: encodes rows with a registered Avro schema.

The schema is the one in the file, else the latest version of the subject, else one derived from the columns. It is
registered or looked up before the pipeline starts. Kafka transactions cannot include Spark's checkpoint, so a repeated
batch is written again. Each record has the header `headgate.batch`, by which a consumer can detect duplicates.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.avro_schema import avro_text
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Options
from headgate.spark_udfs.pipeline.sinks.sink import Sink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, REFUSED_ROWS_MAX, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

BATCH_HEADER = "headgate.batch"
OVERHEAD_BYTES = 64 * 1024
"""Bytes of a produce request that are reserved for headers and the record batch."""
_REASON = "the schema cannot represent the row: "


@dataclass(frozen=True, slots=True)
class TopicSink(Sink):
    topic: str
    subject: str
    schema: str | None = None
    """Avro schema to register; None uses the latest version of the subject."""
    register: bool = True
    key: str | None = None
    """A SQL expression over the row."""
    options: Options = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "TopicSink":
        topic = fields.topic_name(table, "topic")
        return cls(
            name,
            input_,
            topic=topic,
            subject=table.text("subject") or f"{topic}-value",
            schema=fields.schema_text(table),
            register=table.boolean("register", True),
            key=table.text("key"),
            on_refused=fields.on_refused(table),
            options=table.options("options"),
        )

    def describe(self) -> tuple[str, str]:
        how = "registered" if self.schema is not None and self.register else "looked up"
        return f"topic {self.topic}, Avro with {self.subject}, {how}", AT_LEAST_ONCE

    def open(self, context: SinkContext) -> "TopicWriter":
        pipeline = context.pipeline
        return TopicWriter(self, pipeline.kafka, pipeline.registry, context.refused_rows(self))

    @property
    def topic_options(self) -> tuple[str, Options] | None:
        return self.topic, self.options

    def input_mistake(self, *, is_stream: bool) -> tuple[str, str] | None:
        if is_stream:
            return None
        return "from", f'{self.input} is a table, which would be sent repeatedly; use its source with read = "stream"'


class TopicWriter:
    def __init__(self, sink: TopicSink, kafka: Options, registry: Options, refused: RefusedRows) -> None:
        self._sink = sink
        self._kafka = kafka
        self._registry = registry
        self._refused = refused
        self._schema_id: int | None = None

    def check(self, schema: "StructType") -> None:
        """Register the schema. Detects incompatible schemas, unsuitable columns and invalid key expressions."""
        from pyspark.sql import SparkSession

        from headgate.spark_udfs.driver.reader_choice import ReaderError
        from headgate.spark_udfs.driver.registry_resolution import resolve
        from headgate.spark_udfs.driver.writer_choice import WriterChoice
        from headgate.spark_udfs.executor.encoding import EncodingError

        SparkSession.active().createDataFrame([], schema).select(self._key())
        text = self._sink.schema
        options = resolve(dict(self._registry) or None)
        if text is None and self._sink.register and self._is_new():
            text = avro_text(schema, self._sink.name)
        choice = WriterChoice(self._sink.subject, text, register=self._sink.register)
        try:
            _, self._schema_id = choice.resolve(options)
        except (EncodingError, ReaderError) as error:
            raise PipelineError(f"sink {self._sink.name}: {error}") from error

    def _is_new(self) -> bool:
        from headgate.serdes.client import RegistryClientError, UnknownSchema
        from headgate.spark_udfs.driver.registry_resolution import resolve

        options = resolve(dict(self._registry) or None)
        with options.client() as client:
            try:
                client.latest(self._sink.subject)
            except UnknownSchema:
                return True
            except RegistryClientError as error:
                raise PipelineError(
                    f"sink {self._sink.name}: the registry at {options.addresses} does not respond",
                    why=str(error),
                    unreachable=True,
                ) from error
        return False

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        from pyspark.sql import functions as f

        from headgate.spark_udfs.functions import to_registry_avro

        row = f.struct(*(f.col(f"`{name}`") for name in rows.columns))
        payload = to_registry_avro(
            row,
            self._sink.subject,
            registry=dict(self._registry) or None,
            schema_id=self._schema_id,
            on_poison="DEAD_LETTER",
        )
        options = {**self._kafka, **self._sink.options}
        made = rows.select(self._key().alias("key"), payload.alias("made"), row.alias("row"))
        encoded = made.withColumn("problem", _problem(value_bytes_max(options))).persist()
        try:
            good, bad = _counts(encoded)
            if bad:
                self._refuse(encoded, batch)
            if good:
                header = f.struct(f.lit(BATCH_HEADER).alias("key"), f.lit(batch.name.encode()).alias("value"))
                ready = encoded.where("problem IS NULL").select(
                    "key", f.col("made.value").alias("value"), f.array(header).alias("headers")
                )
                send(ready, self._sink.topic, options)
        finally:
            encoded.unpersist()
        return Written(good, bad)

    def _key(self) -> "Column":
        from pyspark.sql import functions as f

        if self._sink.key is None:
            return f.lit(None).cast("binary")
        # Numbers become decimal digits, which other clients can read as a string key.
        return f.expr(self._sink.key).cast("string").cast("binary")

    def _refuse(self, encoded: "DataFrame", batch: "BatchId") -> None:
        from pyspark.sql import functions as f

        bad = encoded.where("problem IS NOT NULL").select(f.to_json("row"), "problem").limit(REFUSED_ROWS_MAX + 1)
        self._refused([(str(each[0]), str(each[1])) for each in bad.toLocalIterator()], batch)


def _problem(bytes_max: int) -> "Column":
    """Why a row cannot be sent; null if it can."""
    from pyspark.sql import functions as f

    size = f.octet_length("made.value") + f.coalesce(f.octet_length("key"), f.lit(0))
    too_long = f.concat(f.lit("the record has "), size, f.lit(f" bytes; the maximum is {bytes_max}"))
    return f.when(f.col("made.reason").isNotNull(), f.concat(f.lit(_REASON), f.col("made.reason"))).when(
        size > bytes_max, too_long
    )


def _counts(encoded: "DataFrame") -> tuple[int, int]:
    """The numbers of good and bad rows. This action encodes all rows and fills the cache."""
    from pyspark.sql import functions as f

    bad = f.col("problem").isNotNull().alias("bad")
    counts = {bool(each[0]): int(each[1]) for each in encoded.groupBy(bad).count().collect()}
    return counts.get(False, 0), counts.get(True, 0)


def value_bytes_max(options: Options) -> int:
    """Maximum size of key and value of a record. A larger record would fail the whole batch."""
    from headgate.spark_udfs.source.options import REQUEST_BYTES_DEFAULT

    given = options.get("kafka.max.request.size", "")
    return max((int(given) if given.isdigit() else REQUEST_BYTES_DEFAULT) - OVERHEAD_BYTES, OVERHEAD_BYTES)


def send(records: "DataFrame", topic: str, options: Options) -> None:
    """Write the columns key, value and headers to a topic."""
    records.write.format("headgate").mode("append").options(**dict(options)).option("topic", topic).save()
