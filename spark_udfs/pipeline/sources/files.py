"""Files source: CSV, JSON, Parquet or Avro files. Lines that do not parse have the reason CORRUPT."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.checks import fields
from headgate.spark_udfs.pipeline.document import resolve_path
from headgate.spark_udfs.pipeline.errors import PipelineError, shown
from headgate.spark_udfs.pipeline.model import PIPELINE_POLICIES, Options, Read
from headgate.spark_udfs.pipeline.sources.source import (
    Source,
    SourceContext,
    SourceDefaults,
    SourceFrames,
    StreamFrames,
    parse_ddl,
)
from headgate.spark_udfs.pipeline.tables import CachedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

CORRUPT = "_corrupt_record"
"""Spark's column for a line that does not parse."""
FORMATS = ("csv", "json", "parquet", "avro")
_SUFFIXES = {
    "csv": "csv",
    "tsv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
    "avro": "avro",
}


@dataclass(frozen=True, slots=True)
class FilesSource(Source):
    path: str
    format: str
    schema: str | None = None
    """Columns in Spark's DDL. By default the columns of the files at the first start."""
    files_per_batch: int | None = None
    options: Options = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: "TableReader", name: str, defaults: SourceDefaults) -> "FilesSource":
        path = table.required("path", "the folder or the pattern of the files")
        format_ = table.one_of("format", FORMATS)
        if format_ is None and not table.has("format"):
            format_ = _SUFFIXES.get(path.rpartition(".")[2].lower().rstrip("*"))
            if path and format_ is None:
                table.wrong("format", f"is required, because {shown(path)} has no known suffix: {', '.join(FORMATS)}")
        return cls(
            name,
            path=resolve_path(path, table.document),
            format=format_ or "csv",
            read=table.choice("read", Read, Read.STREAM),
            schema=table.text("schema"),
            files_per_batch=table.number("files_per_batch"),
            watermark=fields.watermark(table),
            on_poison=table.choice("on_poison", PIPELINE_POLICIES, defaults.on_poison),
            options=table.options("options"),
        )

    def describe(self, frames: SourceFrames) -> tuple[str, tuple[str, ...]]:
        as_table = ", as a table" if self.read is Read.TABLE else ""
        return f"{self.format} files {self.path}{as_table}", (f"poison: {self.on_poison}",)

    @property
    def is_parsed(self) -> bool:
        """Whether lines of the files can be malformed."""
        return self.format in {"csv", "json"}

    @property
    def needs_dead_letters(self) -> bool:
        return self.is_parsed

    def open(self, context: SourceContext) -> "FileFrames":
        """The columns are the declared ones, else those of the files at the first start."""
        from pyspark.sql.types import StructType

        if self.format == "avro":
            _require_avro(context.spark, self.name)
        if self.schema is not None:
            return FileFrames(self, parse_ddl(self.schema, self.name))
        stored = None if context.checkpoint is None else context.checkpoint.read_json("schemas", self.name)
        if stored is not None:
            return FileFrames(self, StructType.fromJson(stored))
        schema = self._inferred(context.spark)
        if context.checkpoint is not None:
            context.checkpoint.write_json("schemas", self.name, json.loads(schema.json()))
        return FileFrames(self, schema)

    def _inferred(self, spark: "SparkSession") -> "StructType":
        from pyspark.errors import AnalysisException
        from pyspark.sql.types import StructType

        reader = spark.read.format(self.format).options(**dict(self.options))
        if self.format == "csv":
            reader = reader.option("header", self.options.get("header", "true")).option("inferSchema", "true")
        try:
            found = reader.load(self.path).schema
        except AnalysisException as error:
            raise PipelineError(
                f"source {self.name}: the columns of {self.path} are unknown",
                why=str(error).split("\n")[0],
                advice="declare them: schema = 'id BIGINT, name STRING'; or add a first file",
            ) from error
        schema = StructType([column for column in found.fields if column.name != CORRUPT])
        if not schema.fields:
            raise PipelineError(f"source {self.name}: the files of {self.path} have no columns")
        return schema


class FileFrames(StreamFrames):
    def __init__(self, source: FilesSource, schema: "StructType") -> None:
        self._source = source
        self.schema = schema

    def _options(self) -> dict[str, str]:
        options = dict(self._source.options)
        if self._source.format == "csv":
            options.setdefault("header", "true")
        if self._source.is_parsed:
            options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        return options

    def _read_schema(self) -> "StructType":
        from pyspark.sql.types import StringType, StructField, StructType

        if not self._source.is_parsed:
            return self.schema
        return StructType([*self.schema.fields, StructField(CORRUPT, StringType())])

    def stream(self, spark: "SparkSession") -> "DataFrame":
        reader = spark.readStream.format(self._source.format).schema(self._read_schema()).options(**self._options())
        if self._source.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self._source.files_per_batch)
        return self._outcome(reader.load(self._source.path))

    def open_table(self, checkpoint: Checkpoint, refresh_seconds: float) -> CachedTable:
        return CachedTable(self._rows, refresh_seconds)

    def _rows(self, spark: "SparkSession") -> "DataFrame":
        """The current content of the files."""
        reader = spark.read.format(self._source.format).schema(self._read_schema()).options(**self._options())
        return self.good(self._outcome(reader.load(self._source.path)))

    def _outcome(self, frame: "DataFrame") -> "DataFrame":
        """The columns of a decoded topic: the row in `value`, and `reason`, `raw`, `detail` of malformed lines."""
        from pyspark.sql import functions as f

        value = f.struct(*(f.col(f"`{name}`") for name in self.schema.names)).alias("value")
        bad = f.col(CORRUPT) if self._source.is_parsed else f.lit(None).cast("string")
        detail = f.concat(f.lit("cannot parse a line of "), f.col("_metadata.file_path"))
        return frame.select(
            value,
            f.when(bad.isNotNull(), f.lit("CORRUPT")).alias("reason"),
            f.encode(bad, "UTF-8").alias("raw"),
            f.when(bad.isNotNull(), detail).alias("detail"),
        )

    def good(self, frame: "DataFrame") -> "DataFrame":
        return frame.where("reason IS NULL").select("value.*")


def _require_avro(spark: "SparkSession", source: str) -> None:
    """PySpark does not contain the jar that reads Avro container files."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.format("avro").schema("a INT").load([])
    except AnalysisException as error:
        raise PipelineError(
            f"source {source}: this Spark cannot read Avro files",
            why=str(error).split("\n", maxsplit=1)[0],
            advice=f"add org.apache.spark:spark-avro_2.13:{spark.version} to jars.packages in [spark]",
        ) from error
