"""Check the connections of a pipeline: existing names, no cycles, bounded state, suitable sinks, no conflicts."""

from collections.abc import Sequence

from headgate.spark_udfs.pipeline.document import Document
from headgate.spark_udfs.pipeline.errors import Mistake, did_you_mean
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import Emit, JoinTransform, Mode, Pipeline, Read, WindowTransform
from headgate.spark_udfs.pipeline.sinks.sink import Sink
from headgate.spark_udfs.spec.policy import OnPoison


def check_graph(pipeline: Pipeline, document: Document, named: Sequence[str], mistakes: list[Mistake]) -> None:
    """`named` are all steps of the file, including those with mistakes."""
    checker = _Checker(pipeline, document, named, mistakes)
    checker.check_names()
    if not checker.check_cycles():
        checker.check_transforms()
        checker.check_sink_inputs()
    checker.check_dead_letters()
    checker.check_topic_loops()
    checker.check_databases()
    checker.check_folders()


class _Checker:
    def __init__(self, pipeline: Pipeline, document: Document, named: Sequence[str], mistakes: list[Mistake]) -> None:
        self._pipeline = pipeline
        self._document = document
        self._named = named
        self._mistakes = mistakes
        self._graph = Graph(pipeline)

    def _wrong(self, path: tuple[str, ...], message: str) -> None:
        self._mistakes.append(Mistake(".".join(path), self._document.line_of(path), message))

    def check_names(self) -> None:
        first: dict[str, str] = {}
        for name in self._named:
            other = first.setdefault(name.lower(), name)
            if other != name:
                kind = "sources" if name in self._pipeline.sources else "transforms"
                self._wrong((kind, name), f"conflicts with {other}: SQL names are case-insensitive")
        for name, transform in self._pipeline.transforms.items():
            for each in transform.inputs:
                self._check_known(("transforms", name, self._input_key(transform, each)), each)
        for name, sink in self._pipeline.sinks.items():
            self._check_known(("sinks", name, "from"), sink.input)

    @staticmethod
    def _input_key(transform: object, input_: str) -> str:
        if isinstance(transform, JoinTransform):
            return "left" if transform.left == input_ else "right"
        return "from"

    def _check_known(self, path: tuple[str, ...], name: str) -> None:
        if name and name not in self._named:
            known = ", ".join(self._named) or "none"
            hint = did_you_mean(name, self._named)
            self._wrong(path, f"{name} is neither a source nor a transform{hint} (known: {known})")

    def check_cycles(self) -> bool:
        reported: set[str] = set()
        for name in self._pipeline.transforms:
            cycle = self._graph.cycle(name)
            if cycle and not reported & set(cycle):
                reported |= set(cycle)
                self._wrong(("transforms", name), f"reads its own output: {' ← '.join(cycle)}")
        return bool(reported)

    def check_transforms(self) -> None:
        graph = self._graph
        for name, transform in self._pipeline.transforms.items():
            if not graph.is_stream(name):
                continue
            if isinstance(transform, WindowTransform) and not graph.watermarks(name):
                self._wrong(
                    ("transforms", name, "watermark"),
                    "is required: how late rows may arrive, such as '10 minutes'. Without it no window becomes final",
                )
            if isinstance(transform, JoinTransform) and len(graph.stream_inputs(name)) == 2:
                self._check_stream_join(name, transform)
            if graph.is_known_stateful(name) and graph.table_inputs(name):
                self._wrong(
                    ("transforms", name),
                    f"combines stateful streams with the table {graph.table_inputs(name)[0]}; join the table in a "
                    "separate transform before or after",
                )

    def _check_stream_join(self, name: str, transform: JoinTransform) -> None:
        for side, input_ in (("left", transform.left), ("right", transform.right)):
            if not self._graph.watermarks(input_):
                self._wrong(
                    ("transforms", name, side),
                    f"{input_} has no watermark, so its rows would be kept forever; "
                    f"add watermark = {{ column = …, delay = '10 minutes' }}",
                )
        if transform.how == "anti":
            self._wrong(("transforms", name, "how"), "Spark does not support an anti join of two streams")

    def check_sink_inputs(self) -> None:
        for name, sink in self._pipeline.sinks.items():
            if sink.input not in self._pipeline.steps:
                continue
            is_stream = self._graph.is_stream(sink.input)
            mistake = sink.input_mistake(is_stream=is_stream)
            if mistake is not None:
                self._wrong(("sinks", name, mistake[0]), mistake[1])
            if is_stream and sink.mode is not None and sink.mode is not Mode.UPSERT:
                self._check_updates(name, sink)

    def _check_updates(self, name: str, sink: Sink) -> None:
        for step in self._graph.above(sink.input):
            transform = self._pipeline.transforms.get(step)
            if isinstance(transform, WindowTransform) and transform.emit is Emit.CHANGES:
                self._wrong(
                    ("sinks", name, "mode"),
                    f'{step} emits windows again when they change: use mode = "upsert" with keys (Delta, JDBC)',
                )
                return

    def check_dead_letters(self) -> None:
        if self._pipeline.dead_letters is not None:
            return
        for name, source in self._pipeline.sources.items():
            if source.needs_dead_letters and source.on_poison is OnPoison.DEAD_LETTER:
                self._wrong(
                    ("sources", name),
                    "unreadable rows have no destination: add [dead_letters] with type topic, parquet, delta or jdbc; "
                    "or set on_poison to DROP or FAIL",
                )
        for name, sink in self._pipeline.sinks.items():
            if sink.on_refused is OnPoison.DEAD_LETTER:
                self._wrong(("sinks", name, "on_refused"), "DEAD_LETTER requires [dead_letters]")

    def check_topic_loops(self) -> None:
        for name, source in self._pipeline.sources.items():
            for path, sink in self._pipeline.sinks_by_path.items():
                topic = None if sink.topic_options is None else sink.topic_options[0]
                is_read = source.read is Read.STREAM or sink is self._pipeline.dead_letters
                if topic is not None and topic == source.input_topic and is_read:
                    self._wrong((*path, "topic"), f"is the topic of the source {name}: an endless loop")

    def check_databases(self) -> None:
        """SQLite has one writer, which waits for readers. A pass over a table reads until all rows are written."""
        for name, source in self._pipeline.sources.items():
            for path, sink in self._pipeline.sinks_by_path.items():
                if sink.database_url is not None and sink.database_url == source.locked_database_url:
                    self._wrong(
                        ("sources", name, "url"),
                        f"{path[-1]} writes to the same SQLite file while a pass reads it: set incremental to an "
                        "increasing column, or write to another file",
                    )

    def check_folders(self) -> None:
        """Two Parquet sinks use the same batch names, so the second would skip its batches as repeated."""
        sinks = self._pipeline.sinks_by_path
        owner: dict[str, tuple[str, ...]] = {}
        checkpoint = self._pipeline.checkpoint.rstrip("/")
        for path, sink in sinks.items():
            if not sink.folder:
                continue
            folder = sink.folder.rstrip("/")
            other = owner.setdefault(folder, path)
            if checkpoint and f"{folder}/".startswith(f"{checkpoint}/"):
                self._wrong((*path, "path"), "is inside the checkpoint folder")
            elif other != path and not all(sinks[each].can_share_folder for each in (path, other)):
                self._wrong(
                    (*path, "path"),
                    f"is the folder of {'.'.join(other)}: use separate folders, or combine the rows in a transform "
                    "(UNION ALL)",
                )
