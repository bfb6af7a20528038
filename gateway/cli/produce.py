"""`headgate produce`: lines of standard input or of files become records."""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.input_format import InputFormat, RowFormat
from headgate.gateway.cli.options import (
    DEFAULT_BOOTSTRAP_SERVER,
    DEFAULT_REGISTRY_URL,
    BootstrapServer,
    KafkaConfig,
    LogicalForm,
    LogicalTypes,
    RegistryUrl,
    RuleAction,
    Rules,
    TopicName,
)

if TYPE_CHECKING:
    from headgate.gateway.records.encoding import PayloadSchema


class Acks(StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def produce(
    topic: TopicName,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Read these instead of standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    value: Annotated[str | None, typer.Option("--value", "-v", help="Send this one value and read no input.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", metavar="TEXT", help="Separator of key and value in a line.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header; repeatable.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="The partition [default: by key].")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", "-t", metavar="TIME", help="ISO 8601 or milliseconds [default: now].")
    ] = None,
    acks: Annotated[Acks, typer.Option(help="Acknowledgements to wait for.")] = Acks.ALL,
    compression: Annotated[Compression, typer.Option("--compression", "-z", help="The codec.")] = Compression.NONE,
    from_json: Annotated[
        bool, typer.Option("--from-json", "-J", help="Each line is a record as `consume --json` prints it.")
    ] = False,
    input_format: Annotated[
        InputFormat, typer.Option("--from", help="The format of the input. CSV and Parquet need a schema of the value.")
    ] = InputFormat.LINES,
    key_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of CSV or Parquet that is the key.")
    ] = None,
    csv_separator: Annotated[str, typer.Option(metavar="CHARACTER", help="The separator of CSV.")] = ",",
    base64: Annotated[bool, typer.Option("--base64", help="Keys and values in the lines are base64.")] = False,
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", "-Z", help="An empty value is null (a tombstone).")
    ] = False,
    key_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Encode keys with the latest schema of this subject.")
    ] = None,
    value_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Encode values with the latest schema of this subject.")
    ] = None,
    key_schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Register this schema for keys, and encode them with it.")
    ] = None,
    value_schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Register this schema for values, and encode them with it.")
    ] = None,
    key_schema_id: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Encode keys with this schema.")
    ] = None,
    value_schema_id: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Encode values with this schema.")
    ] = None,
    logical: LogicalForm = LogicalTypes.AVRO,
    dead_letter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append lines that cannot be sent to this file, and continue."),
    ] = None,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
    rules: Rules = RuleAction.FAIL,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Annotated[bool, typer.Option("--json", help="Print partition and offset of each record as JSON.")] = False,
) -> None:
    """Send records: each line of standard input is the value of one.

    With a schema, a value is JSON and is encoded (Avro in its JSON encoding, JSON Schema, Protobuf).
    """
    from headgate.gateway.cli.payload_schema import payload_schema
    from headgate.gateway.cli.produce_loop import ProduceLoop
    from headgate.gateway.kafka.cluster import connection_options
    from headgate.gateway.records.format import BadFormat, unescape
    from headgate.gateway.records.input import LineFormat
    from headgate.gateway.timestamps import InvalidTimestamp, parse_timestamp

    from_json = from_json or input_format is InputFormat.JSON
    if from_json and (base64 or key_separator):
        raise UsageError(
            "--from-json cannot be combined with --base64 or --key-separator", next_step="remove these options"
        )
    if value is not None and (files or from_json):
        raise UsageError("--value cannot be combined with files or --from-json", next_step="remove these arguments")
    schemas = {
        "key": payload_schema(topic, "key", key_subject, key_schema, key_schema_id),
        "value": payload_schema(topic, "value", value_subject, value_schema, value_schema_id),
    }
    row_format = _row_format(input_format, key_column, csv_separator, files, value, schemas["value"])
    if base64 and any(schemas.values()):
        raise UsageError("a payload with a schema is JSON, not base64", next_step="remove --base64 or the schema")
    try:
        line_format = LineFormat(
            as_json=from_json,
            base64=base64,
            key_separator=None if key_separator is None else unescape(key_separator),
            empty_as_null=empty_as_null,
            key=None if key is None else os.fsencode(key),
            headers=tuple(_header(pair) for pair in header or []),
            partition=partition,
            timestamp_ms=None if timestamp is None else parse_timestamp(timestamp, time.time_ns() // 1_000_000),
            encoded=frozenset(part for part, schema in schemas.items() if schema is not None),
        )
    except (InvalidTimestamp, BadFormat) as error:
        raise UsageError(str(error)) from error
    connection = connection_options(bootstrap_server, kafka_config)
    sending = ProduceLoop(
        connection,
        topic,
        acks,
        compression,
        registry_url=registry,
        # A cell of CSV contains the readable form.
        native_logical=logical is LogicalTypes.NATIVE or input_format is InputFormat.CSV,
        rules=rules,
        key_schema=schemas["key"],
        value_schema=schemas["value"],
        dead_letter=dead_letter,
        print_receipts=json,
        rows=row_format,
    )
    sending.run(line_format, files or [], None if value is None else os.fsencode(value))


def _row_format(
    kind: InputFormat,
    key_column: str | None,
    separator: str,
    files: list[Path] | None,
    value: str | None,
    schema: "PayloadSchema | None",
) -> RowFormat:
    """Raises UsageError."""
    if kind not in (InputFormat.CSV, InputFormat.PARQUET):
        if key_column is not None:
            raise UsageError("--key-column needs --from csv or --from parquet")
        return RowFormat()
    if schema is None:
        raise UsageError(
            f"--from {kind} needs the schema of the value", next_step="add --value-subject or --value-schema"
        )
    if value is not None:
        raise UsageError(f"--value cannot be combined with --from {kind}", next_step="remove one of them")
    if kind is InputFormat.PARQUET and not files:
        raise UsageError("--from parquet cannot read standard input", next_step="name the files")
    if len(separator) != 1:
        raise UsageError(f"--csv-separator {separator!r} is not one character", next_step="--csv-separator ';'")
    return RowFormat(kind, key_column, separator)


def _header(pair: str) -> tuple[str, bytes | None]:
    name, equals, value = pair.partition("=")
    if not name or not equals:
        raise UsageError(f"--header {pair!r} is not NAME=VALUE", next_step="-H source=shop")
    return name, os.fsencode(value)
