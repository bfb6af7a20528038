"""`headgate consume`: records of a topic on standard output."""

import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.gateway.cli.completion import complete_group
from headgate.gateway.cli.errors import UsageError
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
from headgate.gateway.cli.poison_action import PoisonAction

if TYPE_CHECKING:
    from headgate.gateway.kafka.consuming import Start
    from headgate.gateway.records.decoding import ChosenSchema
    from headgate.gateway.records.payload_format import PayloadFormats
    from headgate.gateway.records.record import Record

_OFFSET = re.compile(r"-?\d{1,18}")


def consume(
    topic: TopicName,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            "-o",
            metavar="WHERE",
            help="beginning, end, an offset, -N for the last N of each partition, or @TIME [default: beginning].",
        ),
    ] = None,
    stop_at_end: Annotated[
        bool, typer.Option("--stop-at-end", "-e", help="Stop at the current end instead of waiting for more records.")
    ] = False,
    count: Annotated[int | None, typer.Option("--count", "-n", min=0, help="Stop after N records.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Read only this partition; repeatable.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", help="Join this group and commit offsets.", autocompletion=complete_group),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="TEXT", help=r"As in kcat: %t %p %o %k %s %K %S %R %T %h %% \n \r \t \0 \xNN."
        ),
    ] = None,
    print_key: Annotated[bool, typer.Option("--print-key", "-k", help="Print the key before the value.")] = False,
    print_headers: Annotated[bool, typer.Option("--print-headers", help="Print the headers first.")] = False,
    print_timestamp: Annotated[
        bool, typer.Option("--print-timestamp", help="Print the timestamp first (milliseconds).")
    ] = False,
    separator: Annotated[
        str, typer.Option("--separator", "-K", metavar="TEXT", help="Separator of key, headers and value.")
    ] = r"\t",
    null: Annotated[str, typer.Option("--null", metavar="TEXT", help="Text for null; empty values stay empty.")] = (
        "NULL"
    ),
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Skip records of open and aborted transactions.")
    ] = False,
    base64: Annotated[
        bool, typer.Option("--base64", help="With --json: print keys and values in base64, even if they are text.")
    ] = False,
    payload_format: Annotated[
        list[str] | None,
        typer.Option(
            "--payload-format",
            "-s",
            metavar="[key=|value=]FORMAT",
            help="auto, avro, protobuf, json, string, hex, base64, raw, or a pack string as in kcat [default: auto].",
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print payloads unchanged, also those with a schema.")] = False,
    key_schema_id: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Keys have no schema id; decode them with this schema.")
    ] = None,
    value_schema_id: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Values have no schema id; decode them with this schema.")
    ] = None,
    key_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="As --key-schema-id, with the latest version of a subject.")
    ] = None,
    value_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="As --value-schema-id, with the latest version of a subject.")
    ] = None,
    logical: LogicalForm = LogicalTypes.AVRO,
    on_poison: Annotated[
        PoisonAction,
        typer.Option(
            help="Records that cannot be decoded: report them and exit with 1, skip them, fail at the first one, or "
            "(with --group) move them to the topic's dead-letter topic."
        ),
    ] = PoisonAction.REPORT,
    dead_letter_suffix: Annotated[
        str, typer.Option(metavar="TEXT", help="The dead-letter topic is the name of the topic and this suffix.")
    ] = ".dead",
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
    rules: Rules = RuleAction.FAIL,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Annotated[bool, typer.Option("--json", "-J", help="Print each record as one line of JSON.")] = False,
) -> None:
    """Print the records of a topic: by default the value of each, one per line.

    Payloads with a registered schema (Avro, JSON Schema, Protobuf) are printed as JSON.
    """
    from headgate.gateway.cli.consume_loop import ConsumeLoop
    from headgate.gateway.kafka.cluster import connection_options

    if json and (format is not None or print_key or print_headers or print_timestamp):
        raise UsageError("--json already prints everything", next_step="remove --format and --print-...")
    if base64 and not json:
        raise UsageError("--base64 needs --json")
    if on_poison is PoisonAction.DEAD_LETTER and group is None:
        raise UsageError(
            "--on-poison dead-letter needs --group: only a consumer that commits offsets moves records",
            next_step="add -g GROUP",
        )
    if format is None:
        parts = [
            *(["%T"] if print_timestamp else []),
            *(["%h"] if print_headers else []),
            *(["%k"] if print_key else []),
            "%s",
        ]
        format = separator.replace("%", "%%").join(parts) + r"\n"
    where = parse_start(offset or "beginning", time.time_ns() // 1_000_000)
    reading = ConsumeLoop(
        connection_options(bootstrap_server, kafka_config),
        topic,
        _renderer(format, null, json=json, base64=base64),
        count=count,
        stop_at_end=stop_at_end,
        read_committed=read_committed,
        registry_url=registry,
        rules=rules,
        # --base64 prints payloads, not values.
        formats=_formats(payload_format or [], raw=raw or base64),
        key_schema=_chosen("key", key_schema_id, key_subject),
        value_schema=_chosen("value", value_schema_id, value_subject),
        native_logical=logical is LogicalTypes.NATIVE,
        on_poison=on_poison,
        dead_letter_suffix=dead_letter_suffix,
        renders_poison=json,
    )
    if group is None:
        reading.by_assignment(where, partition)
        return
    group.encode()  # Fail here. Otherwise background tasks of the client fail later with tracebacks.
    if partition:
        raise UsageError("a group assigns the partitions itself", next_step="remove --partition or --group")
    if not where.beginning and not where.end:
        raise UsageError(
            "a group continues at its committed offsets; --offset beginning or end applies to partitions without one",
            next_step=f"headgate group reset {group} --topic {topic} moves it",
        )
    reading.by_group(group, where)


def parse_start(text: str, now_ms: int) -> "Start":
    """Raises UsageError."""
    from headgate.gateway.kafka.consuming import Start
    from headgate.gateway.timestamps import InvalidTimestamp, parse_timestamp

    if text in {"beginning", "earliest", "start"}:
        return Start(beginning=True)
    if text in {"end", "latest"}:
        return Start(end=True)
    if _OFFSET.fullmatch(text):
        number = int(text)
        return Start(last=-number) if text.startswith("-") else Start(offset=number)
    try:
        return Start(timestamp_ms=parse_timestamp(text.removeprefix("@"), now_ms))
    except InvalidTimestamp as error:
        raise UsageError(
            f"--offset {text!r} is not a start position", next_step="beginning, end, 42, -10, @2026-01-31T12:00 or @2h"
        ) from error


def _formats(options: list[str], *, raw: bool) -> "PayloadFormats":
    from headgate.gateway.records.payload_format import BadPayloadFormat, parse_formats

    if options and raw:
        raise UsageError("-s cannot be combined with --raw or --base64", next_step="use -s key=raw or -s value=raw")
    try:
        return parse_formats(options, raw=raw)
    except BadPayloadFormat as error:
        raise UsageError(str(error)) from error


def _chosen(part: str, schema_id: int | None, subject: str | None) -> "ChosenSchema | None":
    from headgate.gateway.records.decoding import ChosenSchema

    if schema_id is not None and subject is not None:
        raise UsageError(
            f"--{part}-schema-id and --{part}-subject both choose a schema", next_step="remove one of them"
        )
    return None if schema_id is None and subject is None else ChosenSchema(schema_id, subject)


def _renderer(text: str, null: str, *, json: bool, base64: bool) -> "Callable[[Record], bytes]":
    if json:
        import orjson

        from headgate.gateway.records.json_lines import document_of

        return lambda record: orjson.dumps(document_of(record, always_base64=base64)) + b"\n"
    from headgate.gateway.records.format import BadFormat, compile_format

    try:
        return compile_format(text, os.fsencode(null))
    except BadFormat as error:
        raise UsageError(str(error)) from error
