"""`headgate topic`: list, create, describe, alter, delete."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.gateway.cli import transfer
from headgate.gateway.cli.cluster import with_cluster
from headgate.gateway.cli.errors import AnswerIsNo, UsageError
from headgate.gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, Json, KafkaConfig, TopicName, Yes
from headgate.gateway.cli.output import print_json, print_table, say, size_text

if TYPE_CHECKING:
    from headgate.kafka_client.admin.configs import Config
    from headgate.kafka_client.admin.offsets import Place
    from headgate.kafka_client.admin.topics import Topic
    from headgate.kafka_client.request_client import RequestClient

app = typer.Typer(help="Topics: list, create, describe, alter, delete, export, import.", no_args_is_help=True)
app.command("export")(transfer.export)
app.command("import")(transfer.import_)

ValidateOnly = Annotated[bool, typer.Option("--validate-only", help="Validate the request without changing anything.")]


@app.command("list")
def list_(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    json: Json = False,
) -> None:
    """List topics with their partitions and sizes."""
    from headgate.kafka_client.admin.offsets import places_of
    from headgate.kafka_client.admin.sizes import partition_sizes
    from headgate.kafka_client.admin.topics import list_topics

    async def ask(cluster: "RequestClient") -> "tuple[list[Topic], dict[Place, int]]":
        return await list_topics(cluster), await partition_sizes(cluster)

    topics, sizes = with_cluster(bootstrap_server, kafka_config, ask)
    shown = [topic for topic in topics if internal or not topic.is_internal]
    totals = {topic.name: sum(sizes.get(place, 0) for place in places_of(topic)) if sizes else None for topic in shown}
    if json:
        print_json(
            [
                {
                    "name": topic.name,
                    "partitions": len(topic.partitions),
                    "replication_factor": topic.replication_factor,
                    "internal": topic.is_internal,
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
        say("no topics; create one with headgate topic create")


@app.command("create")
def create(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The names.")],
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Number of partitions [default: the cluster's].")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", "-r", min=1, help="Replication factor [default: the cluster's].")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic config; repeatable.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Succeed if the topic exists.")] = False,
    validate_only: ValidateOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Create topics."""
    from kio.schema.errors import ErrorCode

    from headgate.gateway.cli.faults import too_many_replicas
    from headgate.kafka_client.admin.topics import NewTopic, create_topic, describe_cluster
    from headgate.kafka_client.errors import InvalidRequest

    configs = dict(_pair(pair, "--config") for pair in config or [])
    created: dict[str, bool] = {}

    async def work(cluster: "RequestClient") -> None:
        for name in topics:
            try:
                wanted = NewTopic(name, partitions, replicas, configs=configs)
                await create_topic(cluster, wanted, validate_only=validate_only)
                created[name] = not validate_only
                say(f"topic {name} {'could be created' if validate_only else 'created'}")
            except InvalidRequest as error:
                if error.kafka_code is ErrorCode.invalid_replication_factor:
                    raise too_many_replicas(error, len((await describe_cluster(cluster)).brokers)) from error
                if not if_not_exists or error.kafka_code is not ErrorCode.topic_already_exists:
                    raise
                created[name] = False
                say(f"topic {name} already exists")

    with_cluster(bootstrap_server, kafka_config, work)
    if json:
        print_json([{"name": name, "created": is_new} for name, is_new in created.items()])


@app.command("describe")
def describe(
    topic: TopicName,
    all: Annotated[
        bool, typer.Option("--all", "-a", help="Show every config, not only those that the topic overrides.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Show a topic's partitions, offsets, sizes and configs."""
    from headgate.kafka_client.admin.configs import Resource, ResourceType, describe_one
    from headgate.kafka_client.admin.offsets import Place, bounds, places_of
    from headgate.kafka_client.admin.sizes import partition_sizes
    from headgate.kafka_client.admin.topics import find_topic

    async def ask(
        cluster: "RequestClient",
    ) -> "tuple[Topic, list[Config], dict[Place, tuple[int, int]], dict[Place, int]]":
        found = await find_topic(cluster, topic)
        return (
            found,
            await describe_one(cluster, Resource(ResourceType.TOPIC, topic)),
            await bounds(cluster, places_of(found)),
            await partition_sizes(cluster, [found]),
        )

    found, configs, offsets, sizes = with_cluster(bootstrap_server, kafka_config, ask)
    chosen = [config for config in configs if all or _is_overridden(config)]
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
                "size_bytes": sizes.get(Place(topic, each.index)),
            }
        )
    if json:
        document = {
            "name": topic,
            "internal": found.is_internal,
            "partitions": partitions,
            "configs": [
                {
                    "name": config.name,
                    "value": config.value,
                    "default": _default(config),
                    "overridden": _is_overridden(config),
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
            size_text(sizes.get(Place(topic, found.partitions[at].index))),
        ]
        for at, each in enumerate(partitions)
    ]
    print_table(headings, rows, numbers=["PARTITION", "LEADER", "START", "END", "SIZE"])
    if chosen:
        print()
        print_table(
            ["CONFIG", "VALUE", "DEFAULT", "SET BY"],
            [
                [each.name, _shown(each), _default(each), "topic" if _is_overridden(each) else "default"]
                for each in chosen
            ],
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
        list[str] | None, typer.Option("--subtract", metavar="NAME=VALUE", help="Remove from a list; repeatable.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", "-d", metavar="NAME", help="Reset to the default; repeatable."),
    ] = None,
    validate_only: ValidateOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Add partitions to a topic, or change its configs."""
    from headgate.kafka_client.admin.configs import Change, Operation, Resource, ResourceType
    from headgate.kafka_client.admin.configs import alter as alter_configs
    from headgate.kafka_client.admin.topics import add_partitions, find_topic

    changes: list[Change] = []
    for option, operation, pairs in (
        ("--config", Operation.SET, config),
        ("--append", Operation.APPEND, append),
        ("--subtract", Operation.SUBTRACT, subtract),
    ):
        changes += [Change(name, operation, value) for name, value in (_pair(each, option) for each in pairs or [])]
    changes += [Change(name, Operation.DELETE, None) for name in delete_config or []]
    if partitions is None and not changes:
        raise UsageError("nothing to change", next_step="give --partitions, --config, --append, --subtract or -d")

    async def work(cluster: "RequestClient") -> None:
        await find_topic(cluster, topic)
        # Configs first: they are validated together, and added partitions cannot be removed.
        if changes:
            await alter_configs(cluster, Resource(ResourceType.TOPIC, topic), changes, validate_only=validate_only)
        if partitions is not None:
            await add_partitions(cluster, topic, partitions, validate_only=validate_only)

    with_cluster(bootstrap_server, kafka_config, work)
    say(f"topic {topic} {'could be altered' if validate_only else 'altered'}")
    if json:
        print_json({"name": topic, "altered": not validate_only})


@app.command("delete")
def delete(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="The names.")],
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka_config: KafkaConfig = None,
    json: Json = False,
) -> None:
    """Delete topics with all their records."""
    from headgate.gateway.cli.confirmation import confirm
    from headgate.kafka_client.admin.topics import delete_topic, find_topics

    async def look(cluster: "RequestClient") -> None:
        await find_topics(cluster, topics)

    async def work(cluster: "RequestClient") -> None:
        for name in topics:
            await delete_topic(cluster, name)
            say(f"topic {name} deleted")

    with_cluster(bootstrap_server, kafka_config, look)
    if not confirm(f"delete {', '.join(topics)} with all records?", yes=yes):
        raise AnswerIsNo("nothing deleted")
    with_cluster(bootstrap_server, kafka_config, work)
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
    return "(hidden)" if config.is_sensitive else config.value


def _is_overridden(config: "Config") -> bool:
    return config.source.name == "DYNAMIC_TOPIC_CONFIG"


def _default(config: "Config") -> str | None:
    """The value without the topic's override, or None if the cluster does not return it."""
    inherited = (each.value for each in config.synonyms if each.source.name != "DYNAMIC_TOPIC_CONFIG")
    return next(inherited, None)
