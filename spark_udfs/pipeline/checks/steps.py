"""Read the sections of sources, sinks and dead letters with the class of their `type`."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from headgate.spark_udfs.pipeline.checks.table_reader import TableReader
from headgate.spark_udfs.pipeline.sinks.kinds import DEAD_LETTER_SINKS, SINKS
from headgate.spark_udfs.pipeline.sinks.sink import Sink
from headgate.spark_udfs.pipeline.sources.kinds import SOURCES
from headgate.spark_udfs.pipeline.sources.source import Source, SourceDefaults

Kind = TypeVar("Kind")
Step = TypeVar("Step")


def read_source(table: TableReader, defaults: SourceDefaults) -> Source | None:
    return _read(table, SOURCES, lambda kind: kind.from_table(table, table.name, defaults))


def read_sink(table: TableReader) -> Sink | None:
    input_ = table.required("from", "the source or transform to write")
    return _read(table, SINKS, lambda kind: kind.from_table(table, table.name, input_))


def read_dead_letters(table: TableReader) -> Sink | None:
    return _read(table, DEAD_LETTER_SINKS, lambda kind: kind.for_dead_letters(table))


def _read(table: TableReader, kinds: Mapping[str, Kind], read: Callable[[Kind], Step]) -> Step | None:
    name = table.one_of("type", kinds, needed="the kind of the step")
    if name is None:
        return None
    found = read(kinds[name])
    table.finish()
    return found
