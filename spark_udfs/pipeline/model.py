"""A validated pipeline as plain data. Sources and sinks define their own classes in `sources/` and `sinks/`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from headgate.spark_udfs.spec.policy import OnPoison

if TYPE_CHECKING:
    from headgate.spark_udfs.pipeline.sinks.sink import Sink
    from headgate.spark_udfs.pipeline.sources.source import Source

Options = Mapping[str, str]

PIPELINE_POLICIES = (OnPoison.DEAD_LETTER, OnPoison.DROP, OnPoison.FAIL)
"""The values of `on_poison` and `on_refused` in a pipeline file."""


class Read(StrEnum):
    """How a source is read: as a stream of rows, or as a table for lookups."""

    STREAM = "stream"
    TABLE = "table"


class WindowKind(StrEnum):
    TUMBLING = "tumbling"
    HOPPING = "hopping"
    SESSION = "session"


class Emit(StrEnum):
    """When a window is emitted: once after the watermark has passed its end, or after each change."""

    FINAL = "final"
    CHANGES = "changes"


class Mode(StrEnum):
    """How a sink writes rows: append, replace the rows with the same keys, or replace all rows."""

    APPEND = "append"
    UPSERT = "upsert"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows may be late by `delay`, measured on `column`."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Database:
    """Address of a database: `sqlite:FILE` or `postgresql://HOST[:PORT]/NAME`, without credentials."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        return self.url.partition(":")[0]


@dataclass(frozen=True, slots=True)
class SqlTransform:
    name: str
    sql: str
    inputs: tuple[str, ...]
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class WindowTransform:
    name: str
    input: str
    kind: WindowKind
    time: str
    size: str
    """The length of the window. For a session: the gap that ends it."""
    slide: str | None
    watermark: str | None
    """The delay; None if the input has a watermark already."""
    group_by: tuple[str, ...]
    aggregates: Mapping[str, str]
    emit: Emit = Emit.FINAL

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class JoinTransform:
    name: str
    left: str
    right: str
    how: str
    on: str
    select: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.left, self.right)


Transform = SqlTransform | WindowTransform | JoinTransform


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    file: str
    folder: str
    checkpoint: str
    trigger_seconds: float
    refresh_seconds: float
    """The maximum age of a lookup table."""
    kafka: Options
    """Options of every topic, with the names of the data source: `kafka.bootstrap.servers`, `kafka.sasl.…`."""
    registry: Options
    """Options for `RegistryOptions.from_options`."""
    spark: Options
    sources: "Mapping[str, Source]"
    transforms: Mapping[str, Transform]
    sinks: "Mapping[str, Sink]"
    dead_letters: "Sink | None" = None
    description: str = ""

    @property
    def steps(self) -> "Mapping[str, Source | Transform]":
        return {**self.sources, **self.transforms}

    @property
    def sinks_by_path(self) -> "Mapping[tuple[str, ...], Sink]":
        """All sinks including the dead letters, by their path in the file."""
        found: dict[tuple[str, ...], Sink] = {("sinks", name): sink for name, sink in self.sinks.items()}
        return found if self.dead_letters is None else {("dead_letters",): self.dead_letters, **found}
