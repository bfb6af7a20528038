"""What a pipeline would do, without doing it: its queries, its steps and their columns, what each sink promises.

Rendered as text for people and as JSON for programs. Secrets are left out of both.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.assembly import Outline
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import (
    ConsoleSink,
    DeltaSink,
    FilesSource,
    FunctionSink,
    JdbcSink,
    JoinTransform,
    Mode,
    ParquetSink,
    Pipeline,
    Read,
    Sink,
    Source,
    SqlTransform,
    TableLetters,
    TopicLetters,
    TopicSource,
    Transform,
    WindowKind,
)
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, EXACTLY_ONCE
from headgate.spark_udfs.pipeline.sources import TopicFrames

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_CREDENTIALS = re.compile(r"(?<=://)(?:(?!,\w+://).)*@", re.DOTALL)
"""Up to the last @ of each address: a password may contain an @, a slash or a blank."""
_SECRET = ("password", "secret", "token", "user.info", "jaas")


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    kind: str
    """`source`, `transform`, `sink` or `dead letters`."""
    summary: str
    notes: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    pipeline: str
    description: str
    file: str
    checkpoint: str
    settings: Mapping[str, str]
    queries: tuple[str, ...]
    steps: tuple[Step, ...]
    unused: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "description": self.description,
            "file": self.file,
            "checkpoint": self.checkpoint,
            "settings": dict(self.settings),
            "queries": list(self.queries),
            "steps": [
                {
                    "name": step.name,
                    "kind": step.kind,
                    "summary": step.summary,
                    "notes": list(step.notes),
                    "inputs": list(step.inputs),
                    "columns": [{"name": name, "type": kind} for name, kind in step.columns],
                }
                for step in self.steps
            ],
            "unused": list(self.unused),
        }

    def as_text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"pipeline {self.pipeline} ({self.file})"
        if self.description:
            yield f"  {self.description}"
        yield f"  checkpoint  {self.checkpoint}"
        for name, value in self.settings.items():
            yield f"  {name}  {value}"
        for step in self.steps:
            yield ""
            arrow = f" ← {', '.join(step.inputs)}" if step.inputs else ""
            yield f"{step.kind} {step.name}{arrow}"
            yield f"  {step.summary}"
            for note in step.notes:
                yield f"  {note}"
            width = max((len(name) for name, _ in step.columns), default=0)
            for name, kind in step.columns:
                yield f"    {name.ljust(width)}  {kind}"
        yield ""
        yield "streaming queries"
        for query in self.queries:
            yield f"  {query}"
        if self.unused:
            yield ""
            yield f"nothing reads {', '.join(self.unused)}"


def plan_of(pipeline: Pipeline, outline: Outline) -> Plan:
    graph = Graph(pipeline)
    schemas = outline.analysis.schemas
    steps: list[Step] = []
    for name, source in pipeline.sources.items():
        summary, notes = _source(source, outline.frames[name])
        steps.append(Step(name, "source", summary, notes, _columns(schemas[name])))
    for transform in graph.ordered():
        notes = ("keeps rows over many micro-batches",) if transform.name in outline.analysis.stateful else ()
        steps.append(
            Step(
                transform.name,
                "transform",
                _transform(transform),
                notes,
                _columns(schemas[transform.name]),
                transform.inputs,
            )
        )
    for sink in pipeline.sinks.values():
        summary, promise = _sink(sink)
        steps.append(Step(sink.name, "sink", summary, (promise,), inputs=(sink.input,)))
    letters = pipeline.dead_letters
    if isinstance(letters, TopicLetters):
        steps.append(Step("dead_letters", "dead letters", f"topic {letters.topic}", (AT_LEAST_ONCE,)))
    elif isinstance(letters, TableLetters):
        summary, promise = _sink(letters.sink)
        steps.append(Step("dead_letters", "dead letters", summary, (promise,)))
    settings = {**pipeline.kafka, **pipeline.registry, **pipeline.spark}
    return Plan(
        pipeline=pipeline.name,
        description=pipeline.description,
        file=pipeline.file,
        checkpoint=pipeline.checkpoint,
        settings={name: shown_value(name, value) for name, value in sorted(settings.items())},
        queries=tuple(_queries(pipeline, outline)),
        steps=tuple(steps),
        unused=outline.shape.unused,
    )


def shown_value(name: str, value: str) -> str:
    """Without what nobody else should read."""
    if any(part in name.lower() for part in _SECRET):
        return "…"
    return _CREDENTIALS.sub("…@", value)


def _columns(schema: "StructType") -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in schema.fields)


def _source(source: Source, frames: object) -> tuple[str, tuple[str, ...]]:
    notes: list[str] = []
    if isinstance(source, TopicSource):
        summary = f"topic {source.topic}"
        if isinstance(frames, TopicFrames) and frames.decoding is not None:
            reader = frames.decoding.reader
            version = "" if reader.version is None else f" version {reader.version}"
            identity = "" if reader.schema_id is None else f", id {reader.schema_id}"
            summary += f", {reader.language} decoded with {source.subject}{version}{identity}"
            notes.append(f"a new version: {source.on_new_version}; poison: {source.on_poison}")
        else:
            summary += ", not decoded"
        if source.read is Read.TABLE:
            summary += f", as a table by {', '.join(source.key) or 'the key of its records'}"
        else:
            notes.append(f"from {source.starting_offsets}")
    elif isinstance(source, FilesSource):
        summary = f"{source.format} files {source.path}"
        notes.append(f"poison: {source.on_poison}")
    else:
        summary = f"{source.database.url}: {source.query}"
        if source.read is Read.STREAM:
            growing = source.incremental
            notes.append(f"new rows by {growing}" if growing else "one pass over all rows at each start")
    if not isinstance(source, TopicSource) and source.read is Read.TABLE:
        summary += ", as a table"
    if source.watermark is not None:
        notes.append(f"watermark {source.watermark.delay} behind {source.watermark.column}")
    return summary, tuple(notes)


def _transform(transform: Transform) -> str:
    if isinstance(transform, SqlTransform):
        return " ".join(transform.sql.split())
    if isinstance(transform, JoinTransform):
        return f"{transform.how} join on {transform.on}"
    length = "a gap of" if transform.kind is WindowKind.SESSION else "of"
    every = f" every {transform.slide}" if transform.slide else ""
    by = f" by {', '.join(transform.group_by)}" if transform.group_by else ""
    late = f", late by up to {transform.watermark}" if transform.watermark else ""
    return f"{transform.kind} windows {length} {transform.size}{every} on {transform.time}{by}{late}, {transform.emit}"


def _sink(sink: Sink) -> tuple[str, str]:
    """What it is, and what it promises."""
    if isinstance(sink, ParquetSink):
        return f"Parquet {sink.path}, {sink.mode}", EXACTLY_ONCE
    if isinstance(sink, DeltaSink):
        return f"Delta {sink.path}, {_mode(sink.mode, sink.keys)}", EXACTLY_ONCE
    if isinstance(sink, JdbcSink):
        return f"{sink.database.url} table {sink.table}, {_mode(sink.mode, sink.keys)}", EXACTLY_ONCE
    if isinstance(sink, FunctionSink):
        return f"Python {sink.function}", f"{AT_LEAST_ONCE}; the function can tell a batch that is done again"
    if isinstance(sink, ConsoleSink):
        return f"the first {sink.rows} rows of each batch on stdout", AT_LEAST_ONCE
    how = "registered" if sink.schema is not None and sink.register else "looked up"
    return f"topic {sink.topic}, Avro with {sink.subject}, {how}", AT_LEAST_ONCE


def _mode(mode: Mode, keys: tuple[str, ...]) -> str:
    return f"{mode} by {', '.join(keys)}" if keys else str(mode)


def _queries(pipeline: Pipeline, outline: Outline) -> Iterator[str]:
    shape = outline.shape
    for name in shape.tables:
        if isinstance(pipeline.sources[name], TopicSource):
            yield f"{name}: the topic into its table, every {pipeline.refresh_seconds:g} s"
    for name, intake in shape.intakes.items():
        parts = [f"sinks {', '.join(intake.sinks)}"] if intake.sinks else []
        parts += [f"stages {', '.join(intake.stages)}"] if intake.stages else []
        yield f"{name}: read and decoded once → {'; '.join(parts) or 'nothing'}"
    for name, gathering in shape.gatherings.items():
        yield f"{name}: {', '.join(gathering.stages)} gathered → sinks {', '.join(gathering.sinks)}"
    if shape.table_sinks:
        yield f"tables → sinks {', '.join(shape.table_sinks)}, whenever they change"
