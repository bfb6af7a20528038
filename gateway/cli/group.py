"""`headgate group`: list, describe, reset, delete."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.gateway.cli.cluster import with_cluster
from headgate.gateway.cli.completion import complete_topic
from headgate.gateway.cli.errors import AnswerIsNo, CommandError, UsageError
from headgate.gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, GroupName, Json, KafkaConfig, Yes
from headgate.gateway.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from headgate.kafka_client.admin.groups import Group, ListedGroup
    from headgate.kafka_client.admin.offsets import Place
    from headgate.kafka_client.admin.reset import Move, Target
    from headgate.kafka_client.request_client import RequestClient

app = typer.Typer(help="Consumer groups: list, describe, reset, delete.", no_args_is_help=True)


@app.command("list")
def list_(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    state: Annotated[str | None, typer.Option("--state", help="Only groups in this state, such as Stable.")] = None,
    json: Json = False,
) -> None:
    """List groups and their states."""
    from headgate.kafka_client.admin.groups import list_any_groups

    async def ask(cluster: "RequestClient") -> "list[ListedGroup]":
        return await list_any_groups(cluster)

    groups = [
        group
        for group in with_cluster(bootstrap_server, kafka_config, ask)
        if state is None or (group.state or "").lower() == state.lower()
    ]
    if json:
        print_json([{"name": group.id, "state": group.state, "type": group.type} for group in groups])
        return
    print_table(["GROUP", "STATE", "TYPE"], [[group.id, group.state, group.type] for group in groups])
    if not groups:
        say("no groups")


@app.command("describe")
def describe(
    group: GroupName,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    members: Annotated[bool, typer.Option("--members", "-m", help="Show the members instead of the lag.")] = False,
    json: Json = False,
) -> None:
    """Show a group's state, members, and lag per partition."""
    from headgate.kafka_client.admin.groups import committed_offsets, find_group
    from headgate.kafka_client.admin.offsets import LATEST, list_offsets, still_there

    async def ask(cluster: "RequestClient") -> "tuple[Group, dict[Place, int], dict[Place, int]]":
        found = await find_group(cluster, group)
        committed = await committed_offsets(cluster, group)
        # A topic with committed offsets may have been deleted.
        places = await still_there(cluster, {*committed, *found.owners()})
        return found, committed, await list_offsets(cluster, dict.fromkeys(places, LATEST))

    found, committed, ends = with_cluster(bootstrap_server, kafka_config, ask)
    owners, state = found.owners(), _state(found)
    lines = []
    for place in sorted({*committed, *owners}):
        offset, end, owner = committed.get(place), ends.get(place), owners.get(place)
        lines.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "committed": offset,
                "end": end,
                "lag": None if offset is None or end is None else max(end - offset, 0),
                "client_id": None if owner is None else owner.client_id,
                "host": None if owner is None else owner.host,
                "member_id": None if owner is None else owner.id,
            }
        )
    total = sum(line["lag"] for line in lines if isinstance(line["lag"], int))
    if json:
        document = {
            "name": group,
            "state": state,
            "coordinator": found.coordinator,
            "assignor": found.assignor,
            "lag": total,
            "members": [
                {
                    "member_id": member.id,
                    "instance_id": member.instance_id,
                    "client_id": member.client_id,
                    "host": member.host,
                    "partitions": [{"topic": at.topic, "partition": at.partition} for at in member.assignment],
                }
                for member in found.consumers
            ],
            "partitions": lines,
        }
        print_json(document)
        return
    say(f"{state}, {len(found.consumers)} members, coordinator {found.coordinator}, lag {total}")
    if members:
        print_table(
            ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
            [
                [member.id, member.instance_id, member.client_id, member.host, _places(member.assignment)]
                for member in found.consumers
            ],
        )
        return
    print_table(
        ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"],
        [
            [line[name] for name in ("topic", "partition", "committed", "end", "lag", "client_id", "host")]
            for line in lines
        ],
        numbers=["PARTITION", "COMMITTED", "END", "LAG"],
    )


@app.command("reset")
def reset(
    group: GroupName,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:0,1,...]",
            help="Topic or partitions to reset; repeatable [default: all committed offsets of the group].",
            autocompletion=complete_topic,
        ),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the start of each partition.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of each partition.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="TIME",
            help="To the first record at or after this time (ISO 8601, UTC by default).",
        ),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="By N records; backwards if negative.")
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="TIME", help="To a time in the past, such as 1h30m or PT1H30M ago."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Apply the change. Without it, only show what would change.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Move a group's offsets. Shows before and after; changes nothing without --execute."""
    from headgate.kafka_client.admin.reset import reset_offsets
    from headgate.kafka_client.errors import NothingCommitted, ResourceNotFound

    target = _target(to_earliest, to_latest, to_offset, to_datetime, shift_by, by_duration)
    wanted = places_by_topic(topic or [])

    async def work(cluster: "RequestClient") -> "list[Move]":
        await _check_unused(cluster, group, is_new_welcome=bool(wanted))
        return await reset_offsets(cluster, group, target, wanted, validate_only=not execute)

    try:
        moves = with_cluster(bootstrap_server, kafka_config, work)
    except NothingCommitted as error:
        raise CommandError(str(error), next_step="use an absolute target, such as --to-earliest") from error
    except ResourceNotFound as error:
        raise AnswerIsNo(f"group {group} has committed nothing", next_step="name a topic: --topic TOPIC") from error
    if json:
        print_json(
            {
                "group": group,
                "executed": execute,
                "partitions": [
                    {
                        "topic": move.place.topic,
                        "partition": move.place.partition,
                        "before": move.before,
                        "after": move.after,
                        "lag": move.log_end_offset - move.after,
                        "note": note_on(move),
                    }
                    for move in moves
                ],
            }
        )
    else:
        print_table(
            ["TOPIC", "PARTITION", "BEFORE", "AFTER", "LAG", "NOTE"],
            [
                [
                    move.place.topic,
                    move.place.partition,
                    move.before,
                    move.after,
                    move.log_end_offset - move.after,
                    note_on(move),
                ]
                for move in moves
            ],
            numbers=["PARTITION", "BEFORE", "AFTER", "LAG"],
        )
    say(f"group {group} reset" if execute else "dry run: nothing has changed; add --execute to apply")


@app.command("delete")
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP", help="The names.")],
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Delete groups with the offsets they have committed."""
    from headgate.gateway.cli.confirmation import confirm
    from headgate.kafka_client.admin.groups import delete_group, list_any_groups

    async def look(cluster: "RequestClient") -> None:
        there = {group.id for group in await list_any_groups(cluster)}
        for name in groups:
            if name not in there:
                raise AnswerIsNo(f"there is no group {name}", next_step="headgate group list shows all groups")

    async def work(cluster: "RequestClient") -> None:
        for name in groups:
            await delete_group(cluster, name)
            say(f"group {name} deleted")

    with_cluster(bootstrap_server, kafka_config, look)
    if not confirm(f"delete {', '.join(groups)} with all committed offsets?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    with_cluster(bootstrap_server, kafka_config, work)
    if json:
        print_json([{"name": name, "deleted": True} for name in groups])


async def _check_unused(cluster: "RequestClient", group: str, *, is_new_welcome: bool) -> None:
    """Raises CommandError if the group has members, GroupNotFound if it is missing and `is_new_welcome` is false."""
    from headgate.kafka_client.admin.groups import find_group
    from headgate.kafka_client.errors import GroupNotFound

    try:
        found = await find_group(cluster, group)
    except GroupNotFound:
        # As in Kafka's tool, offsets can be set before the first member joins.
        if not is_new_welcome:
            raise
        say(f"group {group} is new")
        return
    if found.consumers:
        raise CommandError(
            f"group {group} is in use, so its offsets cannot be reset",
            why=f"it is {_state(found)} with {len(found.consumers)} members: {_clients(found)}",
            next_step="stop these consumers; their session must end or expire before the group is empty",
        )


def note_on(move: "Move") -> str:
    """Explains why the new offset differs from the requested one."""
    if move.wanted is None:
        return "no record that recent; moved to the end"
    if move.wanted < move.after:
        return f"{move.wanted} is before the start"
    return f"{move.wanted} is after the end" if move.wanted > move.after else ""


def _target(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    shift_by: int | None,
    by_duration: str | None,
) -> "Target":
    from headgate.gateway.timestamps import InvalidTimestamp, parse_duration, parse_timestamp
    from headgate.kafka_client.admin.reset import Aim, Target

    now_ms = time.time_ns() // 1_000_000
    targets = []
    try:
        if to_earliest:
            targets.append(Target(Aim.EARLIEST))
        if to_latest:
            targets.append(Target(Aim.LATEST))
        if to_offset is not None:
            targets.append(Target(Aim.OFFSET, to_offset))
        if to_datetime is not None:
            targets.append(Target(Aim.TIMESTAMP, parse_timestamp(to_datetime, now_ms)))
        if shift_by is not None:
            targets.append(Target(Aim.SHIFT, shift_by))
        if by_duration is not None:
            targets.append(Target(Aim.TIMESTAMP, now_ms - parse_duration(by_duration)))
    except InvalidTimestamp as error:
        raise UsageError(str(error)) from error
    if len(targets) != 1:
        raise UsageError(
            "exactly one target is required",
            next_step="--to-earliest, --to-latest, --to-offset, --to-datetime, --shift-by or --by-duration",
        )
    return targets[0]


def parse_places(text: str) -> tuple[str, list[int]]:
    """`orders` or `orders:0,2`. Raises UsageError."""
    topic, colon, numbers = text.partition(":")
    try:
        partitions = [int(number) for number in numbers.split(",")] if colon else []
    except ValueError as error:
        raise UsageError(f"--topic {text!r} is not TOPIC or TOPIC:0,1", next_step="--topic orders:0,2") from error
    if not topic or any(partition < 0 for partition in partitions):
        raise UsageError(f"--topic {text!r} is not TOPIC or TOPIC:0,1", next_step="--topic orders:0,2")
    return topic, partitions


def places_by_topic(texts: list[str]) -> dict[str, list[int]]:
    """An empty list means all partitions. Raises UsageError."""
    wanted: dict[str, list[int]] = {}
    for topic, partitions in map(parse_places, texts):
        before = wanted.get(topic)
        is_whole = not partitions or before == []
        wanted[topic] = [] if is_whole else [*(before or []), *partitions]
    return wanted


def _clients(group: "Group") -> str:
    return ", ".join(f"{member.client_id} at {member.host}" for member in group.consumers[:3]) or "unknown"


def _state(group: "Group") -> str:
    """The state in Kafka's spelling: PreparingRebalance."""
    return "".join(word.capitalize() for word in group.state.split("_"))


def _places(places: "tuple[Place, ...]") -> str:
    return " ".join(f"{place.topic}:{place.partition}" for place in places)
