"""The base of all sinks: a section of the pipeline file, its plan, its constraints and its writer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from headgate.spark_udfs.pipeline.model import Mode, Options, Pipeline
from headgate.spark_udfs.pipeline.sinks.writer import RefusedRows, Writer
from headgate.spark_udfs.spec.policy import OnPoison

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader
    from headgate.spark_udfs.pipeline.filesystem import Files

DEAD_LETTERS = "dead_letters"
"""The name of the dead-letter sink."""


@dataclass(frozen=True, slots=True)
class SinkContext:
    """The objects that writers need."""

    spark: "SparkSession"
    pipeline: Pipeline
    files: "Files"
    refused_rows: Callable[["Sink"], RefusedRows]
    """Creates the handler for rows that a sink refuses."""


@dataclass(frozen=True, slots=True)
class Sink(ABC):
    """One sink. `input` is the step whose rows it writes; empty for dead letters."""

    name: str
    input: str
    mode: Mode | None = field(default=None, kw_only=True)
    """None if the sink has no modes."""
    keys: tuple[str, ...] = field(default=(), kw_only=True)
    """The key columns of an upsert."""
    on_refused: OnPoison | None = field(default=None, kw_only=True)
    """The policy for rows that the sink cannot write; None if it can write every row."""

    requires_distinct_columns: ClassVar[bool] = True
    can_share_folder: ClassVar[bool] = False
    """Whether several sinks may write to one folder."""

    @classmethod
    @abstractmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> Self:
        """Read the section of the file and record its mistakes."""

    @abstractmethod
    def describe(self) -> tuple[str, str]:
        """A summary for the plan, and the delivery guarantee."""

    @abstractmethod
    def open(self, context: SinkContext) -> Writer:
        """Create the writer. Raises `PipelineError`."""

    @property
    def folder(self) -> str | None:
        """The folder that the sink owns."""
        return None

    @property
    def database_url(self) -> str | None:
        """The database that the sink writes to."""
        return None

    @property
    def topic_options(self) -> tuple[str, Options] | None:
        """The topic that the sink writes to, and the options of its section."""
        return None

    def input_mistake(self, *, is_stream: bool) -> tuple[str, str] | None:
        """The key and the message if the sink cannot write a stream (or a table)."""
        if is_stream and self.mode is Mode.REPLACE:
            return "mode", f"replace requires a table, and {self.input} is a stream; use append or upsert"
        if not is_stream and self.mode is Mode.APPEND:
            return "mode", f"{self.input} is a table, and append would write it repeatedly; use replace or upsert"
        return None

    def check_columns(self, schema: "StructType") -> None:
        """Check the column types before the pipeline starts. Raises `PipelineError`."""
        return

    def session_settings(self, spark: Options) -> Mapping[str, str]:
        """Settings that the sink needs when the session starts; `spark` are the settings of the file."""
        return {}

    def mode_text(self) -> str:
        return f"{self.mode} by {', '.join(self.keys)}" if self.keys else str(self.mode)


class DeadLetterSink(Sink):
    """A sink that can also store the dead letters of a pipeline."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def for_dead_letters(cls, table: "TableReader") -> Self:
        """Read the section `[dead_letters]` and record its mistakes."""
