"""Keys that several sections of a pipeline file share: topics, schemas, databases, folders, modes, watermarks."""

from headgate.serdes import InvalidSchema
from headgate.serdes.avro import parse
from headgate.spark_udfs.pipeline.checks.table_reader import TableReader
from headgate.spark_udfs.pipeline.document import resolve_path
from headgate.spark_udfs.pipeline.errors import shown
from headgate.spark_udfs.pipeline.model import PIPELINE_POLICIES, Database, Mode, Watermark
from headgate.spark_udfs.spec.policy import OnPoison

TOPIC_CHARS_MAX = 249
TABLE_PARTS_MAX = 3
DATABASES = ("sqlite", "postgresql")
_DATABASE_URLS = "sqlite:FILE or postgresql://HOST[:PORT]/NAME"


def topic_name(table: TableReader, key: str) -> str:
    text = table.required(key, "the name of the topic")
    is_valid = all(each.isascii() and (each.isalnum() or each in "._-") for each in text)
    if text and (not is_valid or len(text) > TOPIC_CHARS_MAX or text in {".", ".."}):
        table.wrong(
            key,
            f"{shown(text)} is not a valid topic name: up to {TOPIC_CHARS_MAX} letters, digits, dots, dashes and "
            "underscores",
        )
    return text


def watermark(table: TableReader) -> Watermark | None:
    inner = table.inner("watermark")
    if inner is None:
        return None
    column = inner.required("column", "the timestamp column of the rows")
    delay = inner.duration("delay", needed="how late rows may arrive, such as '10 minutes'")
    inner.finish()
    return Watermark(column, delay or "0 seconds")


def schema_text(table: TableReader) -> str | None:
    """An Avro schema: the text of `schema`, or the content of the file `schema_file`."""
    text, file = table.text("schema"), table.text("schema_file")
    if text is not None and file is not None:
        table.wrong("schema_file", "schema and schema_file are mutually exclusive")
    key = "schema"
    if file is not None:
        key = "schema_file"
        try:
            text = (table.document.folder / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            table.wrong("schema_file", f"cannot read {file}: {getattr(error, 'strerror', None) or error}")
            return None
    if text is not None:
        try:
            parse(text, {})
        except InvalidSchema as error:
            table.wrong(key, f"is not an Avro schema: {error}")
            return None
    return text


def folder(table: TableReader) -> str:
    return resolve_path(table.required("path", "the folder of the files"), table.document)


def table_name(table: TableReader) -> tuple[str, ...]:
    """The parts of a name in a catalog, such as `lake.shop.orders`."""
    text = table.required("table", "the name of the table: catalog.schema.table")
    parts = tuple(text.split("."))
    if text and (len(parts) > TABLE_PARTS_MAX or not all(part.strip() for part in parts)):
        table.wrong("table", f"{shown(text)} is not a table name such as catalog.schema.table")
    return parts


def write_mode(table: TableReader, allowed: tuple[Mode, ...], keys: tuple[str, ...] = ()) -> Mode:
    mode = table.choice("mode", Mode, Mode.APPEND)
    if mode not in allowed:
        table.wrong("mode", f"{mode} is not supported; use one of {', '.join(allowed)}")
    elif mode is Mode.UPSERT and not keys:
        table.wrong("keys", 'is required with mode = "upsert": the key columns')
    if keys and mode is not Mode.UPSERT:
        table.wrong("keys", 'requires mode = "upsert"')
    return mode


def on_refused(table: TableReader) -> OnPoison:
    """The default is DEAD_LETTER if the file has dead letters, so that one row does not block the others."""
    default = OnPoison.DEAD_LETTER if "dead_letters" in table.document.values else OnPoison.FAIL
    return table.choice("on_refused", PIPELINE_POLICIES, default)


def database(table: TableReader) -> Database:
    given = table.required("url", "the address of the database: sqlite:FILE or postgresql://HOST/NAME")
    url = given.removeprefix("jdbc:")
    user, password = table.text("user"), table.text("password")
    kind, colon, rest = url.partition(":")
    if given and (kind not in DATABASES or not colon or not rest.strip("/")):
        problem = "does not name a database" if kind in DATABASES else "is not a supported database"
        table.wrong("url", f"{shown(_without_credentials(given))} {problem}: {_DATABASE_URLS}")
        return Database("sqlite:", user, password)
    if kind == "sqlite":
        return Database("sqlite:" + resolve_path(rest, table.document), user, password)
    credentials, at, address = rest.removeprefix("//").rpartition("@")
    if at:
        url_user, _, url_password = credentials.partition(":")
        user, password = user or url_user, password or url_password or None
    return Database(f"postgresql://{address}", user, password)


def _without_credentials(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url
