"""Read the sections of sources, sinks and dead letters with the class of their `type`."""

from headgate.spark_udfs.pipeline.checks.table_reader import TableReader
from headgate.spark_udfs.pipeline.sinks.kinds import DEAD_LETTER_SINKS, SINKS
from headgate.spark_udfs.pipeline.sinks.sink import Sink
from headgate.spark_udfs.pipeline.sources.kinds import SOURCES
from headgate.spark_udfs.pipeline.sources.source import Source, SourceDefaults


def read_source(table: TableReader, defaults: SourceDefaults) -> Source | None:
    kind = table.one_of("type", SOURCES, needed="the kind of the source")
    if kind is None:
        return None
    found = SOURCES[kind].from_table(table, table.name, defaults)
    table.finish()
    return found


def read_sink(table: TableReader) -> Sink | None:
    kind = table.one_of("type", SINKS, needed="the kind of the sink")
    input_ = table.required("from", "the source or transform to write")
    if kind is None:
        return None
    found = SINKS[kind].from_table(table, table.name, input_)
    table.finish()
    return found


def read_dead_letters(table: TableReader) -> Sink | None:
    kind = table.one_of("type", DEAD_LETTER_SINKS, needed="the kind of the dead-letter sink")
    if kind is None:
        return None
    found = DEAD_LETTER_SINKS[kind].for_dead_letters(table)
    table.finish()
    return found
