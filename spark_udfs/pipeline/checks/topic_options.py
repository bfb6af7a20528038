"""Check the data source options of topics before the pipeline starts, and report mistakes with their lines."""

from collections.abc import Callable, Mapping

from headgate.spark_udfs.pipeline.document import Document
from headgate.spark_udfs.pipeline.errors import Mistake
from headgate.spark_udfs.pipeline.model import Options, Pipeline

_KEY_OF_OPTION = {"startingoffsets": "starting_offsets", "subscribe": "topic", "topic": "topic"}
"""The key of the section that sets a data source option."""
_UNKNOWN = "there is no such option"
_SECTION_HINT = "; options of individual topics belong to the options of their sources and sinks"


def check_topic_options(pipeline: Pipeline, document: Document, mistakes: list[Mistake]) -> None:
    try:
        from headgate.spark_udfs.source.options import read_options, write_options
    except ImportError:
        # The extra is missing. `open_session` reports that.
        return
    checker = _Checker(pipeline.kafka, document, mistakes)
    for name, source in pipeline.sources.items():
        if source.topic_options is not None:
            implied, own = source.topic_options
            checker.check(("sources", name), implied, own, lambda options: read_options(options, is_streaming=True))
    for path, sink in pipeline.sinks_by_path.items():
        if sink.topic_options is not None:
            topic, own = sink.topic_options
            checker.check(path, {"topic": topic}, own, write_options)


class _Checker:
    def __init__(self, kafka: Options, document: Document, mistakes: list[Mistake]) -> None:
        self._kafka = kafka
        self._document = document
        self._mistakes = mistakes

    def check(
        self, path: tuple[str, ...], implied: Options, own: Options, read: Callable[[Mapping[str, str]], object]
    ) -> None:
        """`own` are the options of the section. They override those of `[kafka]`."""
        from headgate.spark_udfs.source.errors import BadOption

        try:
            read({**self._kafka, **implied, **own})
        except BadOption as error:
            self._add(path, own, error.option.lower(), error.problem)

    def _add(self, path: tuple[str, ...], own: Options, option: str, problem: str) -> None:
        in_section = next((name for name in own if name.lower() == option), None)
        if in_section is not None:
            place: tuple[str, ...] = (*path, "options", in_section)
        elif option in _KEY_OF_OPTION:
            place = (*path, _KEY_OF_OPTION[option])
        else:
            place = ("kafka", *option.removeprefix("kafka.").split("."))
            if problem.startswith(_UNKNOWN):
                problem += _SECTION_HINT
        path_text = ".".join(place)
        # A mistake in [kafka] affects every topic. Report it once.
        if all(each.path != path_text for each in self._mistakes):
            self._mistakes.append(Mistake(path_text, self._document.line_of(place), problem))
