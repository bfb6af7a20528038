"""Sources as frames: what they are made of, what their columns are, and how good rows and poison are told apart.

Every source's frame has a column `reason` (null where a row is good). A topic's frame is that of the data source
`headgate`; rows of files that do not parse have the reason CORRUPT.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import FilesSource, Pipeline, Read, TopicSource
from headgate.spark_udfs.pipeline.transforms import with_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.executor.decoding import Decoding

RECORD = "_record"
"""The column of a record's place, where `metadata = true` asks for it."""
CORRUPT = "_corrupt_record"
"""Spark's own name for a line that does not parse."""
_PLACE = ("topic", "partition", "offset", "timestamp", "key")


@dataclass(frozen=True, slots=True)
class TopicFrames:
    """A topic's frames; the reader's schema was chosen when this was made."""

    pipeline: Pipeline
    source: TopicSource
    decoding: "Decoding | None"

    def stream(self, spark: "SparkSession") -> "DataFrame":
        source = self.source
        options: dict[str, str] = {
            **self.pipeline.kafka,
            "subscribe": source.topic,
            "startingOffsets": "earliest" if source.read is Read.TABLE else source.starting_offsets,
            "includeHeaders": "true",
            **source.options,
        }
        if source.rows_per_batch is not None:
            options["maxOffsetsPerTrigger"] = str(source.rows_per_batch)
        if source.decode:
            options |= {**self.pipeline.registry, **reader_options(source)}
            # What is poison is the pipeline's to say, once it has been counted; a table takes nulls for deletions.
            options["on_poison"] = "DEAD_LETTER"
            options["on_new_version"] = str(source.on_new_version)
        return spark.readStream.format("headgate").options(**options).load()

    def good(self, frame: "DataFrame") -> "DataFrame":
        """The rows as transforms see them: the value's fields as columns."""
        if "reason" not in frame.columns:
            return frame.select("key", "value", *_PLACE[:4], "headers")
        return frame.where("reason IS NULL").select("value.*" if _is_record(frame) else "value", *self._place())

    def row(self, frame: "DataFrame") -> "Column":
        """The same columns as one; null where the value is, which deletes from a table."""
        from pyspark.sql import functions as f

        value = f.col("value")
        if not _is_record(frame):
            return f.when(value.isNotNull(), f.struct("value", *self._place()))
        if not self.source.metadata:
            return value
        fields = [value.getField(name).alias(name) for name in frame.select("value.*").columns]
        return f.when(value.isNotNull(), f.struct(*fields, *self._place()))

    def _place(self) -> "list[Column]":
        from pyspark.sql import functions as f

        return [f.struct(*_PLACE, "schema_id").alias(RECORD)] if self.source.metadata else []


def _is_record(frame: "DataFrame") -> bool:
    return frame.schema["value"].dataType.typeName() == "struct"


def topic_frames(pipeline: Pipeline, source: TopicSource) -> TopicFrames:
    """Asks the registry for the reader's schema. Raises `PipelineError`."""
    if not source.decode:
        return TopicFrames(pipeline, source, None)
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
    from headgate.spark_udfs.driver.reader_choice import ReaderError, RegistryNotReady
    from headgate.spark_udfs.spec.registry_options import OptionError

    choice = choice_of(source.subject, source.version, source.schema_id, source.schema, source.fields or None)
    try:
        decoding = plan_decoding(choice, dict(pipeline.registry) or None)
    except RegistryNotReady as error:
        raise PipelineError(f"source {source.name}: {error}", unreachable=True) from error
    except (ReaderError, OptionError) as error:
        raise PipelineError(f"source {source.name}: {error}") from error
    return TopicFrames(pipeline, source, decoding)


def topic_schema(frames: TopicFrames) -> "StructType":
    """The columns that transforms see."""
    from pyspark.sql.types import StructField, StructType

    from headgate.spark_udfs.executor.spark_types import spark_type
    from headgate.spark_udfs.source.columns import table_schema

    table = table_schema(frames.decoding, has_headers=True, registry=None)
    if frames.decoding is None:
        return StructType([table[name] for name in ("key", "value", *_PLACE[:4], "headers")])
    value = spark_type(frames.decoding.decoder().type)
    fields = list(value.fields) if isinstance(value, StructType) else [StructField("value", value)]
    if frames.source.metadata:
        fields.append(StructField(RECORD, StructType([table[name] for name in (*_PLACE, "schema_id")]), False))
    return StructType(fields)


def reader_options(source: TopicSource) -> dict[str, str]:
    """The reader's choice in the data source's words."""
    options = {"subject": source.subject}
    if source.version is not None:
        options["version"] = str(source.version)
    if source.schema_id is not None:
        options["schema_id"] = str(source.schema_id)
    if source.schema is not None:
        options["schema"] = source.schema
    if source.fields:
        options["fields"] = ",".join(source.fields)
    return options


@dataclass(frozen=True, slots=True)
class FileFrames:
    source: FilesSource
    schema: "StructType"
    """The declared columns, without the one for lines that do not parse."""

    @property
    def _parses(self) -> bool:
        return self.source.format in {"csv", "json"}

    def _options(self) -> dict[str, str]:
        options = dict(self.source.options)
        if self.source.format == "csv":
            options.setdefault("header", "true")
        if self._parses:
            options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        return options

    def _wide(self) -> "StructType":
        from pyspark.sql.types import StringType, StructField, StructType

        return StructType([*self.schema.fields, StructField(CORRUPT, StringType())]) if self._parses else self.schema

    def stream(self, spark: "SparkSession") -> "DataFrame":
        reader = spark.readStream.format(self.source.format).schema(self._wide()).options(**self._options())
        if self.source.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.source.files_per_batch)
        return self._outcome(reader.load(self.source.path))

    def table(self, spark: "SparkSession") -> "DataFrame":
        """What the files hold now."""
        reader = spark.read.format(self.source.format).schema(self._wide()).options(**self._options())
        return self.good(self._outcome(reader.load(self.source.path)))

    def _outcome(self, frame: "DataFrame") -> "DataFrame":
        """As a topic's frame: the row under `value`, its text under `raw`, and the reason where it does not parse."""
        from pyspark.sql import functions as f

        value = f.struct(*(f.col(f"`{name}`") for name in self.schema.names)).alias("value")
        bad = f.col(CORRUPT) if self._parses else f.lit(None).cast("string")
        detail = f.concat(f.lit("a line does not parse: "), f.col("_metadata.file_path"))
        return frame.select(
            value,
            f.when(bad.isNotNull(), f.lit("CORRUPT")).alias("reason"),
            f.encode(bad, "UTF-8").alias("raw"),
            f.when(bad.isNotNull(), detail).alias("detail"),
        )

    def good(self, frame: "DataFrame") -> "DataFrame":
        return frame.where("reason IS NULL").select("value.*")


def declared_schema(text: str, source: str) -> "StructType":
    """Spark's DDL. Raises `PipelineError`."""
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    why = ""
    try:
        found = StructType.fromDDL(text)
        if isinstance(found, StructType):
            return found
    except ParseException as error:
        why = str(error).split("\n\n", maxsplit=1)[0].strip()
    raise PipelineError(f"source {source}: schema is not a list of columns such as 'id BIGINT, name STRING'", why=why)


def file_frames(spark: "SparkSession", source: FilesSource, checkpoint: Checkpoint | None) -> FileFrames:
    """The columns are those declared, else those that the files had at the first start. Raises `PipelineError`."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import StructType

    if source.format == "avro":
        _require_avro(spark, source.name)
    if source.schema is not None:
        return FileFrames(source, declared_schema(source.schema, source.name))
    kept = None if checkpoint is None else checkpoint.read_json("schemas", source.name)
    if kept is not None:
        return FileFrames(source, StructType.fromJson(kept))
    reader = spark.read.format(source.format).options(**dict(source.options))
    if source.format == "csv":
        reader = reader.option("header", source.options.get("header", "true")).option("inferSchema", "true")
    try:
        schema = reader.load(source.path).schema
    except AnalysisException as error:
        raise PipelineError(
            f"source {source.name}: the columns of {source.path} are not known",
            why=str(error).split("\n")[0],
            advice="declare them: schema = 'id BIGINT, name STRING'; or put a first file there",
        ) from error
    schema = StructType([field for field in schema.fields if field.name != CORRUPT])
    if not schema.fields:
        raise PipelineError(f"source {source.name}: the files of {source.path} have no columns")
    if checkpoint is not None:
        checkpoint.write_json("schemas", source.name, json.loads(schema.json()))
    return FileFrames(source, schema)


def _require_avro(spark: "SparkSession", source: str) -> None:
    """Spark reads Avro's container files with a jar of its own, which PySpark does not bring."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.format("avro").schema("a INT").load([])
    except AnalysisException as error:
        raise PipelineError(
            f"source {source}: this Spark cannot read Avro files",
            why=str(error).split("\n", maxsplit=1)[0],
            advice=f"add org.apache.spark:spark-avro_2.13:{spark.version} under [spark] jars.packages",
        ) from error


def watermarked(frame: "DataFrame", source: object, name: str) -> "DataFrame":
    mark = getattr(source, "watermark", None)
    return frame if mark is None or not frame.isStreaming else with_watermark(frame, mark, name)
