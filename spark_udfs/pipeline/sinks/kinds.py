"""The table of sinks. A new kind of sink is a module with a `Sink` class and one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.spark_udfs.pipeline.sinks.console import ConsoleSink
from headgate.spark_udfs.pipeline.sinks.dead_letter_topic import DeadLetterTopicSink
from headgate.spark_udfs.pipeline.sinks.delta import DeltaSink
from headgate.spark_udfs.pipeline.sinks.function import FunctionSink
from headgate.spark_udfs.pipeline.sinks.jdbc import JdbcSink
from headgate.spark_udfs.pipeline.sinks.parquet import ParquetSink
from headgate.spark_udfs.pipeline.sinks.sink import DeadLetterSink, Sink
from headgate.spark_udfs.pipeline.sinks.topic import TopicSink

SINKS: Mapping[str, type[Sink]] = MappingProxyType(
    {
        "parquet": ParquetSink,
        "delta": DeltaSink,
        "jdbc": JdbcSink,
        "topic": TopicSink,
        "function": FunctionSink,
        "console": ConsoleSink,
    }
)
"""`type` of a table below `[sinks]`."""

DEAD_LETTER_SINKS: Mapping[str, type[DeadLetterSink]] = MappingProxyType(
    {
        "topic": DeadLetterTopicSink,
        "parquet": ParquetSink,
        "delta": DeltaSink,
        "jdbc": JdbcSink,
    }
)
"""`type` of the table `[dead_letters]`."""
