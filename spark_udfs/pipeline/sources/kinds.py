"""The table of sources. A new kind of source is a module with a `Source` class and one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.spark_udfs.pipeline.sources.files import FilesSource
from headgate.spark_udfs.pipeline.sources.jdbc import JdbcSource
from headgate.spark_udfs.pipeline.sources.source import Source
from headgate.spark_udfs.pipeline.sources.topic import TopicSource

SOURCES: Mapping[str, type[Source]] = MappingProxyType({"topic": TopicSource, "files": FilesSource, "jdbc": JdbcSource})
"""`type` of a table below `[sources]`."""
