"""What the data source will say of the options of topics, said with their lines before anything starts."""

from collections.abc import Callable, Mapping

from headgate.spark_udfs.pipeline.document import Document
from headgate.spark_udfs.pipeline.errors import Mistake
from headgate.spark_udfs.pipeline.model import Options, Pipeline, TopicLetters, TopicSink, TopicSource

_OWN_KEYS = {"startingoffsets": "starting_offsets", "subscribe": "topic", "topic": "topic"}
"""What the pipeline hands over as an option, and the key that says it."""
_UNKNOWN = "there is no such option"


def check_options(pipeline: Pipeline, document: Document, mistakes: list[Mistake]) -> None:
    try:
        from headgate.spark_udfs.source.options import read_options, write_options
    except ImportError:
        # Whoever opens a session is told which extra is missing.
        return
    checking = _Checking(pipeline.kafka, document, mistakes)
    for name, source in pipeline.sources.items():
        if isinstance(source, TopicSource):
            given = {"subscribe": source.topic, "startingOffsets": source.starting_offsets}
            checking.try_(
                ("sources", name), given, source.options, lambda options: read_options(options, is_streaming=True)
            )
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, TopicSink):
            checking.try_(("sinks", name), {"topic": sink.topic}, sink.options, write_options)
    letters = pipeline.dead_letters
    if isinstance(letters, TopicLetters):
        checking.try_(("dead_letters",), {"topic": letters.topic}, letters.options, write_options)


class _Checking:
    def __init__(self, kafka: Options, document: Document, mistakes: list[Mistake]) -> None:
        self._kafka = kafka
        self._document = document
        self._mistakes = mistakes

    def try_(
        self, path: tuple[str, ...], given: Options, own: Options, read: "Callable[[Mapping[str, str]], object]"
    ) -> None:
        """`own` are the options that the step's table names; they go before those of `[kafka]`."""
        from headgate.spark_udfs.source.errors import BadOption

        try:
            read({**self._kafka, **given, **own})
        except BadOption as error:
            self._wrong(path, own, error.option.lower(), error.problem)

    def _wrong(self, path: tuple[str, ...], own: Options, option: str, problem: str) -> None:
        mine = next((name for name in own if name.lower() == option), None)
        if mine is not None:
            place: tuple[str, ...] = (*path, "options", mine)
        elif option in _OWN_KEYS:
            place = (*path, _OWN_KEYS[option])
        else:
            place = ("kafka", *option.removeprefix("kafka.").split("."))
            if problem.startswith(_UNKNOWN):
                problem += "; what only some topics need goes into the options of their sources and sinks"
        path_text = ".".join(place)
        # What is wrong under [kafka] is wrong for every topic, and some of it was said already.
        if all(each.path != path_text for each in self._mistakes):
            self._mistakes.append(Mistake(path_text, self._document.line_of(place), problem))
