"""What must hold between the tables of a pipeline: names that exist, no circles, bounded state, sinks that fit."""

from collections.abc import Sequence

from headgate.spark_udfs.pipeline.document import Document
from headgate.spark_udfs.pipeline.errors import Mistake, did_you_mean
from headgate.spark_udfs.pipeline.graph import Graph
from headgate.spark_udfs.pipeline.model import (
    DeltaSink,
    Emit,
    FilesSource,
    JdbcSink,
    JdbcSource,
    JoinTransform,
    Mode,
    OnPoison,
    ParquetSink,
    Pipeline,
    Read,
    Sink,
    TableLetters,
    TopicLetters,
    TopicSink,
    TopicSource,
    WindowTransform,
)


def check_graph(pipeline: Pipeline, document: Document, named: Sequence[str], mistakes: list[Mistake]) -> None:
    """`named` are the steps that the file names, those with mistakes of their own among them."""
    checking = _Checking(pipeline, document, named, mistakes)
    checking.names()
    if not checking.circles():
        checking.transforms()
        checking.sinks()
    checking.poison()
    checking.databases()
    checking.folders()


class _Checking:
    def __init__(self, pipeline: Pipeline, document: Document, named: Sequence[str], mistakes: list[Mistake]) -> None:
        self._pipeline = pipeline
        self._document = document
        self._named = named
        self._mistakes = mistakes
        self._graph = Graph(pipeline)

    def _wrong(self, path: tuple[str, ...], message: str) -> None:
        self._mistakes.append(Mistake(".".join(path), self._document.line_of(path), message))

    def names(self) -> None:
        first: dict[str, str] = {}
        for name in self._named:
            other = first.setdefault(name.lower(), name)
            if other != name:
                kind = "sources" if name in self._pipeline.sources else "transforms"
                self._wrong((kind, name), f"and {other} are one name to SQL, which does not look at the case")
        for name, transform in self._pipeline.transforms.items():
            for each in transform.inputs:
                self._known(("transforms", name, self._key(transform, each)), each)
        for name, sink in self._pipeline.sinks.items():
            self._known(("sinks", name, "from"), sink.input)

    @staticmethod
    def _key(transform: object, input_: str) -> str:
        if isinstance(transform, JoinTransform):
            return "left" if transform.left == input_ else "right"
        return "from"

    def _known(self, path: tuple[str, ...], name: str) -> None:
        if name and name not in self._named:
            known = ", ".join(self._named) or "none"
            hint = did_you_mean(name, self._named)
            self._wrong(path, f"{name} is neither a source nor a transform{hint} (there are: {known})")

    def circles(self) -> bool:
        reported: set[str] = set()
        for name in self._pipeline.transforms:
            way = self._graph.circle(name)
            if way and not reported & set(way):
                reported |= set(way)
                self._wrong(("transforms", name), f"is made of itself: {' ← '.join(way)}")
        return bool(reported)

    def transforms(self) -> None:
        graph = self._graph
        for name, transform in self._pipeline.transforms.items():
            if not graph.is_stream(name):
                continue
            if isinstance(transform, WindowTransform) and not graph.watermarks(name):
                self._wrong(
                    ("transforms", name, "watermark"),
                    "is missing: how late rows may be, such as '10 minutes'; without it no window is ever final",
                )
            if isinstance(transform, JoinTransform) and len(graph.stream_inputs(name)) == 2:
                self._stream_join(name, transform)
            if graph.known_stateful(name) and graph.table_inputs(name):
                self._wrong(
                    ("transforms", name),
                    f"mixes streams that must be kept with the table {graph.table_inputs(name)[0]}; join the table in "
                    "a transform of its own, before or after",
                )

    def _stream_join(self, name: str, transform: JoinTransform) -> None:
        for side, input_ in (("left", transform.left), ("right", transform.right)):
            if not self._graph.watermarks(input_):
                self._wrong(
                    ("transforms", name, side),
                    f"{input_} has no watermark, so its rows would be kept for ever; "
                    f"give it one: watermark = {{ column = …, delay = '10 minutes' }}",
                )
        if transform.how == "anti":
            self._wrong(("transforms", name, "how"), "Spark has no anti join of two streams")

    def sinks(self) -> None:
        for name, sink in self._pipeline.sinks.items():
            if sink.input not in self._pipeline.steps:
                continue
            if self._graph.is_stream(sink.input):
                self._stream_sink(name, sink)
            else:
                self._table_sink(name, sink)

    def _stream_sink(self, name: str, sink: Sink) -> None:
        if isinstance(sink, (ParquetSink, DeltaSink, JdbcSink)) and sink.mode is Mode.REPLACE:
            self._wrong(
                ("sinks", name, "mode"), f"replace is for tables, and {sink.input} is a stream: append or upsert"
            )
        changing = [
            each
            for each in self._graph.above(sink.input)
            if isinstance(step := self._pipeline.transforms.get(each), WindowTransform) and step.emit is Emit.CHANGES
        ]
        if changing and isinstance(sink, (ParquetSink, DeltaSink, JdbcSink)) and sink.mode is not Mode.UPSERT:
            self._wrong(
                ("sinks", name, "mode"),
                f'{changing[0]} hands windows on again when they change: take mode = "upsert" with keys (Delta, JDBC)',
            )

    def _table_sink(self, name: str, sink: Sink) -> None:
        if isinstance(sink, (ParquetSink, DeltaSink, JdbcSink)) and sink.mode is Mode.APPEND:
            self._wrong(
                ("sinks", name, "mode"),
                f"{sink.input} is a table, which would be appended again and again: replace or upsert",
            )
        if isinstance(sink, TopicSink):
            self._wrong(
                ("sinks", name, "from"),
                f'{sink.input} is a table, which would be sent again and again: take its source with read = "stream"',
            )

    def databases(self) -> None:
        """SQLite has one writer, who waits for readers to finish; a pass over a table reads until all is written."""
        letters = self._pipeline.dead_letters
        written = {name: sink for name, sink in self._pipeline.sinks.items() if isinstance(sink, JdbcSink)}
        if isinstance(letters, TableLetters) and isinstance(letters.sink, JdbcSink):
            written["dead_letters"] = letters.sink
        for name, source in self._pipeline.sources.items():
            if not isinstance(source, JdbcSource) or source.read is Read.TABLE or source.incremental is not None:
                continue
            for sink_name, sink in written.items():
                if source.database.kind == "sqlite" and sink.database.url == source.database.url:
                    self._wrong(
                        ("sources", name, "url"),
                        f"{sink_name} writes to the same SQLite file while it is read in one pass: name a growing "
                        "column (incremental), or write to another file",
                    )

    def folders(self) -> None:
        """Batches of two Parquet sinks have the same names: those of the second would be taken for done."""
        letters = self._pipeline.dead_letters
        sinks: dict[tuple[str, ...], Sink] = {("sinks", name): sink for name, sink in self._pipeline.sinks.items()}
        if isinstance(letters, TableLetters):
            sinks = {("dead_letters",): letters.sink, **sinks}
        taken: dict[str, tuple[str, ...]] = {}
        checkpoint = self._pipeline.checkpoint.rstrip("/")
        for path, sink in sinks.items():
            if not isinstance(sink, (ParquetSink, DeltaSink)) or not sink.path:
                continue
            folder = sink.path.rstrip("/")
            other = taken.setdefault(folder, path)
            if checkpoint and f"{folder}/".startswith(f"{checkpoint}/"):
                self._wrong((*path, "path"), "lies in the checkpoint, which is the pipeline's own")
            elif other != path and not all(isinstance(sinks[each], DeltaSink) for each in (path, other)):
                self._wrong(
                    (*path, "path"),
                    f"is the folder of {'.'.join(other)}: give each its own, or bring the rows together in a transform "
                    "(UNION ALL)",
                )

    def poison(self) -> None:
        letters = self._pipeline.dead_letters
        for name, source in self._pipeline.sources.items():
            if not isinstance(source, (TopicSource, FilesSource)):
                continue
            can_be_bad = source.decode if isinstance(source, TopicSource) else source.format in {"csv", "json"}
            if can_be_bad and source.on_poison is OnPoison.DEAD_LETTER and letters is None:
                self._wrong(
                    ("sources", name),
                    "rows that cannot be read have nowhere to go: add [dead_letters] with type topic, parquet, delta "
                    "or jdbc; or set on_poison to DROP or FAIL",
                )
            if isinstance(letters, TopicLetters) and isinstance(source, TopicSource) and source.topic == letters.topic:
                self._wrong(("dead_letters", "topic"), f"is the topic that the source {name} reads: a loop")
            if isinstance(source, TopicSource) and source.read is Read.STREAM:
                self._loops(name, source.topic)
        for name, sink in self._pipeline.sinks.items():
            if not isinstance(sink, (TopicSink, JdbcSink, ParquetSink, DeltaSink)):
                continue
            if sink.on_refused is OnPoison.DEAD_LETTER and letters is None:
                self._wrong(("sinks", name, "on_refused"), "DEAD_LETTER needs [dead_letters]")

    def _loops(self, name: str, topic: str) -> None:
        for sink_name, sink in self._pipeline.sinks.items():
            if isinstance(sink, TopicSink) and sink.topic == topic:
                self._wrong(("sinks", sink_name, "topic"), f"is the topic that the source {name} reads: a loop")
