"""The streaming queries of a pipeline.

- Each streaming source has one **source query**. It reads and decodes each row once and writes the good rows and the
  dead letters of a micro-batch. Stateless transforms and joins with tables are part of it.
- Each transform that needs rows of several micro-batches (a window, a join of two streams) has a **stateful query**.
  The source query stages its input rows as files, and the stateful query reads these files. Transforms that follow it
  are part of its micro-batches.

So no row is decoded twice.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Pipeline, Read


@dataclass(frozen=True, slots=True)
class SourceQuery:
    source: str
    sinks: tuple[str, ...]
    """The sinks that write its rows, directly or after stateless transforms."""
    staged: tuple[str, ...]
    """Steps whose rows are staged for stateful queries."""


@dataclass(frozen=True, slots=True)
class StatefulQuery:
    step: str
    """The last stateful step."""
    transforms: tuple[str, ...]
    """The steps of the streaming query in topological order, `step` last."""
    staged: tuple[str, ...]
    """The staged steps that it reads."""
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    source_queries: Mapping[str, SourceQuery]
    stateful_queries: Mapping[str, StatefulQuery]
    table_sinks: tuple[str, ...]
    """Sinks that write tables."""
    tables: tuple[str, ...]
    """Sources that are used as lookup tables."""
    unused: tuple[str, ...]


def build_topology(pipeline: Pipeline, stateful: Set[str]) -> Topology:
    """`stateful` are the steps that need rows of several micro-batches. Raises `PipelineError`."""
    graph = Graph(pipeline)
    direct: dict[str, list[str]] = {}
    after_state: dict[str, list[str]] = {}
    table_sinks: list[str] = []
    for name, sink in pipeline.sinks.items():
        if not graph.is_stream(sink.input):
            table_sinks.append(name)
            continue
        root = _root(graph, sink.input, stateful)
        (after_state if root in stateful else direct).setdefault(root, []).append(name)
    stateful_queries = {
        step: _stateful_query(graph, step, stateful, tuple(sinks)) for step, sinks in after_state.items()
    }
    staged: dict[str, list[str]] = {}
    for query in stateful_queries.values():
        for step in query.staged:
            source = _root(graph, step, stateful)
            if step not in staged.setdefault(source, []):
                staged[source].append(step)
    used = {step for sink in pipeline.sinks.values() for step in graph.above(sink.input)}
    source_queries = {
        name: SourceQuery(name, tuple(direct.get(name, ())), tuple(staged.get(name, ())))
        for name, source in pipeline.sources.items()
        if source.read is Read.STREAM and name in used
    }
    tables = tuple(name for name, each in pipeline.sources.items() if each.read is Read.TABLE and name in used)
    unused = tuple(name for name in pipeline.steps if name not in used)
    return Topology(source_queries, stateful_queries, tuple(table_sinks), tables, unused)


def _root(graph: Graph, name: str, stateful: Set[str]) -> str:
    """The source or stateful step that a stateless step gets its rows from."""
    while name not in stateful and name not in graph.pipeline.sources:
        name = graph.stream_inputs(name)[0]
    return name


def _stateful_query(graph: Graph, step: str, stateful: Set[str], sinks: tuple[str, ...]) -> StatefulQuery:
    transforms: list[str] = []
    staged: list[str] = []
    pending = [step]
    while pending:
        name = pending.pop()
        if name in transforms or name in staged:
            continue
        if any(each in stateful for each in graph.above(name)):
            transforms.append(name)
            pending += graph.stream_inputs(name)
            if graph.table_inputs(name):
                raise PipelineError(
                    f"transform {name} joins the table {graph.table_inputs(name)[0]} inside a stateful query",
                    why=f"every micro-batch reads the table again, and {step} keeps rows of several micro-batches",
                    advice="join the table in a separate transform before or after the window, join or aggregate",
                )
        else:
            staged.append(name)
    ordered = [each.name for each in graph.ordered() if each.name in transforms]
    return StatefulQuery(step, tuple(ordered), tuple(sorted(staged)), sinks)
