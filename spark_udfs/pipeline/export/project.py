"""The project of a pipeline: a specification and one Python module.

Each step becomes a view `NAME_rows`, each sink a table or a sink with its own name. The translation needs neither Spark
nor the registry. Settings with credentials become environment variables. Steps that a declarative pipeline cannot
represent are reported together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate.spark_udfs.dead_letter import COLUMNS
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.export.code import dataset, listed, rows_of, transform_code, view
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Emit, Mode, Options, Pipeline, Read, Transform, WindowTransform
from headgate.spark_udfs.pipeline.plan import shown_value
from headgate.spark_udfs.pipeline.run import SESSION_SETTINGS
from headgate.spark_udfs.pipeline.sinks.dead_letter_topic import DeadLetterTopicSink
from headgate.spark_udfs.pipeline.sinks.delta import DeltaSink
from headgate.spark_udfs.pipeline.sinks.parquet import ParquetSink
from headgate.spark_udfs.pipeline.sinks.sink import DEAD_LETTERS, Sink
from headgate.spark_udfs.pipeline.sinks.topic import TopicSink
from headgate.spark_udfs.pipeline.sources.files import FilesSource
from headgate.spark_udfs.pipeline.sources.source import Source
from headgate.spark_udfs.pipeline.sources.topic import POSITION, RAW_COLUMNS, RECORD, TopicSource
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison

SPECIFICATION = "spark-pipeline.yml"
MODULE = "transformations/pipeline.py"
_FILE_MODES = {OnPoison.DROP: "DROPMALFORMED", OnPoison.FAIL: "FAILFAST"}
_ADDRESSES = {
    "kafka.bootstrap.servers": "HEADGATE_BOOTSTRAP_SERVER",
    "registry.url": "HEADGATE_REGISTRY_URL",
}
"""Options that an environment variable overrides."""

_HEAD = '''\
"""The pipeline {name}, exported by `headgate pipeline export`."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.spark_udfs import dead_letters, decode_topic, to_dead_letter_records, to_registry_avro

spark = SparkSession.active()

KAFKA = {kafka}
REGISTRY = {registry}
'''

_LATEST = """\
    record = f.struct("value", "timestamp", "offset"{record})
    last = rows.groupBy({key}.alias("table_key"), "partition").agg(f.max_by(record, "offset").alias("last"))
    last = last.groupBy("table_key").agg(f.max_by("last", f.struct("last.timestamp", "last.offset")).alias("last"))
    return last.where("last.value IS NOT NULL").select({columns})"""
"""The last record of each key, as in `pipeline.tables`: by offset in a partition, then by timestamp."""


@dataclass(frozen=True, slots=True)
class Project:
    files: Mapping[str, str]
    """Text by path in the project."""
    variables: tuple[str, ...]
    """Environment variables that must contain credentials."""

    def write(self, folder: Path) -> None:
        """Raises `PipelineError` if the folder exists."""
        try:
            folder.mkdir(parents=True)
            for name, text in self.files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            advice = "choose a new folder" if isinstance(error, FileExistsError) else ""
            raise PipelineError(f"cannot write {folder}", why=error.strerror or str(error), advice=advice) from error


def export(pipeline: Pipeline) -> Project:
    """Raises `PipelineMistakes` with every step that cannot be exported."""
    return _Export(pipeline).project()


@dataclass(slots=True)
class _Export:
    pipeline: Pipeline
    mistakes: list[Mistake] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    letters: list[tuple[str, str]] = field(default_factory=list)
    """Code of the rows with dead letters, and their source."""

    def project(self) -> Project:
        pipeline, graph = self.pipeline, Graph(self.pipeline)
        kafka, registry = self._options(pipeline.kafka), self._options(pipeline.registry)
        parts = [_HEAD.format(name=pipeline.name, kafka=kafka, registry=registry)]
        for name, source in pipeline.sources.items():
            parts += self._source(name, source)
        for transform in graph.ordered():
            self._check(transform)
            parts.append(transform_code(transform, graph))
        for sink in pipeline.sinks.values():
            parts += self._sink(sink, graph)
        if pipeline.dead_letters is not None:
            parts += self._dead_letters(pipeline.dead_letters)
        taken = {f"{name}_{end}" for name in (*pipeline.steps, *pipeline.sinks) for end in ("rows", "decoded", "made")}
        for name in taken & set(pipeline.sinks):
            self._wrong(f"sinks.{name}", "the exported project has another dataset with this name; rename the sink")
        if self.mistakes:
            raise PipelineMistakes(pipeline.file, self.mistakes)
        files = {SPECIFICATION: self._specification(), MODULE: "\n\n".join(parts)}
        return Project(files, tuple(dict.fromkeys(self.variables)))

    def _specification(self) -> str:
        import yaml

        checkpoint = self.pipeline.checkpoint
        found: dict[str, object] = {
            "name": self.pipeline.name,
            "storage": checkpoint if "://" in checkpoint else Path(checkpoint).as_uri(),
            "libraries": [{"glob": {"include": MODULE}}],
        }
        settings = {**SESSION_SETTINGS, "spark.sql.shuffle.partitions": "4", **self.pipeline.spark}
        for sink in self.pipeline.sinks_by_path.values():
            settings |= sink.session_settings(self.pipeline.spark)
        found["configuration"] = settings
        return yaml.safe_dump(found, sort_keys=False, allow_unicode=True)

    def _wrong(self, path: str, message: str) -> None:
        self.mistakes.append(Mistake(path, None, message))

    def _options(self, options: Options, *shared: str) -> str:
        """A Python dictionary: shared ones, then the options without credentials."""
        items = [f"**{name}" for name in shared]
        items += [f"{name!r}: {self._value(name, value)}" for name, value in options.items()]
        return f"{{{', '.join(items)}}}"

    def _value(self, name: str, value: str) -> str:
        if shown_value(name, value) != value:
            variable = name.upper().replace(".", "_").replace("-", "_")
            self.variables.append(variable)
            return f"os.environ[{variable!r}]"
        return f"os.environ.get({_ADDRESSES[name]!r}, {value!r})" if name in _ADDRESSES else repr(value)

    def _source(self, name: str, source: Source) -> Iterator[str]:
        if isinstance(source, TopicSource):
            yield from self._topic(name, source)
        elif isinstance(source, FilesSource):
            yield self._files(f"sources.{name}", source)
        else:
            self._wrong(f"sources.{name}", "cannot be exported: a declarative pipeline cannot read this database")

    def _topic(self, name: str, source: TopicSource) -> Iterator[str]:
        if source.on_new_version is OnNewVersion.RESTART:
            self._wrong(f"sources.{name}.on_new_version", "a declarative pipeline does not restart; use KEEP or FAIL")
        is_table = source.read is Read.TABLE
        options = {
            "subscribe": source.topic,
            "startingOffsets": source.starting_offsets,
            "includeHeaders": "true",
            **source.options,
        }
        if source.decode:
            is_fail = source.on_poison is OnPoison.FAIL and not is_table
            options |= {
                **source.reader_options(),
                "on_poison": "FAIL" if is_fail else "DEAD_LETTER",
                "on_new_version": str(source.on_new_version),
                "on_registry_down": str(source.on_registry_down),
            }
        shared = ("KAFKA", "REGISTRY") if source.decode else ("KAFKA",)
        limited = self._options({**options, "maxOffsetsPerTrigger": str(source.rows_per_batch)}, *shared)
        yield view(f"{name}_decoded", f'    return spark.readStream.format("headgate").options(**{limited}).load()')
        decoded = f'spark.readStream.table("{name}_decoded")'
        record = f", f.struct{listed((*POSITION, 'schema_id'))}.alias({RECORD!r})" if source.metadata else ""
        if is_table:
            body = f'    rows = spark.read.format("headgate").options(**{self._options(options, *shared)}).load()\n'
            yield dataset("materialized_view", f"{name}_rows", body + _latest(source, record))
        elif source.decode:
            body = f'    good, _ = decode_topic({decoded})\n    return good.select("value.*"{record})'
            yield view(f"{name}_rows", body)
        else:
            yield view(f"{name}_rows", f"    return {decoded}.select{listed(RAW_COLUMNS)}")
        if source.decode and source.on_poison is OnPoison.DEAD_LETTER:
            tombstones = """.where("reason <> 'NULL' OR key IS NULL")""" if is_table else ""
            self.letters.append((decoded + tombstones, name))

    def _files(self, where: str, source: FilesSource) -> str:
        if source.schema is None:
            self._wrong(f"{where}.schema", "is required for the export: the columns in Spark's DDL")
        options = dict(source.options)
        if source.format == "csv":
            options.setdefault("header", "true")
        if source.is_parsed:
            options["mode"] = _FILE_MODES.get(source.on_poison, "")
            if not options["mode"]:
                self._wrong(f"{where}.on_poison", "a declarative pipeline cannot store bad lines; use DROP or FAIL")
        is_stream = source.read is Read.STREAM
        if source.files_per_batch is not None and is_stream:
            options["maxFilesPerTrigger"] = str(source.files_per_batch)
        reader = f"spark.{'readStream' if is_stream else 'read'}.format({source.format!r}).schema({source.schema!r})"
        rows = f"{reader}.options(**{self._options(options)}).load({source.path!r})"
        return view(f"{source.name}_rows", f"    return {rows}")

    def _check(self, transform: Transform) -> None:
        if isinstance(transform, WindowTransform) and transform.emit is Emit.CHANGES:
            self._wrong(f"transforms.{transform.name}.emit", 'a streaming table is append-only; use emit = "final"')

    def _sink(self, sink: Sink, graph: Graph) -> Iterator[str]:
        where = f"sinks.{sink.name}"
        if isinstance(sink, TopicSink):
            yield from self._topic_sink(sink, graph)
        elif not isinstance(sink, (ParquetSink, DeltaSink)):
            self._wrong(where, "cannot be exported: a declarative pipeline writes parquet, delta and topic sinks only")
        elif sink.mode is Mode.UPSERT:
            self._wrong(f"{where}.mode", "a declarative pipeline cannot upsert; use append")
        else:
            arguments = f"name={_table_name(sink)!r}, format={_format(sink)!r}"
            arguments += f", partition_cols={list(sink.partition_by)!r}" if sink.partition_by else ""
            body = f"    return {rows_of(sink.input, graph)}"
            yield dataset(
                "table" if graph.is_stream(sink.input) else "materialized_view", f"{sink.name}_table", body, arguments
            )

    def _topic_sink(self, sink: TopicSink, graph: Graph) -> Iterator[str]:
        key = f'f.expr({sink.key!r}).cast("string")' if sink.key else "f.lit(None)"
        arguments = f"registry=REGISTRY or None, register={sink.register}, on_poison='DEAD_LETTER'"
        arguments += f", schema={sink.schema!r}" if sink.schema is not None else ""
        yield view(
            f"{sink.name}_made",
            f"    rows = {rows_of(sink.input, graph)}\n"
            f'    made = to_registry_avro(f.struct("*"), {sink.subject!r}, {arguments}).alias("made")\n'
            f'    return rows.select({key}.cast("binary").alias("key"), made, f.to_json(f.struct("*")).alias("row"))',
        )
        options = self._options({**sink.options, "topic": sink.topic}, "KAFKA")
        yield f'dp.create_sink({sink.name!r}, "headgate", {options})\n'
        made = f'spark.readStream.table("{sink.name}_made")'
        is_fail = sink.on_refused is OnPoison.FAIL
        problem = "f.raise_error(f.col('made.reason'))" if is_fail else "f.lit(None)"
        yield dataset(
            "append_flow",
            f"{sink.name}_records",
            f'    value = f.when(f.col("made.reason").isNull(), f.col("made.value")).otherwise({problem})\n'
            f'    return {made}.select("key", value.alias("value")).where("value IS NOT NULL")',
            f"target={sink.name!r}",
        )
        if sink.on_refused is OnPoison.DEAD_LETTER:
            columns = 'f.encode("row", "UTF-8").alias("raw"), f.lit("INVALID_VALUE").alias("reason")'
            refused = f'{made}.where("made.reason IS NOT NULL").select({columns}, f.col("made.reason").alias("detail"))'
            self.letters.append((refused, f"sink {sink.name}"))

    def _dead_letters(self, sink: Sink) -> Iterator[str]:
        """One flow for all dead letters. Spark skips batches of a second flow into the same Parquet table."""
        name = self.pipeline.name
        if isinstance(sink, DeadLetterTopicSink):
            yield f'dp.create_sink("{DEAD_LETTERS}", "headgate", {self._options(sink.options, "KAFKA")})\n'
            kind, arguments = "append_flow", f"target={DEAD_LETTERS!r}"
            body = f"to_dead_letter_records(dead_letters(rows), {sink.topic!r}, application={name!r})"
        elif isinstance(sink, (ParquetSink, DeltaSink)):
            kind, arguments = "table", f"name={_table_name(sink)!r}, format={_format(sink)!r}"
            added = f'f.lit(source).alias("source"), f.lit({name!r}).alias("pipeline")'
            failed_at = 'f.current_timestamp().alias("failed_at")'
            body = f"dead_letters(rows).select(*{tuple(COLUMNS)!r}, {added}, {failed_at})"
        else:
            self._wrong(DEAD_LETTERS, "cannot be exported; use topic, parquet or delta")
            return
        if self.letters:
            first, *others = (f"letters({rows}, {source!r})" for rows, source in self.letters)
            union = first + "".join(f".unionByName({other})" for other in others)
            yield f"def letters(rows: DataFrame, source: str) -> DataFrame:\n    return {body}\n"
            yield dataset(kind, "all_letters", f"    return {union}", arguments)


def _latest(source: TopicSource, record: str) -> str:
    """The rows of a lookup table. A tombstone deletes the row of its record key."""
    key = f"f.struct{listed(f'value.{each}' for each in source.key)}" if source.key else 'f.col("key")'
    kept = "reason IS NULL" if source.key else "reason IS NULL OR (reason = 'NULL' AND key IS NOT NULL)"
    columns = '"last.value.*"' + (f", {f'last.{RECORD}'!r}" if source.metadata else "")
    return f'    rows = rows.where("{kept}")\n' + _LATEST.format(record=record, key=key, columns=columns)


def _format(sink: ParquetSink | DeltaSink) -> str:
    return "delta" if isinstance(sink, DeltaSink) else "parquet"


def _table_name(sink: Sink) -> str:
    return ".".join(sink.table) if isinstance(sink, DeltaSink) and sink.table else sink.name
