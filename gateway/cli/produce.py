"""`headgate produce`: lines of standard input or of files become records."""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headgate.gateway.cli.errors import UsageError
from headgate.gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, KafkaConfig, TopicName


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
    base64: Annotated[bool, typer.Option("--base64", help="Keys and values in the lines are base64.")] = False,
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", "-Z", help="An empty value is null (a tombstone).")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Annotated[bool, typer.Option("--json", help="Print partition and offset of each record as JSON.")] = False,
) -> None:
    """Send records: each line of standard input is the value of one."""
    from headgate.gateway.cli.produce_loop import ProduceLoop
    from headgate.gateway.kafka.cluster import connection_options
    from headgate.gateway.records.format import BadFormat, unescape
    from headgate.gateway.records.input import LineFormat
    from headgate.gateway.timestamps import InvalidTimestamp, parse_timestamp

    if from_json and (base64 or key_separator):
        raise UsageError(
            "--from-json cannot be combined with --base64 or --key-separator", next_step="remove these options"
        )
    if value is not None and (files or from_json):
        raise UsageError("--value cannot be combined with files or --from-json", next_step="remove these arguments")
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
        )
    except (InvalidTimestamp, BadFormat) as error:
        raise UsageError(str(error)) from error
    connection = connection_options(bootstrap_server, kafka_config)
    sending = ProduceLoop(connection, topic, acks, compression, print_receipts=json)
    sending.run(line_format, files or [], None if value is None else os.fsencode(value))


def _header(pair: str) -> tuple[str, bytes | None]:
    name, equals, value = pair.partition("=")
    if not name or not equals:
        raise UsageError(f"--header {pair!r} is not NAME=VALUE", next_step="-H source=shop")
    return name, os.fsencode(value)
