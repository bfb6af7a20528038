"""`headgate group`: list, describe, reset, delete."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.completion import complete_topic
from gateway.cli.errors import AnswerIsNo, CommandError, UsageError
from gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, GroupName, Json, Yes
from gateway.cli.output import print_json, print_table, say
from gateway.cli.running import with_cluster

if TYPE_CHECKING:
    from gateway.kafka.cluster import Cluster
    from gateway.kafka.groups import Committed, Group, ListedGroup
    from gateway.kafka.offsets import Place
    from gateway.kafka.reset import Move, Target

app = typer.Typer(help="Consumer groups: list, describe, reset, delete.", no_args_is_help=True)

EMPTY_STATES = frozenset({"Empty", "Dead"})


@app.command("list")
def list_(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    state: Annotated[str | None, typer.Option("--state", help="Only groups in this state, such as Stable.")] = None,
    json: Json = False,
) -> None:
    """List groups and their states."""
    from gateway.kafka.groups import list_groups

    async def ask(cluster: "Cluster") -> "list[ListedGroup]":
        return await list_groups(cluster)

    groups = [
        group
        for group in with_cluster(bootstrap_server, ask)
        if state is None or (group.state or "").lower() == state.lower()
    ]
    if json:
        print_json([{"name": group.name, "state": group.state, "type": group.type} for group in groups])
        return
    print_table(["GROUP", "STATE", "TYPE"], [[group.name, group.state, group.type] for group in groups])
    if not groups:
        say("no groups")


@app.command("describe")
def describe(
    group: GroupName,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    members: Annotated[bool, typer.Option("--members", "-m", help="Show the members instead of the lag.")] = False,
    json: Json = False,
) -> None:
    """Show a group's state, members, and lag per partition."""
    from gateway.kafka.groups import committed_offsets, describe_group
    from gateway.kafka.offsets import bounds
    from gateway.kafka.topics import list_topics

    async def ask(cluster: "Cluster") -> "tuple[Group, dict[Place, Committed], dict[Place, tuple[int, int]]]":
        found = await describe_group(cluster, group)
        committed = await committed_offsets(cluster, group)
        places = {*committed, *(place for member in found.members for place in member.assignment)}
        # What it committed may be of a topic that is gone since.
        there = {
            (topic.name, partition.index) for topic in await list_topics(cluster) for partition in topic.partitions
        }
        return (
            found,
            committed,
            await bounds(cluster, sorted(place for place in places if (place.topic, place.partition) in there)),
        )

    found, committed, limits = with_cluster(bootstrap_server, ask)
    owners = {place: member for member in found.members for place in member.assignment}
    lines = []
    for place in sorted({*committed, *owners}):
        mark, limit, owner = committed.get(place), limits.get(place), owners.get(place)
        offset, end = (None if mark is None else mark.offset), (None if limit is None else limit[1])
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
            "state": found.state,
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
                for member in found.members
            ],
            "partitions": lines,
        }
        print_json(document)
        return
    say(f"{found.state}, {len(found.members)} members, coordinator {found.coordinator}, lag {total}")
    if members:
        print_table(
            ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
            [
                [member.id, member.instance_id, member.client_id, member.host, _places(member.assignment)]
                for member in found.members
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
            help="What to reset; repeatable [default: all that the group has committed].",
            autocompletion=complete_topic,
        ),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the start of each partition.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of each partition.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To the first record not older (ISO 8601, UTC by default)."),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="By so many records; back if negative.")
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="TIME", help="To so long ago, such as 1h30m or PT1H30M.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without, only show what would change.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Move a group's offsets. Shows before and after; changes nothing without --execute."""
    from gateway.kafka.groups import commit_offsets
    from gateway.kafka.reset import NothingCommitted

    target = _target(to_earliest, to_latest, to_offset, to_datetime, shift_by, by_duration)
    wanted = [parse_places(text) for text in topic or []]

    async def work(cluster: "Cluster") -> "list[Move]":
        moves = await _moves(cluster, group, target, wanted)
        if execute:
            await commit_offsets(cluster, group, {move.place: move.after for move in moves})
        return moves

    try:
        moves = with_cluster(bootstrap_server, work)
    except NothingCommitted as error:
        raise CommandError(str(error), next_step="reset it to an absolute place, such as --to-earliest") from error
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
                        "lag": move.lag,
                        "note": move.note,
                    }
                    for move in moves
                ],
            }
        )
    else:
        print_table(
            ["TOPIC", "PARTITION", "BEFORE", "AFTER", "LAG", "NOTE"],
            [[move.place.topic, move.place.partition, move.before, move.after, move.lag, move.note] for move in moves],
            numbers=["PARTITION", "BEFORE", "AFTER", "LAG"],
        )
    say(f"group {group} reset" if execute else "dry run: nothing has changed; --execute does it")


@app.command("delete")
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP", help="The names.")],
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Delete groups with the offsets they have committed."""
    from gateway.cli.asking import confirm
    from gateway.kafka.errors import UnknownGroup
    from gateway.kafka.groups import delete_group, list_groups

    async def look(cluster: "Cluster") -> None:
        there = {group.name for group in await list_groups(cluster)}
        for name in groups:
            if name not in there:
                raise UnknownGroup(name)

    async def work(cluster: "Cluster") -> None:
        for name in groups:
            await delete_group(cluster, name)
            say(f"group {name} deleted")

    with_cluster(bootstrap_server, look)
    if not confirm(f"delete {', '.join(groups)} with all committed offsets?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    with_cluster(bootstrap_server, work)
    if json:
        print_json([{"name": name, "deleted": True} for name in groups])


async def _moves(cluster: "Cluster", group: str, target: "Target", wanted: list[tuple[str, list[int]]]) -> "list[Move]":
    from gateway.kafka.errors import UnknownGroup
    from gateway.kafka.groups import committed_offsets, describe_group
    from gateway.kafka.offsets import Place, bounds, list_offsets, places_of
    from gateway.kafka.reset import Aim, plan
    from gateway.kafka.topics import find_topics

    try:
        found = await describe_group(cluster, group)
        if found.state not in EMPTY_STATES:
            raise CommandError(
                f"group {group} is in use, so its offsets cannot be reset",
                why=f"it is {found.state} with {len(found.members)} members: {_clients(found)}",
                next_step="stop these consumers; their session must end or expire before the group is empty",
            )
    except UnknownGroup:
        # As with Kafka's own tool, a group can be given its offsets before its first member comes.
        if not wanted:
            raise
        say(f"group {group} is new")
    committed = {place: mark.offset for place, mark in (await committed_offsets(cluster, group)).items()}
    places: list[Place] = []
    for name, partitions in wanted:
        whole = places_of(await find_topics(cluster, [name]))
        places += [Place(name, index) for index in partitions] if partitions else whole
    places = sorted(set(places or ([] if wanted else committed)))
    if not places:
        raise AnswerIsNo(f"group {group} has committed nothing", next_step="name a topic: --topic TOPIC")
    limits = await bounds(cluster, places)
    at_time: dict[Place, int] = {}
    if target.aim is Aim.TIME:
        at_time = await list_offsets(cluster, dict.fromkeys(places, target.number))
    return plan(target, places, committed, limits, at_time)


def _target(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    shift_by: int | None,
    by_duration: str | None,
) -> "Target":
    from gateway.kafka.reset import Aim, Target
    from gateway.moments import NotAMoment, parse_duration, parse_moment

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
            targets.append(Target(Aim.TIME, parse_moment(to_datetime, now_ms)))
        if shift_by is not None:
            targets.append(Target(Aim.SHIFT, shift_by))
        if by_duration is not None:
            targets.append(Target(Aim.TIME, now_ms - parse_duration(by_duration)))
    except NotAMoment as error:
        raise UsageError(str(error)) from error
    if len(targets) != 1:
        raise UsageError(
            "say where to, once",
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


def _clients(group: "Group") -> str:
    return ", ".join(f"{member.client_id} at {member.host}" for member in group.members[:3]) or "unknown"


def _places(places: "tuple[Place, ...]") -> str:
    return " ".join(f"{place.topic}:{place.partition}" for place in places)
