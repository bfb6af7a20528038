"""`headgate topic`: list, create, describe, alter, delete."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.errors import AnswerIsNo, UsageError
from gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, Json, TopicName, Yes
from gateway.cli.output import print_json, print_table, say, size_text
from gateway.cli.running import with_cluster

if TYPE_CHECKING:
    from gateway.kafka.cluster import Cluster
    from gateway.kafka.topics import Config, Topic

app = typer.Typer(help="Topics: list, create, describe, alter, delete.", no_args_is_help=True)

ValidateOnly = Annotated[bool, typer.Option("--validate-only", help="Ask whether it would work; change nothing.")]


@app.command("list")
def list_(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    internal: Annotated[bool, typer.Option("--internal", help="Show the cluster's own topics too.")] = False,
    json: Json = False,
) -> None:
    """List topics with their partitions and sizes."""
    from gateway.kafka.topics import list_topics, partition_sizes

    async def ask(cluster: "Cluster") -> "tuple[list[Topic], dict[tuple[str, int], int]]":
        return await list_topics(cluster), await partition_sizes(cluster)

    topics, sizes = with_cluster(bootstrap_server, ask)
    shown = [topic for topic in topics if internal or not topic.internal]
    totals = {
        topic.name: sum(sizes.get((topic.name, each.index), 0) for each in topic.partitions) if sizes else None
        for topic in shown
    }
    if json:
        print_json(
            [
                {
                    "name": topic.name,
                    "partitions": len(topic.partitions),
                    "replication_factor": topic.replication_factor,
                    "internal": topic.internal,
                    "size_bytes": totals[topic.name],
                }
                for topic in shown
            ]
        )
        return
    rows = [
        [topic.name, len(topic.partitions), topic.replication_factor, size_text(totals[topic.name])] for topic in shown
    ]
    print_table(["TOPIC", "PARTITIONS", "REPLICAS", "SIZE"], rows, numbers=["PARTITIONS", "REPLICAS", "SIZE"])
    if not shown:
        say("no topics yet; headgate topic create makes one")


@app.command("create")
def create(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The names.")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="How many [default: the cluster's].")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", "-r", min=1, help="Copies of each [default: the cluster's].")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic config; repeatable.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Be content if it is there already.")] = False,
    validate_only: ValidateOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Create topics."""
    from kio.schema.errors import ErrorCode

    from gateway.kafka.errors import Refused
    from gateway.kafka.topics import create_topic

    configs = dict(_pair(pair, "--config") for pair in config or [])
    created: dict[str, bool] = {}

    async def work(cluster: "Cluster") -> None:
        for name in topics:
            try:
                await create_topic(
                    cluster,
                    name,
                    partitions=partitions,
                    replication_factor=replicas,
                    configs=configs,
                    validate_only=validate_only,
                )
                created[name] = not validate_only
                say(f"topic {name} {'could be created' if validate_only else 'created'}")
            except Refused as error:
                if not if_not_exists or error.code is not ErrorCode.topic_already_exists:
                    raise
                created[name] = False
                say(f"topic {name} is there already")

    with_cluster(bootstrap_server, work)
    if json:
        print_json([{"name": name, "created": is_new} for name, is_new in created.items()])


@app.command("describe")
def describe(
    topic: TopicName,
    all: Annotated[
        bool, typer.Option("--all", "-a", help="Show every config, not only those that the topic overrides.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Show a topic's partitions, offsets, sizes and configs."""
    from gateway.kafka.offsets import Place, bounds, places_of
    from gateway.kafka.topics import describe_configs, find_topics, partition_sizes

    async def ask(
        cluster: "Cluster",
    ) -> "tuple[Topic, list[Config], dict[Place, tuple[int, int]], dict[tuple[str, int], int]]":
        (found,) = await find_topics(cluster, [topic])
        return (
            found,
            await describe_configs(cluster, topic),
            await bounds(cluster, places_of([found])),
            await partition_sizes(cluster, [found]),
        )

    found, configs, offsets, sizes = with_cluster(bootstrap_server, ask)
    chosen = [config for config in configs if all or config.overridden]
    partitions = []
    for each in found.partitions:
        start, end = offsets[Place(topic, each.index)]
        partitions.append(
            {
                "partition": each.index,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "start_offset": start,
                "end_offset": end,
                "size_bytes": sizes.get((topic, each.index)),
            }
        )
    if json:
        document = {
            "name": topic,
            "internal": found.internal,
            "partitions": partitions,
            "configs": [
                {
                    "name": config.name,
                    "value": config.value,
                    "default": config.default,
                    "overridden": config.overridden,
                }
                for config in chosen
            ],
        }
        print_json(document)
        return
    headings = ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END", "SIZE"]
    rows = [
        [
            each["partition"],
            each["leader"],
            _numbers(found.partitions[at].replicas),
            _numbers(found.partitions[at].in_sync),
            each["start_offset"],
            each["end_offset"],
            size_text(sizes.get((topic, found.partitions[at].index))),
        ]
        for at, each in enumerate(partitions)
    ]
    print_table(headings, rows, numbers=["PARTITION", "LEADER", "START", "END", "SIZE"])
    if chosen:
        print()
        print_table(
            ["CONFIG", "VALUE", "DEFAULT", "SET BY"],
            [[each.name, _shown(each), each.default, "topic" if each.overridden else "default"] for each in chosen],
        )
    if not all:
        say(f"{len(configs) - len(chosen)} more configs have their defaults; --all shows them")


@app.command("alter")
def alter(
    topic: TopicName,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="The new total; it can only grow.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="Set a config; repeatable.")
    ] = None,
    append: Annotated[
        list[str] | None, typer.Option("--append", metavar="NAME=VALUE", help="Add to a list; repeatable.")
    ] = None,
    subtract: Annotated[
        list[str] | None, typer.Option("--subtract", metavar="NAME=VALUE", help="Take from a list; repeatable.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", "-d", metavar="NAME", help="Back to the default; repeatable."),
    ] = None,
    validate_only: ValidateOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Add partitions to a topic, or change its configs."""
    from gateway.kafka.topics import ConfigChange, ConfigOperation, add_partitions, alter_configs, find_topics

    changes: list[ConfigChange] = []
    for option, operation, pairs in (
        ("--config", ConfigOperation.SET, config),
        ("--append", ConfigOperation.APPEND, append),
        ("--subtract", ConfigOperation.SUBTRACT, subtract),
    ):
        changes += [
            ConfigChange(name, operation, value) for name, value in (_pair(each, option) for each in pairs or [])
        ]
    changes += [ConfigChange(name, ConfigOperation.DELETE, None) for name in delete_config or []]
    if partitions is None and not changes:
        raise UsageError("nothing to change", next_step="give --partitions, --config, --append, --subtract or -d")

    async def work(cluster: "Cluster") -> None:
        await find_topics(cluster, [topic])
        # Configs first: they are checked as one, and more partitions cannot be taken back.
        if changes:
            await alter_configs(cluster, topic, changes, validate_only=validate_only)
        if partitions is not None:
            await add_partitions(cluster, topic, partitions, validate_only=validate_only)

    with_cluster(bootstrap_server, work)
    say(f"topic {topic} {'could be altered' if validate_only else 'altered'}")
    if json:
        print_json({"name": topic, "altered": not validate_only})


@app.command("delete")
def delete(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The names.")],
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Json = False,
) -> None:
    """Delete topics with all their records."""
    from gateway.cli.asking import confirm
    from gateway.kafka.topics import delete_topic, find_topics

    async def look(cluster: "Cluster") -> None:
        await find_topics(cluster, topics)

    async def work(cluster: "Cluster") -> None:
        for name in topics:
            await delete_topic(cluster, name)
            say(f"topic {name} deleted")

    with_cluster(bootstrap_server, look)
    if not confirm(f"delete {', '.join(topics)} with all records?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    with_cluster(bootstrap_server, work)
    if json:
        print_json([{"name": name, "deleted": True} for name in topics])


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{option} {text!r} is not NAME=VALUE", next_step=f"{option} retention.ms=86400000")
    return name, value


def _numbers(nodes: tuple[int, ...]) -> str:
    return ",".join(str(node) for node in nodes)


def _shown(config: "Config") -> str | None:
    return "(hidden)" if config.sensitive else config.value
