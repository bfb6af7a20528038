"""`headgate dead`: list, show, count, re-drive and purge dead letters."""

import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from headgate.gateway.cli.completion import complete_topic
from headgate.gateway.cli.errors import AnswerIsNo, CommandError, UsageError
from headgate.gateway.cli.options import (
    DEFAULT_BOOTSTRAP_SERVER,
    DEFAULT_REGISTRY_URL,
    BootstrapServer,
    Json,
    KafkaConfig,
    LogicalForm,
    LogicalTypes,
    RegistryUrl,
    RuleAction,
    TopicName,
    Yes,
)
from headgate.gateway.cli.output import Progress, print_json, print_json_line, print_table, say

if TYPE_CHECKING:
    from headgate.proxy.dead_letters.letter import LetterCounts, LetterFilter, StoredLetter
    from headgate.proxy.dead_letters.redriving import Repair, Report
    from headgate.proxy.dead_letters.tables import DeadLetterTable
    from headgate.proxy.dead_letters.topic import DeadLetterTopic

    AnyLetters: TypeAlias = DeadLetterTopic | DeadLetterTable

app = typer.Typer(help="Dead letters: list, show, count, redrive, purge.", no_args_is_help=True)

T = TypeVar("T")
TRANSIENT = "REGISTRY_UNAVAILABLE"
BY = "headgate dead redrive"
Letters: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC|TABLE",
        help="A dead-letter topic, or a table of a pipeline: sqlite:FILE, sqlite:FILE#TABLE, or a Parquet folder.",
        autocompletion=complete_topic,
    ),
]
Reasons: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--reason", metavar="REASON", help="Only this reason (TRUNCATED, …); repeatable."),
]
Transient: TypeAlias = Annotated[
    bool, typer.Option("--transient", help=f"Only letters whose cause was temporary ({TRANSIENT}).")
]
SchemaId: TypeAlias = Annotated[int | None, typer.Option("--schema-id", metavar="ID", help="Only this schema.")]
Application: TypeAlias = Annotated[
    str | None, typer.Option("--application", metavar="NAME", help="Only letters that this application wrote.")
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only failures since this time: 2h, 2026-01-31."),
]
Until: TypeAlias = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only failures before this time.")
]


@app.command("list")
def list_(
    topic: Letters,
    reason: Reasons = None,
    transient: Transient = False,
    schema_id: SchemaId = None,
    application: Application = None,
    since: Since = None,
    until: Until = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Show at most N letters.")] = 100,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """List the letters of a dead-letter topic or table."""
    wanted = _filter(reason, schema_id, application, since, until, transient=transient)

    async def work(letters: "AnyLetters") -> "list[StoredLetter]":
        found = []
        async for stored in letters.read(wanted.accepts):
            found.append(stored)
            if len(found) == count:
                break
        return found

    found = _run(bootstrap_server, kafka_config, topic, work)
    if json:
        for stored in found:
            print_json_line(stored.document())
        return
    print_table(
        ["LETTER", "SOURCE", "REASON", "SCHEMA", "ATTEMPT", "FAILED AT", "STATE"],
        [
            [
                each.position,
                _source(each),
                each.reason,
                each.letter.schema_id,
                each.letter.attempt,
                _time(each.failed_at_ms),
                each.state,
            ]
            for each in found
        ],
        numbers=["SCHEMA", "ATTEMPT"],
    )
    if not found:
        say("no letters")


@app.command("count")
def count_(
    topic: Letters,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Count letters by reason, schema and state."""

    async def work(letters: "AnyLetters") -> "LetterCounts":
        return await letters.counts()

    found = _run(bootstrap_server, kafka_config, topic, work)
    if json:
        print_json(found.document())
        return
    print_table(
        ["REASON", "SCHEMA", "STATE", "LETTERS"],
        [[*key, number] for key, number in found.counts.most_common()],
        numbers=["SCHEMA", "LETTERS"],
    )


@app.command("show")
def show(
    topic: Letters,
    letter: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="The letter, as `dead list` prints it.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Show one letter: why it failed, where in the bytes, and what to do."""
    from headgate.proxy.dead_letters.letter import parse_position

    position = parse_position(letter)
    if position is None:
        raise UsageError(f"{letter!r} is not PARTITION:OFFSET", next_step="headgate dead list prints the positions")

    async def work(letters: "AnyLetters") -> "StoredLetter | None":
        return await letters.find(*position)

    stored = _run(bootstrap_server, kafka_config, topic, work)
    if stored is None:
        raise AnswerIsNo(f"there is no letter {letter} in {topic}", next_step=f"headgate dead list {topic}")
    if json:
        print_json(stored.document(with_payload=True))
        return
    facts = {
        "source": _source(stored),
        "part": stored.letter.part,
        "reason": stored.reason,
        "detail": stored.letter.detail,
        "advice": "-" if stored.letter.reason is None else stored.letter.reason.advice,
        "schema": stored.letter.schema_id if stored.letter.schema_id is not None else stored.letter.schema_guid,
        "application": stored.letter.application,
        "attempt": stored.letter.attempt,
        "failed at": _time(stored.failed_at_ms),
        "state": stored.state,
    }
    for name, value in facts.items():
        typer.echo(f"{name + ':':<13}{'-' if value is None else value}")
    if (dump := stored.hex_dump()) is not None:
        typer.echo(dump)


@app.command("redrive")
def redrive(
    topic: Letters,
    reason: Reasons = None,
    transient: Transient = False,
    schema_id: SchemaId = None,
    application: Application = None,
    since: Since = None,
    until: Until = None,
    value_schema_id: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Replace the schema id of the values, if the schema fits.")
    ] = None,
    value_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="As --value-schema-id, with the latest version of a subject.")
    ] = None,
    patch: Annotated[
        str | None, typer.Option("--patch", metavar="JQ", help="Change the values with a jq program: '.amount = 0'.")
    ] = None,
    logical: LogicalForm = LogicalTypes.AVRO,
    registry: RegistryUrl = DEFAULT_REGISTRY_URL,
    execute: Annotated[bool, typer.Option("--execute", help="Send the letters. Without it, a dry run.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Send letters back to their source topics, each at most once. Run it again to resume.

    The dead-letter topic records which letters were sent.
    """
    from headgate.gateway.kafka.cluster import connection_options
    from headgate.proxy.dead_letters.letter import LetterState
    from headgate.proxy.dead_letters.redriving import LetterSender, TopicClaims, redrive_letters
    from headgate.proxy.dead_letters.tables import DeadLetterTable

    wanted = _filter(reason, schema_id, application, since, until, transient=transient)
    if value_schema_id is not None and value_subject is not None:
        raise UsageError("--value-schema-id and --value-subject both choose a schema", next_step="remove one of them")

    async def work(letters: "AnyLetters") -> "Report":
        async with AsyncExitStack() as stack:
            repair = await _repair(
                stack, value_schema_id, value_subject, patch, registry, is_native=logical is LogicalTypes.NATIVE
            )
            connection = connection_options(bootstrap_server, kafka_config)
            sender = await stack.enter_async_context(LetterSender(connection, BY, repair))
            claims = letters.claims if isinstance(letters, DeadLetterTable) else TopicClaims(letters, sender, BY)
            # Counting reads the letters once more, so only for a bar that is visible.
            total = (await letters.counts()).counts.total() if execute and sys.stderr.isatty() else None
            progress = stack.enter_context(Progress("letters read", total))
            return await redrive_letters(
                letters,
                claims,
                wanted,
                sender,
                execute=execute,
                on_progress=lambda report: progress.update(report.states.total()),
            )

    report = _run(bootstrap_server, kafka_config, topic, work)
    for position, cause in report.refusals:
        say(f"letter {position} not sent: {cause}")
    if json:
        print_json({"executed": execute, **report.document()})
    else:
        print_table(["SOURCE TOPIC", "LETTERS"], report.sources.most_common(), numbers=["LETTERS"])
    if report.claimed:
        say(f"{report.claimed} letters are sent by another command that runs now")
    if interrupted := report.states[LetterState.UNKNOWN]:
        say(f"{interrupted} letters were interrupted before and are not sent again")
    if not execute:
        say("dry run; add --execute to send these letters")
    if report.refused:
        raise CommandError(f"{report.refused} letters were not sent", why="the messages above name each letter")


@app.command("purge")
def purge(
    topic: TopicName,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only letters before this time [default: all].")
    ] = None,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Delete letters from the start of each partition."""
    from headgate.gateway.cli.confirmation import confirm
    from headgate.proxy.dead_letters.tables import DeadLetterTable

    until_ms = _timestamp(until)

    async def work(letters: "AnyLetters") -> int:
        if isinstance(letters, DeadLetterTable):
            raise UsageError("tables are not purged", next_step="delete the rows or files of the table")
        return await letters.purge(until_ms, execute=True)

    if not confirm(f"delete the letters of {topic}{f' before {until}' if until else ''}?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    deleted = _run(bootstrap_server, kafka_config, topic, work)
    say(f"{deleted} records deleted from {topic}")
    if json:
        print_json({"topic": topic, "deleted": deleted})


def _run(
    bootstrap_server: str, kafka_config: str | None, location: str, work: "Callable[[AnyLetters], Awaitable[T]]"
) -> T:
    """Run `work` on the topic or table. Raises KafkaClientError."""
    import asyncio

    from headgate.gateway.kafka.cluster import connect, connection_options
    from headgate.proxy.dead_letters.tables import TableUnreadable, is_table, open_table
    from headgate.proxy.dead_letters.topic import DeadLetterTopic

    async def run() -> T:
        if is_table(location):
            try:
                return await work(open_table(location, BY))
            except TableUnreadable as error:
                raise CommandError(str(error)) from error
        options = connection_options(bootstrap_server, kafka_config)
        async with connect(options) as cluster:
            return await work(DeadLetterTopic(options, cluster, location))

    return asyncio.run(run())


async def _repair(
    stack: AsyncExitStack,
    schema_id: int | None,
    subject: str | None,
    patch: str | None,
    registry_url: str,
    *,
    is_native: bool,
) -> "Repair | None":
    """Raises UsageError."""
    from headgate.gateway.cli.registry_client import open_registry
    from headgate.proxy.dead_letters.jq_patch import InvalidPatch, JqPatch
    from headgate.proxy.dead_letters.repair import Repairs, ValueSchema

    schema = None if schema_id is None and subject is None else ValueSchema(schema_id, subject)
    if schema is None and patch is None:
        return None
    registry = open_registry(registry_url, RuleAction.FAIL)
    stack.push_async_callback(registry.close)
    try:
        program = None if patch is None else await stack.enter_async_context(JqPatch(patch))
    except InvalidPatch as error:
        raise UsageError(str(error)) from error
    return Repairs(registry, schema, program, native_logical=is_native)


def _filter(
    reasons: list[str] | None,
    schema_id: int | None,
    application: str | None,
    since: str | None,
    until: str | None,
    *,
    transient: bool,
) -> "LetterFilter":
    from headgate.proxy.dead_letters.letter import InvalidFilter, LetterFilter, reason_names

    try:
        names = reason_names([*(reasons or ()), *((TRANSIENT,) if transient else ())])
    except InvalidFilter as error:
        raise UsageError(str(error)) from error
    return LetterFilter(names, schema_id, application, _timestamp(since), _timestamp(until))


def _timestamp(text: str | None) -> int | None:
    from headgate.gateway.timestamps import InvalidTimestamp, parse_timestamp

    try:
        return None if text is None else parse_timestamp(text, time.time_ns() // 1_000_000)
    except InvalidTimestamp as error:
        raise UsageError(str(error)) from error


def _source(stored: "StoredLetter") -> str | None:
    origin = stored.letter.origin
    if not origin.topic:
        return None
    return origin.topic if origin.partition is None else f"{origin.topic}-{origin.partition} offset {origin.offset}"


def _time(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_ms / 1000))
