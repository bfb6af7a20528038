"""The tables below `[sinks]`, and `[dead_letters]`."""

import re

from headgate.spark_udfs.pipeline.checks.sources import database, schema_text, topic_name
from headgate.spark_udfs.pipeline.checks.table_reader import Table
from headgate.spark_udfs.pipeline.document import Document, placed
from headgate.spark_udfs.pipeline.errors import shown
from headgate.spark_udfs.pipeline.model import (
    ConsoleSink,
    DeadLetters,
    DeltaSink,
    FunctionSink,
    JdbcSink,
    Mode,
    OnPoison,
    ParquetSink,
    Sink,
    TableLetters,
    TopicLetters,
    TopicSink,
)

KINDS = ("parquet", "delta", "jdbc", "topic", "function", "console")
LETTER_KINDS = ("topic", "parquet", "delta", "jdbc")
BATCH_COLUMN = "headgate_batch"
"""The partition column of Parquet sinks: which micro-batch wrote a row."""
CONSOLE_ROWS_MAX = 10_000

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read_sink(table: Table, document: Document) -> Sink | None:
    kind = table.one_of("type", KINDS, needed="where the rows go")
    name = table.path[-1]
    input_ = table.required("from", "the source or the transform whose rows it takes")
    found: Sink | None = None
    if kind == "parquet":
        found = _parquet(table, name, input_, document)
    elif kind == "delta":
        found = _delta(table, name, input_, document)
    elif kind == "jdbc":
        found = _jdbc(table, name, input_, document)
    elif kind == "topic":
        found = _topic(table, name, input_, document)
    elif kind == "function":
        function = table.required("function", "module:function")
        if function and _FUNCTION.fullmatch(function) is None:
            table.wrong("function", f"module:function is expected, not {shown(function)}")
        found = FunctionSink(name, input_, function)
    elif kind == "console":
        found = ConsoleSink(name, input_, table.number("rows", most=CONSOLE_ROWS_MAX) or 20)
    if kind is not None:
        table.finish()
    return found


def read_dead_letters(table: Table, document: Document) -> DeadLetters | None:
    kind = table.one_of("type", LETTER_KINDS, needed="where dead letters go")
    name = "dead_letters"
    found: DeadLetters | None = None
    if kind == "topic":
        found = TopicLetters(topic_name(table, "topic"), table.options("options"))
    elif kind == "parquet":
        found = TableLetters(ParquetSink(name, "", _path(table, document)))
    elif kind == "delta":
        found = TableLetters(DeltaSink(name, "", _path(table, document)))
    elif kind == "jdbc":
        where = database(table, document)
        found = TableLetters(JdbcSink(name, "", where, table.text("table") or "dead_letters"))
    if kind is not None:
        table.finish()
    return found


def _path(table: Table, document: Document) -> str:
    return placed(table.required("path", "the folder"), document)


def _mode(table: Table, allowed: tuple[Mode, ...], keys: tuple[str, ...]) -> Mode:
    mode = table.choice("mode", Mode, Mode.APPEND)
    if mode not in allowed:
        table.wrong("mode", f"{mode} is not possible here; {', '.join(allowed)} are")
    elif mode is Mode.UPSERT and not keys:
        table.wrong("keys", 'is missing: the columns that tell rows apart, for mode = "upsert"')
    if keys and mode is not Mode.UPSERT:
        table.wrong("keys", 'is for mode = "upsert"')
    return mode


def _on_refused(table: Table, document: Document) -> OnPoison:
    """One row must not stop the others, as long as there is a place for it."""
    default = OnPoison.DEAD_LETTER if "dead_letters" in document.values else OnPoison.FAIL
    return table.choice("on_refused", OnPoison, default)


def _parquet(table: Table, name: str, input_: str, document: Document) -> ParquetSink:
    partition_by = table.texts("partition_by")
    if BATCH_COLUMN in partition_by:
        table.wrong("partition_by", f"{BATCH_COLUMN} is the pipeline's own")
    return ParquetSink(
        name=name,
        input=input_,
        path=_path(table, document),
        mode=_mode(table, (Mode.APPEND, Mode.REPLACE), ()),
        partition_by=partition_by,
        options=table.options("options"),
        on_refused=_on_refused(table, document),
    )


def _delta(table: Table, name: str, input_: str, document: Document) -> DeltaSink:
    keys = table.texts("keys")
    return DeltaSink(
        name=name,
        input=input_,
        path=_path(table, document),
        mode=_mode(table, tuple(Mode), keys),
        keys=keys,
        partition_by=table.texts("partition_by"),
        evolve=table.boolean("evolve", False),
        options=table.options("options"),
        on_refused=_on_refused(table, document),
    )


def _jdbc(table: Table, name: str, input_: str, document: Document) -> JdbcSink:
    keys = table.texts("keys")
    return JdbcSink(
        name=name,
        input=input_,
        database=database(table, document),
        table=table.required("table", "the table that takes the rows"),
        mode=_mode(table, tuple(Mode), keys),
        keys=keys,
        create=table.boolean("create", True),
        evolve=table.boolean("evolve", False),
        on_refused=_on_refused(table, document),
    )


def _topic(table: Table, name: str, input_: str, document: Document) -> TopicSink:
    topic = topic_name(table, "topic")
    return TopicSink(
        name=name,
        input=input_,
        topic=topic,
        subject=table.text("subject") or f"{topic}-value",
        schema=schema_text(table, document),
        register=table.boolean("register", True),
        key=table.text("key"),
        on_refused=_on_refused(table, document),
        options=table.options("options"),
    )
