"""The plan of a pipeline: its queries, its steps with their columns, and the guarantee of each sink.

Rendered as text or JSON, both without credentials.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.assembly import Outline
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import JoinTransform, Pipeline, SqlTransform, Transform, WindowKind

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_CREDENTIALS = re.compile(r"(?<=://)(?:(?!,\w+://).)*@", re.DOTALL)
"""Up to the last @ of each URL: a password may contain @, slashes and spaces."""
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
            yield f"unused steps: {', '.join(self.unused)}"


def plan_of(pipeline: Pipeline, outline: Outline) -> Plan:
    schemas = outline.analysis.schemas
    steps: list[Step] = []
    for name, source in pipeline.sources.items():
        summary, notes = source.describe(outline.frames[name])
        if source.watermark is not None:
            notes = (*notes, f"watermark {source.watermark.delay} behind {source.watermark.column}")
        steps.append(Step(name, "source", summary, notes, _columns(schemas[name])))
    for transform in Graph(pipeline).ordered():
        name = transform.name
        notes = ("stateful: keeps rows of several micro-batches",) if name in outline.analysis.stateful else ()
        steps.append(Step(name, "transform", _describe(transform), notes, _columns(schemas[name]), transform.inputs))
    for sink in pipeline.sinks.values():
        summary, guarantee = sink.describe()
        steps.append(Step(sink.name, "sink", summary, (guarantee,), inputs=(sink.input,)))
    if pipeline.dead_letters is not None:
        summary, guarantee = pipeline.dead_letters.describe()
        steps.append(Step("dead_letters", "dead letters", summary, (guarantee,)))
    settings = {**pipeline.kafka, **pipeline.registry, **pipeline.spark}
    return Plan(
        pipeline=pipeline.name,
        description=pipeline.description,
        file=pipeline.file,
        checkpoint=pipeline.checkpoint,
        settings={name: shown_value(name, value) for name, value in sorted(settings.items())},
        queries=tuple(_queries(pipeline, outline)),
        steps=tuple(steps),
        unused=outline.topology.unused,
    )


def shown_value(name: str, value: str) -> str:
    """The value without credentials."""
    if any(part in name.lower() for part in _SECRET):
        return "…"
    return _CREDENTIALS.sub("…@", value)


def _columns(schema: "StructType") -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in schema.fields)


def _describe(transform: Transform) -> str:
    if isinstance(transform, SqlTransform):
        return " ".join(transform.sql.split())
    if isinstance(transform, JoinTransform):
        return f"{transform.how} join on {transform.on}"
    length = "with a gap of" if transform.kind is WindowKind.SESSION else "of"
    every = f" every {transform.slide}" if transform.slide else ""
    by = f" by {', '.join(transform.group_by)}" if transform.group_by else ""
    late = f", watermark {transform.watermark}" if transform.watermark else ""
    return f"{transform.kind} windows {length} {transform.size}{every} on {transform.time}{by}{late}, {transform.emit}"


def _queries(pipeline: Pipeline, outline: Outline) -> Iterator[str]:
    topology = outline.topology
    for name in topology.tables:
        if pipeline.sources[name].has_table_query:
            yield f"{name}: the topic into its table, every {pipeline.refresh_seconds:g} s"
    for name, source_query in topology.source_queries.items():
        parts = [f"sinks {', '.join(source_query.sinks)}"] if source_query.sinks else []
        parts += [f"staged {', '.join(source_query.staged)}"] if source_query.staged else []
        yield f"{name}: read and decoded once → {'; '.join(parts) or 'nothing'}"
    for name, query in topology.stateful_queries.items():
        yield f"{name}: stateful over {', '.join(query.staged)} → sinks {', '.join(query.sinks)}"
    if topology.table_sinks:
        yield f"tables → sinks {', '.join(topology.table_sinks)}, on every change"
