"""Topic source: records of the data source `headgate`, decoded with a registered schema."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean, shown
from headgate.spark_udfs.pipeline.model import PIPELINE_POLICIES, Options, Pipeline, Read
from headgate.spark_udfs.pipeline.sources.source import (
    Source,
    SourceContext,
    SourceDefaults,
    SourceFrames,
    StreamFrames,
)
from headgate.spark_udfs.pipeline.tables import TopicTable
from headgate.spark_udfs.spec.policy import OnNewVersion, OnRegistryDown

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.executor.decoding import Decoding
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

RECORD = "_record"
"""The column with the position of a record, if `metadata = true`."""
ROWS_PER_BATCH_DEFAULT = 1_000_000
"""A batch is cached while it is written. A batch with all records of a large topic would fill the disk."""
POSITION = ("topic", "partition", "offset", "timestamp", "key")
RAW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")

_KEY_OF_OPTION = {
    "subscribe": "topic",
    "assign": "topic",
    "subscribepattern": "topic",
    "subject": "subject",
    "startingoffsets": "starting_offsets",
    "maxoffsetspertrigger": "rows_per_batch",
    "on_poison": "on_poison",
    "on_new_version": "on_new_version",
    "on_registry_down": "on_registry_down",
    "version": "version",
    "schema_id": "schema_id",
    "schema": "schema",
    "fields": "fields",
}
"""Data source options that have a key in the section."""
_FIXED_OPTIONS = frozenset({"columns", "flat", "includeheaders"})
"""Data source options that the pipeline sets itself."""
_SCHEMA_KEYS = ("version", "schema_id", "schema", "schema_file")


@dataclass(frozen=True, slots=True)
class TopicSource(Source):
    topic: str
    subject: str
    decode: bool = True
    version: int | None = None
    schema_id: int | None = None
    schema: str | None = None
    fields: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    """The key fields of a table; empty for the record key."""
    metadata: bool = False
    """Adds the column `_record`: topic, partition, offset, timestamp, key and schema id."""
    starting_offsets: str = "earliest"
    rows_per_batch: int = ROWS_PER_BATCH_DEFAULT
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    on_registry_down: OnRegistryDown = OnRegistryDown.WAIT
    options: Options = field(default_factory=dict)

    has_table_query: ClassVar[bool] = True

    @classmethod
    def from_table(cls, table: "TableReader", name: str, defaults: SourceDefaults) -> "TopicSource":
        topic = fields.topic_name(table, "topic") if table.has("topic") else name
        table.take("topic")
        read = table.choice("read", Read, Read.STREAM)
        found = cls(
            name,
            topic=topic,
            subject=table.text("subject") or f"{topic}-value",
            read=read,
            decode=table.boolean("decode", True),
            version=table.number("version"),
            schema_id=table.number("schema_id"),
            schema=fields.schema_text(table),
            fields=table.texts("fields"),
            key=table.texts("key"),
            metadata=table.boolean("metadata", False),
            starting_offsets=_starting_offsets(table, read),
            rows_per_batch=table.number("rows_per_batch") or ROWS_PER_BATCH_DEFAULT,
            watermark=fields.watermark(table),
            on_poison=table.choice("on_poison", PIPELINE_POLICIES, defaults.on_poison),
            on_new_version=table.choice("on_new_version", OnNewVersion, defaults.on_new_version),
            on_registry_down=table.choice("on_registry_down", OnRegistryDown, defaults.on_registry_down),
            options=table.options("options"),
        )
        found._check(table)
        return found

    def _check(self, table: "TableReader") -> None:
        chosen = [key for key in _SCHEMA_KEYS if table.has(key)]
        if len(chosen) > 1:
            table.wrong(chosen[1], f"{' and '.join(chosen)} are mutually exclusive")
        if self.key and self.read is Read.STREAM:
            table.wrong("key", 'requires read = "table": the key fields of its rows')
        if not self.decode:
            if self.read is Read.TABLE:
                table.wrong("decode", "the values of a table must be decoded")
            for key in ("subject", *_SCHEMA_KEYS, "fields", "on_new_version", "on_registry_down"):
                if table.has(key):
                    table.wrong(key, "has no effect with decode = false")
        for option in self.options:
            if option.lower() in _KEY_OF_OPTION:
                table.wrong(f"options.{option}", f"use the key {_KEY_OF_OPTION[option.lower()]} instead")
            elif option.lower() in _FIXED_OPTIONS:
                table.wrong(f"options.{option}", "is set by the pipeline, which reads all columns")

    def describe(self, frames: SourceFrames) -> tuple[str, tuple[str, ...]]:
        from headgate.spark_udfs.spec.reader import Reader

        assert isinstance(frames, TopicFrames)
        summary, notes = f"topic {self.topic}", []
        if frames.decoding is not None:
            reader = frames.decoding.reader
            assert isinstance(reader, Reader)
            version = "" if reader.version is None else f" version {reader.version}"
            schema_id = "" if reader.schema_id is None else f", id {reader.schema_id}"
            summary += f", {reader.language} decoded with {self.subject}{version}{schema_id}"
            notes.append(
                f"new version: {self.on_new_version}; registry down: {self.on_registry_down}; poison: {self.on_poison}"
            )
        else:
            summary += ", not decoded"
        if self.read is Read.TABLE:
            summary += f", as a table by {', '.join(self.key) or 'the record key'}"
        else:
            notes.append(f"from {self.starting_offsets}")
        return summary, tuple(notes)

    def open(self, context: SourceContext) -> "TopicFrames":
        if not self.decode:
            return TopicFrames(context.pipeline, self, None)
        from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
        from headgate.spark_udfs.driver.reader_choice import ReaderError, RegistryNotReady
        from headgate.spark_udfs.spec.registry_options import OptionError

        choice = choice_of(self.subject, self.version, self.schema_id, self.schema, self.fields or None)
        try:
            decoding = plan_decoding(choice, dict(context.pipeline.registry) or None)
        except (ReaderError, OptionError) as error:
            is_unreachable = isinstance(error, RegistryNotReady)
            raise PipelineError(f"source {self.name}: {error}", unreachable=is_unreachable) from error
        return TopicFrames(context.pipeline, self, decoding)

    @property
    def needs_dead_letters(self) -> bool:
        return self.decode

    @property
    def topic_options(self) -> tuple[Options, Options] | None:
        return {"subscribe": self.topic, "startingOffsets": self.starting_offsets}, self.options

    @property
    def input_topic(self) -> str | None:
        return self.topic

    def reader_options(self) -> dict[str, str]:
        """The choice of the reader schema as data source options."""
        chosen = {"subject": self.subject, "version": self.version, "schema_id": self.schema_id, "schema": self.schema}
        options = {name: str(value) for name, value in chosen.items() if value is not None}
        return {**options, "fields": ",".join(self.fields)} if self.fields else options


def _starting_offsets(table: "TableReader", read: Read) -> str:
    value: Any = table.take("starting_offsets")
    if value is None:
        return "earliest"
    if read is Read.TABLE:
        table.wrong("starting_offsets", "has no effect on a table, which is read from the beginning")
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, str):
        if value in {"earliest", "latest"}:
            return value
        try:
            if isinstance(json.loads(value), dict):
                return value
        except (ValueError, RecursionError):
            pass
    table.wrong("starting_offsets", f"expected earliest, latest or offsets by topic and partition, not {shown(value)}")
    return "earliest"


class TopicFrames(StreamFrames):
    """The DataFrames of a topic. The reader schema was chosen when this object was created."""

    def __init__(self, pipeline: Pipeline, source: TopicSource, decoding: "Decoding | None") -> None:
        self._pipeline = pipeline
        self._source = source
        self.decoding = decoding
        self.schema = _schema(source, decoding)

    def stream(self, spark: "SparkSession") -> "DataFrame":
        source = self._source
        options: dict[str, str] = {
            **self._pipeline.kafka,
            "subscribe": source.topic,
            "startingOffsets": "earliest" if source.read is Read.TABLE else source.starting_offsets,
            "includeHeaders": "true",
            **source.options,
            "maxOffsetsPerTrigger": str(source.rows_per_batch),
        }
        if source.decode:
            options |= {**self._pipeline.registry, **source.reader_options()}
            # The pipeline applies its own policy after it has counted the rows. In a table, null is a deletion.
            options["on_poison"] = "DEAD_LETTER"
            options["on_new_version"] = str(source.on_new_version)
            options["on_registry_down"] = str(source.on_registry_down)
        return spark.readStream.format("headgate").options(**options).load()

    def good(self, frame: "DataFrame") -> "DataFrame":
        if "reason" not in frame.columns:
            return frame.select(*RAW_COLUMNS)
        value = "value.*" if _is_record(frame) else "value"
        return frame.where("reason IS NULL").select(value, *self._record_column())

    def open_table(self, checkpoint: Checkpoint, refresh_seconds: float) -> TopicTable:
        source, names = self._source, self.schema.names
        for field_ in source.key:
            if field_ not in names:
                raise PipelineError(
                    f"source {source.name}: there is no key field {field_}{did_you_mean(field_, names)}",
                    why=f"the values have {', '.join(names)}",
                )
        return TopicTable(checkpoint.files, checkpoint.table(source.name), self.schema, source.key, self._row)

    def _row(self, frame: "DataFrame") -> "Column":
        """The columns of `schema` as one struct; null if the value is null, which deletes the row from a table."""
        from pyspark.sql import functions as f

        value = f.col("value")
        if not _is_record(frame):
            return f.when(value.isNotNull(), f.struct("value", *self._record_column()))
        if not self._source.metadata:
            return value
        columns = [value.getField(name).alias(name) for name in frame.select("value.*").columns]
        return f.when(value.isNotNull(), f.struct(*columns, *self._record_column()))

    def _record_column(self) -> "list[Column]":
        from pyspark.sql import functions as f

        return [f.struct(*POSITION, "schema_id").alias(RECORD)] if self._source.metadata else []


def _is_record(frame: "DataFrame") -> bool:
    return frame.schema["value"].dataType.typeName() == "struct"


def _schema(source: TopicSource, decoding: "Decoding | None") -> "StructType":
    from pyspark.sql.types import StructField, StructType

    from headgate.spark_udfs.executor.spark_types import spark_type
    from headgate.spark_udfs.source.record_decoding import RecordDecoding
    from headgate.spark_udfs.source.spark_columns import table_schema

    table = table_schema(None if decoding is None else RecordDecoding(decoding), has_headers=True, registry=None)
    if decoding is None:
        return StructType([table[name] for name in RAW_COLUMNS])
    value = spark_type(decoding.decoder().type)
    columns = list(value.fields) if isinstance(value, StructType) else [StructField("value", value)]
    if source.metadata:
        columns.append(StructField(RECORD, StructType([table[name] for name in (*POSITION, "schema_id")]), False))
    return StructType(columns)
