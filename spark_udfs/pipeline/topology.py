"""Which streaming queries a pipeline becomes, and what each of them does. Pure.

Every source that streams has one query, its **intake**: rows are read and decoded once, good and poison are told apart,
and each kind is written, in one micro-batch. Steps that look at one row at a time, and joins with tables, are part of
it. A step that needs rows of more than one micro-batch (a window, a join of two streams) has a query of its own, its
**gathering**: the intake stages what it needs as files, and the gathering reads these. What follows it is done in its
micro-batches. So a row is never decoded twice, with possibly two verdicts.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Pipeline, Read


@dataclass(frozen=True, slots=True)
class Intake:
    source: str
    sinks: tuple[str, ...]
    """Those that take its rows, or rows made of them one by one."""
    stages: tuple[str, ...]
    """Steps whose rows are staged for gatherings."""


@dataclass(frozen=True, slots=True)
class Gathering:
    step: str
    """The last step that needs more than one micro-batch."""
    inside: tuple[str, ...]
    """Steps that are part of the streaming query, in their order, `step` the last."""
    stages: tuple[str, ...]
    """The staged steps that it reads."""
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    intakes: Mapping[str, Intake]
    gatherings: Mapping[str, Gathering]
    table_sinks: tuple[str, ...]
    """Sinks that take tables."""
    tables: tuple[str, ...]
    """Sources that are kept as tables, and are needed."""
    unused: tuple[str, ...]


def shape_of(pipeline: Pipeline, stateful: Set[str]) -> Shape:
    """`stateful` names the steps that need rows of more than one micro-batch. Raises `PipelineError`."""
    graph = Graph(pipeline)
    direct: dict[str, list[str]] = {}
    gathered: dict[str, list[str]] = {}
    table_sinks: list[str] = []
    for name, sink in pipeline.sinks.items():
        if not graph.is_stream(sink.input):
            table_sinks.append(name)
            continue
        root = _root(graph, sink.input, stateful)
        (gathered if root in stateful else direct).setdefault(root, []).append(name)
    gatherings = {step: _gathering(graph, step, stateful, tuple(sinks)) for step, sinks in gathered.items()}
    staged: dict[str, list[str]] = {}
    for gathering in gatherings.values():
        for step in gathering.stages:
            source = _root(graph, step, stateful)
            if step not in staged.setdefault(source, []):
                staged[source].append(step)
    used = {step for sink in pipeline.sinks.values() for step in graph.above(sink.input)}
    intakes = {
        name: Intake(name, tuple(direct.get(name, ())), tuple(staged.get(name, ())))
        for name, source in pipeline.sources.items()
        if source.read is Read.STREAM and name in used
    }
    tables = tuple(name for name, each in pipeline.sources.items() if each.read is Read.TABLE and name in used)
    unused = tuple(name for name in pipeline.steps if name not in used)
    return Shape(intakes, gatherings, tuple(table_sinks), tables, unused)


def _root(graph: Graph, name: str, stateful: Set[str]) -> str:
    """The source or the stateful step that the rows of a step come from, one by one."""
    while name not in stateful and name not in graph.pipeline.sources:
        name = graph.stream_inputs(name)[0]
    return name


def _gathering(graph: Graph, step: str, stateful: Set[str], sinks: tuple[str, ...]) -> Gathering:
    inside: list[str] = []
    stages: list[str] = []
    waiting = [step]
    while waiting:
        name = waiting.pop()
        if name in inside or name in stages:
            continue
        if any(each in stateful for each in graph.above(name)):
            inside.append(name)
            waiting += graph.stream_inputs(name)
            if graph.table_inputs(name):
                raise PipelineError(
                    f"transform {name} joins the table {graph.table_inputs(name)[0]} while rows are being gathered",
                    why=f"a table is looked up anew in every micro-batch, and {step} keeps rows over many of them",
                    advice="join the table in a transform of its own, before or after the window, join or aggregate",
                )
        else:
            stages.append(name)
    ordered = [each.name for each in graph.ordered() if each.name in inside]
    return Gathering(step, tuple(ordered), tuple(sorted(stages)), sinks)
