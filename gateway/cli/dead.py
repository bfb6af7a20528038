"""`headgate dead`: list, show, count, re-drive and purge dead letters."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from headgate.gateway.cli.errors import AnswerIsNo, CommandError, UsageError
from headgate.gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, Json, KafkaConfig, TopicName, Yes
from headgate.gateway.cli.output import Progress, print_json, print_json_line, print_table, say

if TYPE_CHECKING:
    from headgate.gateway.kafka.dead_letter_topic import DeadLetterTopic, LetterFilter, StoredLetter
    from headgate.kafka_client.request_client import RequestClient

app = typer.Typer(help="Dead letters: list, show, count, redrive, purge.", no_args_is_help=True)

T = TypeVar("T")
TRANSIENT = "REGISTRY_UNAVAILABLE"
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
    topic: TopicName,
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
    """List the letters of a dead-letter topic."""
    wanted = _filter(reason, schema_id, application, since, until, transient=transient)

    async def work(letters: "DeadLetterTopic") -> "list[StoredLetter]":
        found = []
        async for stored in letters.read(wanted.accepts):
            found.append(stored)
            if len(found) == count:
                break
        return found

    found = _run(bootstrap_server, kafka_config, topic, work)
    if json:
        for stored in found:
            print_json_line(_document(stored))
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
    topic: TopicName,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Count letters by reason, schema and state."""

    async def work(letters: "DeadLetterTopic") -> "Counter[tuple[str, int | None, str]]":
        counts: Counter[tuple[str, int | None, str]] = Counter()
        async for stored in letters.read(lambda _: True):
            counts[stored.reason, stored.letter.schema_id, str(stored.state)] += 1
        return counts

    counts = _run(bootstrap_server, kafka_config, topic, work).most_common()
    if json:
        names = ("reason", "schema_id", "state")
        print_json([{**dict(zip(names, key, strict=True)), "letters": number} for key, number in counts])
        return
    print_table(
        ["REASON", "SCHEMA", "STATE", "LETTERS"],
        [[*key, number] for key, number in counts],
        numbers=["SCHEMA", "LETTERS"],
    )


@app.command("show")
def show(
    topic: TopicName,
    letter: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="The letter, as `dead list` prints it.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Show one letter: why it failed, where in the bytes, and what to do."""
    from headgate.gateway.records.hex_dump import fault_position, hex_dump

    partition, _, offset = letter.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise UsageError(f"{letter!r} is not PARTITION:OFFSET", next_step="headgate dead list prints the positions")

    async def work(letters: "DeadLetterTopic") -> "StoredLetter | None":
        return await letters.find(int(partition), int(offset))

    stored = _run(bootstrap_server, kafka_config, topic, work)
    if stored is None:
        raise AnswerIsNo(f"there is no letter {letter} in {topic}", next_step=f"headgate dead list {topic}")
    payload = stored.record.key if stored.letter.part == "key" else stored.record.value
    if json:
        print_json(_document(stored, payload))
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
    if payload is not None:
        typer.echo(hex_dump(payload, fault_position(stored.letter, payload)))


@app.command("redrive")
def redrive(
    topic: TopicName,
    reason: Reasons = None,
    transient: Transient = False,
    schema_id: SchemaId = None,
    application: Application = None,
    since: Since = None,
    until: Until = None,
    execute: Annotated[bool, typer.Option("--execute", help="Send the letters. Without it, a dry run.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Send letters back to their source topics, each at most once. Run it again to resume.

    The dead-letter topic records which letters were sent.
    """
    from headgate.gateway.kafka.dead_letter_topic import LetterState
    from headgate.gateway.kafka.redriving import BATCH_LETTERS, Redriving

    wanted = _filter(reason, schema_id, application, since, until, transient=transient)
    states: Counter[str] = Counter()
    sources: Counter[str] = Counter()

    def refused(stored: "StoredLetter", why: str) -> None:
        say(f"letter {stored.position} not sent: {why}")

    async def work(letters: "DeadLetterTopic") -> tuple[int, int]:
        connection = letters.connection
        batch: list[StoredLetter] = []
        with Progress("letters sent") as progress:
            async with Redriving(connection, topic, "headgate dead redrive", on_refused=refused) as redriving:
                async for stored in letters.read(wanted.accepts):
                    states[stored.state] += 1
                    if stored.state is not LetterState.WAITING:
                        continue
                    sources[stored.letter.origin.topic or "-"] += 1
                    if execute:
                        batch.append(stored)
                    if len(batch) == BATCH_LETTERS:
                        await redriving.send(batch)
                        batch.clear()
                        progress.update(redriving.redriven)
                if batch:
                    await redriving.send(batch)
                return redriving.redriven, redriving.refused

    sent, not_sent = _run(bootstrap_server, kafka_config, topic, work)
    if json:
        print_json({"executed": execute, "sent": sent, "refused": not_sent, "states": states, "sources": sources})
    else:
        print_table(["SOURCE TOPIC", "LETTERS"], sources.most_common(), numbers=["LETTERS"])
    if states[LetterState.UNKNOWN]:
        say(f"{states[LetterState.UNKNOWN]} letters were interrupted before and are not sent again")
    if not execute:
        say("dry run; add --execute to send these letters")
    if not_sent:
        raise CommandError(f"{not_sent} letters were not sent", why="the messages above name each letter")


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
    from headgate.gateway.cli.cluster import with_cluster
    from headgate.gateway.cli.confirmation import confirm
    from headgate.kafka_client.admin.offsets import bounds, list_offsets, places_of
    from headgate.kafka_client.admin.offsets import purge as delete_records
    from headgate.kafka_client.admin.topics import find_topic

    until_ms = _timestamp(until)

    async def work(cluster: "RequestClient") -> int:
        places = places_of(await find_topic(cluster, topic))
        limits = await bounds(cluster, places)
        before = {place: end for place, (_, end) in limits.items()}
        if until_ms is not None:
            found = await list_offsets(cluster, dict.fromkeys(places, until_ms))
            before = {place: found[place] if found[place] >= 0 else before[place] for place in places}
        await delete_records(cluster, before)
        return sum(max(before[place] - start, 0) for place, (start, _) in limits.items())

    if not confirm(f"delete the letters of {topic}{f' before {until}' if until else ''}?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    deleted = with_cluster(bootstrap_server, kafka_config, work)
    say(f"{deleted} records deleted from {topic}")
    if json:
        print_json({"topic": topic, "deleted": deleted})


def _run(
    bootstrap_server: str, kafka_config: str | None, topic: str, work: "Callable[[DeadLetterTopic], Awaitable[T]]"
) -> T:
    """Run `work` on the topic. Raises KafkaClientError."""
    import asyncio

    from headgate.gateway.kafka.cluster import connection_options
    from headgate.gateway.kafka.dead_letter_topic import DeadLetterTopic

    async def run() -> T:
        return await work(DeadLetterTopic(connection_options(bootstrap_server, kafka_config), topic))

    return asyncio.run(run())


def _filter(
    reasons: list[str] | None,
    schema_id: int | None,
    application: str | None,
    since: str | None,
    until: str | None,
    *,
    transient: bool,
) -> "LetterFilter":
    from headgate.gateway.kafka.dead_letter_topic import LetterFilter
    from headgate.serdes import Reason

    names = {name.upper() for name in reasons or []} | ({TRANSIENT} if transient else set())
    if unknown := sorted(names - set(Reason.__members__)):
        raise UsageError(f"{unknown[0]} is not a reason", next_step=f"use one of {', '.join(Reason.__members__)}")
    return LetterFilter(frozenset(names), schema_id, application, _timestamp(since), _timestamp(until))


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


def _document(stored: "StoredLetter", payload: bytes | None = None) -> dict[str, object]:
    from base64 import b64encode

    letter = stored.letter
    return {
        "partition": stored.record.partition,
        "offset": stored.record.offset,
        "source": {
            "topic": letter.origin.topic or None,
            "partition": letter.origin.partition,
            "offset": letter.origin.offset,
        },
        "part": letter.part,
        "reason": None if letter.reason is None else letter.reason.name,
        "detail": letter.detail,
        "schema_id": letter.schema_id,
        "application": letter.application,
        "attempt": letter.attempt,
        "failed_at": stored.failed_at_ms,
        "state": str(stored.state),
        "convention": letter.convention,
        **({} if payload is None else {"payload_base64": b64encode(payload).decode()}),
    }
