"""A declared pipeline as checked data: sources, transforms, sinks, dead letters. Knows no file and no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.spark_udfs.spec.policy import OnNewVersion

Options = Mapping[str, str]


class Read(StrEnum):
    """How a source is taken: row after row as they come, or as a table that is looked up."""

    STREAM = "stream"
    TABLE = "table"


class OnPoison(StrEnum):
    DEAD_LETTER = "DEAD_LETTER"
    DROP = "DROP"
    FAIL = "FAIL"


class WindowKind(StrEnum):
    TUMBLING = "tumbling"
    HOPPING = "hopping"
    SESSION = "session"


class Emit(StrEnum):
    """When a window is handed on: once, when no more rows can come into it, or whenever it changes."""

    FINAL = "final"
    CHANGES = "changes"


class Mode(StrEnum):
    """What a sink does with rows: add them, put them in place of those with the same keys, or replace all."""

    APPEND = "append"
    UPSERT = "upsert"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows may be late by `delay`, measured on `column`."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class TopicSource:
    name: str
    topic: str
    subject: str
    read: Read = Read.STREAM
    decode: bool = True
    version: int | None = None
    schema_id: int | None = None
    schema: str | None = None
    fields: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    """Of a table: the fields that tell rows apart; none stands for the record's key."""
    metadata: bool = False
    """A column `_record` with topic, partition, offset, timestamp, key and schema id."""
    starting_offsets: str = "earliest"
    rows_per_batch: int | None = None
    watermark: Watermark | None = None
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesSource:
    name: str
    path: str
    format: str
    read: Read = Read.STREAM
    schema: str | None = None
    """Columns and types in Spark's DDL; what the files hold at the first start where it is not given."""
    files_per_batch: int | None = None
    watermark: Watermark | None = None
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Database:
    """Where a database is. `url` is `sqlite:FILE` or `postgresql://HOST[:PORT]/NAME`; secrets are kept apart."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        return self.url.partition(":")[0]


@dataclass(frozen=True, slots=True)
class JdbcSource:
    name: str
    database: Database
    query: str
    """A SELECT; of `table` where the file names one."""
    read: Read = Read.STREAM
    incremental: str | None = None
    """A column that only grows: rows past the last one seen are new. Without it, one pass over everything."""
    rows_per_batch: int = 10_000
    schema: str | None = None
    """Columns and types in Spark's DDL; what the database declares where it is not given."""
    watermark: Watermark | None = None
    on_poison: OnPoison = OnPoison.DEAD_LETTER


Source = TopicSource | FilesSource | JdbcSource


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
    """Of a session: the gap that ends it."""
    slide: str | None
    watermark: str | None
    """The delay; None where the input has a watermark of its own."""
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
class ParquetSink:
    name: str
    input: str
    path: str
    mode: Mode = Mode.APPEND
    partition_by: tuple[str, ...] = ()
    options: Options = field(default_factory=dict)
    on_refused: OnPoison = OnPoison.FAIL
    """What becomes of a row whose partition cannot be the name of a folder."""


@dataclass(frozen=True, slots=True)
class DeltaSink:
    name: str
    input: str
    path: str
    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    evolve: bool = False
    options: Options = field(default_factory=dict)
    on_refused: OnPoison = OnPoison.FAIL
    """What becomes of a row whose partition cannot be the name of a folder."""


@dataclass(frozen=True, slots=True)
class JdbcSink:
    name: str
    input: str
    database: Database
    table: str
    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    create: bool = True
    evolve: bool = False
    on_refused: OnPoison = OnPoison.FAIL
    """What becomes of a row that the table does not take."""


@dataclass(frozen=True, slots=True)
class TopicSink:
    name: str
    input: str
    topic: str
    subject: str
    schema: str | None = None
    """Avro text to register; None for the subject's latest."""
    register: bool = True
    key: str | None = None
    """A SQL expression over the row."""
    on_refused: OnPoison = OnPoison.FAIL
    """What becomes of a row that the schema cannot hold."""
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionSink:
    name: str
    input: str
    function: str
    """`module:function`, called with the batch's DataFrame and its `BatchId`."""


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    name: str
    input: str
    rows: int = 20


Sink = ParquetSink | DeltaSink | JdbcSink | TopicSink | FunctionSink | ConsoleSink


@dataclass(frozen=True, slots=True)
class TopicLetters:
    """Dead letters as records: the layout of `serdes.dead_letter`."""

    topic: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableLetters:
    """Dead letters as rows of a table."""

    sink: ParquetSink | DeltaSink | JdbcSink


DeadLetters = TopicLetters | TableLetters


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    file: str
    folder: str
    checkpoint: str
    trigger_seconds: float
    refresh_seconds: float
    """How old a table may be when it is looked up."""
    kafka: Options
    """For every topic, under the source's option names: `kafka.bootstrap.servers`, `kafka.sasl.…`."""
    registry: Options
    """Under the names that `RegistryOptions.from_options` takes."""
    spark: Options
    sources: Mapping[str, Source]
    transforms: Mapping[str, Transform]
    sinks: Mapping[str, Sink]
    dead_letters: DeadLetters | None = None
    description: str = ""

    @property
    def steps(self) -> Mapping[str, Source | Transform]:
        return {**self.sources, **self.transforms}
