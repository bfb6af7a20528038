"""The tables below `[sources]`: topics, files, databases."""

import json
from typing import Any

from headgate.spark_udfs.pipeline.checks.table_reader import Table
from headgate.spark_udfs.pipeline.databases.dialect import quoted
from headgate.spark_udfs.pipeline.document import Document, placed
from headgate.spark_udfs.pipeline.errors import shown
from headgate.spark_udfs.pipeline.model import (
    Database,
    FilesSource,
    JdbcSource,
    OnPoison,
    Read,
    Source,
    TopicSource,
    Watermark,
)
from headgate.spark_udfs.spec.policy import OnNewVersion

KINDS = ("topic", "files", "jdbc")
FORMATS = ("csv", "json", "parquet", "avro")
_SUFFIXES = {
    "csv": "csv",
    "tsv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
    "avro": "avro",
}
TOPIC_CHARS_MAX = 249
ROWS_PER_BATCH_DEFAULT = 1_000_000
"""Of a topic: a batch is kept while it is written, and one of everything that a topic ever held would fill the disk."""
DATABASES = ("sqlite", "postgresql")

# Said once for all topics, or by a key of the table itself.
_RESERVED = {
    "subscribe": "topic",
    "assign": "topic",
    "subscribepattern": "topic",
    "subject": "subject",
    "startingoffsets": "starting_offsets",
    "maxoffsetspertrigger": "rows_per_batch",
    "on_poison": "on_poison",
    "on_new_version": "on_new_version",
    "version": "version",
    "schema_id": "schema_id",
    "schema": "schema",
    "fields": "fields",
}
_OWN_OPTIONS = frozenset({"columns", "flat", "includeheaders"})
"""Without which transforms and dead letters would not find what they need."""


def read_source(table: Table, document: Document, on_poison: OnPoison, on_new_version: OnNewVersion) -> Source | None:
    kind = table.one_of("type", KINDS, needed="what the source is")
    name = table.path[-1]
    found: Source | None = None
    if kind == "topic":
        found = _topic(table, name, document, on_poison, on_new_version)
    elif kind == "files":
        found = _files(table, name, document, on_poison)
    elif kind == "jdbc":
        found = _jdbc(table, name, document, on_poison)
    if kind is not None:
        table.finish()
    return found


def _topic(
    table: Table, name: str, document: Document, on_poison: OnPoison, on_new_version: OnNewVersion
) -> TopicSource:
    topic = topic_name(table, "topic") if table.has("topic") else name
    table.take("topic")
    decode = table.boolean("decode", True)
    read = table.choice("read", Read, Read.STREAM)
    version, schema_id = table.number("version"), table.number("schema_id")
    schema = schema_text(table, document)
    chosen = [key for key in ("version", "schema_id", "schema", "schema_file") if table.has(key)]
    if len(chosen) > 1:
        table.wrong(chosen[1], f"{' and '.join(chosen)} exclude one another")
    fields, key = table.texts("fields"), table.texts("key")
    if key and read is Read.STREAM:
        table.wrong("key", 'is for read = "table": the fields that tell its rows apart')
    if not decode and read is Read.TABLE:
        table.wrong("decode", "the values of a table must be decoded")
    if not decode:
        for useless in ("subject", "version", "schema_id", "schema", "schema_file", "fields", "on_new_version"):
            if table.has(useless):
                table.wrong(useless, "has no meaning with decode = false")
    options = table.options("options")
    for option in options:
        if option.lower() in _RESERVED:
            table.wrong(f"options.{option}", f"is said with {_RESERVED[option.lower()]} instead")
        elif option.lower() in _OWN_OPTIONS:
            table.wrong(
                f"options.{option}", "is the pipeline's own: it reads all columns, and makes columns of the fields"
            )
    return TopicSource(
        name=name,
        topic=topic,
        subject=table.text("subject") or f"{topic}-value",
        read=read,
        decode=decode,
        version=version,
        schema_id=schema_id,
        schema=schema,
        fields=fields,
        key=key,
        metadata=table.boolean("metadata", False),
        starting_offsets=_starting_offsets(table, read),
        rows_per_batch=table.number("rows_per_batch") or ROWS_PER_BATCH_DEFAULT,
        watermark=watermark(table),
        on_poison=table.choice("on_poison", OnPoison, on_poison),
        on_new_version=table.choice("on_new_version", OnNewVersion, on_new_version),
        options=options,
    )


def topic_name(table: Table, key: str) -> str:
    text = table.required(key, "the topic's name")
    good = all(each.isascii() and (each.isalnum() or each in "._-") for each in text)
    if text and (not good or len(text) > TOPIC_CHARS_MAX or text in {".", ".."}):
        table.wrong(key, f"{shown(text)} is not a topic's name: up to 249 letters, digits, dots, dashes, underscores")
    return text


def _starting_offsets(table: Table, read: Read) -> str:
    value: Any = table.take("starting_offsets")
    if value is None:
        return "earliest"
    if read is Read.TABLE:
        table.wrong("starting_offsets", "has no meaning for a table: it is read from the beginning")
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, str):
        if value in {"earliest", "latest"}:
            return value
        try:
            if isinstance(json.loads(value), dict):
                return value
        except (ValueError, RecursionError):
            pass
    table.wrong("starting_offsets", f"earliest, latest or offsets by topic and partition, not {shown(value)}")
    return "earliest"


def watermark(table: Table) -> Watermark | None:
    inner = table.inner("watermark")
    if inner is None:
        return None
    column = inner.required("column", "the column that holds the time of a row")
    delay = inner.duration("delay", needed="how late rows may be, such as '10 minutes'")
    inner.finish()
    return Watermark(column, delay or "0 seconds")


def schema_text(table: Table, document: Document) -> str | None:
    """An Avro schema: as text under `schema`, or in the file that `schema_file` names."""
    text, file = table.text("schema"), table.text("schema_file")
    if text is not None and file is not None:
        table.wrong("schema_file", "schema and schema_file exclude one another")
    where = "schema"
    if file is not None:
        where = "schema_file"
        try:
            text = (document.folder / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            table.wrong("schema_file", f"{file} cannot be read: {getattr(error, 'strerror', None) or error}")
            return None
    if text is not None:
        from headgate.serdes import InvalidSchema
        from headgate.serdes.avro import parse

        try:
            parse(text, {})
        except InvalidSchema as error:
            table.wrong(where, f"is not an Avro schema: {error}")
            return None
    return text


def _files(table: Table, name: str, document: Document, on_poison: OnPoison) -> FilesSource:
    path = table.required("path", "the folder or the pattern of the files")
    format_ = table.one_of("format", FORMATS)
    if format_ is None and not table.has("format"):
        format_ = _SUFFIXES.get(path.rpartition(".")[2].lower().rstrip("*"))
        if path and format_ is None:
            table.wrong("format", f"is missing, and {shown(path)} does not tell; one of {', '.join(FORMATS)}")
    return FilesSource(
        name=name,
        path=placed(path, document),
        format=format_ or "csv",
        read=table.choice("read", Read, Read.STREAM),
        schema=table.text("schema"),
        files_per_batch=table.number("files_per_batch"),
        watermark=watermark(table),
        on_poison=table.choice("on_poison", OnPoison, on_poison),
        options=table.options("options"),
    )


def _jdbc(table: Table, name: str, document: Document, on_poison: OnPoison) -> JdbcSource:
    found = database(table, document)
    whole, query = table.text("table"), table.text("query")
    if (whole is None) == (query is None):
        table.wrong("table", "name the table, or give a query: one of both")
    if whole is not None:
        query = f"SELECT * FROM {quoted(whole)}"
    read = table.choice("read", Read, Read.STREAM)
    incremental = table.text("incremental")
    if incremental is not None and read is Read.TABLE:
        table.wrong("incremental", "has no meaning for a table: it is read as a whole")
    return JdbcSource(
        name=name,
        database=found,
        query=query or "",
        read=read,
        incremental=incremental,
        rows_per_batch=table.number("rows_per_batch", most=1_000_000) or 10_000,
        schema=table.text("schema"),
        watermark=watermark(table),
        on_poison=table.choice("on_poison", OnPoison, on_poison),
    )


def database(table: Table, document: Document) -> Database:
    given = table.required("url", "where the database is: sqlite:FILE or postgresql://HOST/NAME")
    url = given.removeprefix("jdbc:")
    user, password = table.text("user"), table.text("password")
    kind, colon, rest = url.partition(":")
    if given and (kind not in DATABASES or not colon or not rest.strip("/")):
        if kind in DATABASES:
            table.wrong(
                "url", f"{shown(_hidden(given))} does not say which database: sqlite:FILE or postgresql://HOST/NAME"
            )
        else:
            table.wrong(
                "url",
                f"{shown(_hidden(given))} is not of a known database: sqlite:FILE or postgresql://HOST[:PORT]/NAME",
            )
        return Database("sqlite:", user, password)
    if kind == "sqlite":
        return Database("sqlite:" + placed(rest, document), user, password)
    credentials, at, address = rest.removeprefix("//").rpartition("@")
    if at:
        own_user, _, own_password = credentials.partition(":")
        user, password = user or own_user, password or own_password or None
    return Database(f"postgresql://{address}", user, password)


def _hidden(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url
