"""Another topic: rows encoded with a registered schema, written at least once.

The schema is the one that the sink names, else the subject's latest, else one made from the columns; it is registered
or looked up before anything starts. Kafka's transactions would not tie the records to Spark's checkpoint, so a batch
that is done again after a crash is written again: its records carry the batch in a header (`headgate.batch`), by which
a reader can tell.
"""

from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.avro_schema import avro_text
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Options, TopicSink
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, REFUSED_AT_ONCE_MAX, RefusedRows, Written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

BATCH_HEADER = "headgate.batch"
SPARE_BYTES = 64 * 1024
"""Of a request, for what surrounds a record's key and value: headers, the batch."""
_REASON = "the schema cannot hold the row: "


class TopicWriter:
    guarantee = AT_LEAST_ONCE

    def __init__(self, sink: TopicSink, kafka: Options, registry: Options, refused: RefusedRows) -> None:
        self._sink = sink
        self._kafka = kafka
        self._registry = registry
        self._refused = refused
        self._schema_id: int | None = None

    def check(self, schema: "StructType") -> None:
        """Registers. What the registry refuses, columns that do not fit and keys that are none are found here."""
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
                    f"sink {self._sink.name}: the registry at {options.addresses} does not answer",
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
        # Numbers as their digits: what other programs send as a text key, and can read.
        return f.expr(self._sink.key).cast("string").cast("binary")

    def _refuse(self, encoded: "DataFrame", batch: "BatchId") -> None:
        from pyspark.sql import functions as f

        bad = encoded.where("problem IS NOT NULL").select(f.to_json("row"), "problem").limit(REFUSED_AT_ONCE_MAX + 1)
        self._refused([(str(each[0]), str(each[1])) for each in bad.toLocalIterator()], batch)


def _problem(bytes_max: int) -> "Column":
    """Why a row cannot be sent; null where it can."""
    from pyspark.sql import functions as f

    size = f.octet_length("made.value") + f.coalesce(f.octet_length("key"), f.lit(0))
    too_long = f.concat(f.lit("the record has "), size, f.lit(f" bytes; {bytes_max} are the most"))
    return f.when(f.col("made.reason").isNotNull(), f.concat(f.lit(_REASON), f.col("made.reason"))).when(
        size > bytes_max, too_long
    )


def _counts(encoded: "DataFrame") -> tuple[int, int]:
    """Good and bad rows. Everything is encoded here, once: the action fills what is persisted."""
    from pyspark.sql import functions as f

    bad = f.col("problem").isNotNull().alias("bad")
    counts = {bool(each[0]): int(each[1]) for each in encoded.groupBy(bad).count().collect()}
    return counts.get(False, 0), counts.get(True, 0)


def value_bytes_max(options: Options) -> int:
    """Of a record's key and value together: what is larger would fail the whole batch."""
    from headgate.spark_udfs.source.options import REQUEST_BYTES_DEFAULT

    given = options.get("kafka.max.request.size", "")
    return max((int(given) if given.isdigit() else REQUEST_BYTES_DEFAULT) - SPARE_BYTES, SPARE_BYTES)


def send(records: "DataFrame", topic: str, options: Options) -> None:
    """Columns key, value and headers, as Kafka's own sink takes them."""
    records.write.format("headgate").mode("append").options(**dict(options)).option("topic", topic).save()
