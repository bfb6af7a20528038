"""The base of all sources: a section of the pipeline file, its plan, its constraints and its DataFrames.

The DataFrame of a source has a column `reason`, which is null in good rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from headgate.spark_udfs.pipeline.checkpoints import Checkpoint
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Options, Pipeline, Read, Watermark
from headgate.spark_udfs.pipeline.tables import Table
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class SourceDefaults:
    """Policies from the top of the file, for sources that do not set them."""

    on_poison: OnPoison
    on_new_version: OnNewVersion
    on_registry_down: OnRegistryDown


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The objects that sources need. There is no checkpoint while a plan is made."""

    spark: "SparkSession"
    pipeline: Pipeline
    checkpoint: Checkpoint | None


class SourceFrames(ABC):
    """The DataFrames of one source. Subclasses are streaming (`StreamFrames`) or polled (`PolledFrames`)."""

    schema: "StructType"
    """The columns that transforms see."""

    @abstractmethod
    def good(self, frame: "DataFrame") -> "DataFrame":
        """The good rows, with the columns of `schema`."""

    @abstractmethod
    def open_table(self, checkpoint: Checkpoint, refresh_seconds: float) -> Table:
        """The lookup table of a source with `read = "table"`. Raises `PipelineError`."""


class StreamFrames(SourceFrames):
    @abstractmethod
    def stream(self, spark: "SparkSession") -> "DataFrame":
        """The streaming DataFrame."""


class PolledFrames(SourceFrames):
    is_one_pass: bool
    """Whether the source is read once per start."""

    @abstractmethod
    def poll(self, spark: "SparkSession", checkpoint: Checkpoint) -> Iterator[tuple[int, "DataFrame"]]:
        """Numbered batches that are available now. A batch is done when the next one is requested."""


@dataclass(frozen=True, slots=True)
class Source(ABC):
    name: str
    read: Read = field(default=Read.STREAM, kw_only=True)
    watermark: Watermark | None = field(default=None, kw_only=True)
    on_poison: OnPoison = field(default=OnPoison.DEAD_LETTER, kw_only=True)

    has_table_query: ClassVar[bool] = False
    """Whether a streaming query maintains the lookup table."""

    @classmethod
    @abstractmethod
    def from_table(cls, table: "TableReader", name: str, defaults: SourceDefaults) -> Self:
        """Read the section of the file and record its mistakes."""

    @abstractmethod
    def describe(self, frames: SourceFrames) -> tuple[str, tuple[str, ...]]:
        """A summary and notes for the plan."""

    @abstractmethod
    def open(self, context: SourceContext) -> SourceFrames:
        """Find the columns. Raises `PipelineError`."""

    @property
    def needs_dead_letters(self) -> bool:
        """Whether rows can be unreadable."""
        return False

    @property
    def topic_options(self) -> "tuple[Options, Options] | None":
        """The data source options that the keys of a topic source imply, and the options of its section."""
        return None

    @property
    def input_topic(self) -> str | None:
        return None

    @property
    def locked_database_url(self) -> str | None:
        """A SQLite file that stays locked while a pass reads it."""
        return None


def parse_ddl(text: str, source: str) -> "StructType":
    """Parse columns in Spark's DDL. Raises `PipelineError`."""
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    why = ""
    try:
        found = StructType.fromDDL(text)
        if isinstance(found, StructType):
            return found
    except ParseException as error:
        why = str(error).split("\n\n", maxsplit=1)[0].strip()
    raise PipelineError(f"source {source}: schema is not a list of columns such as 'id BIGINT, name STRING'", why=why)
