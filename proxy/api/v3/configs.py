"""Configs of the cluster (`broker-configs`), of one broker, of one topic, of all topics."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin import configs
from headgate.kafka_client.admin.configs import Change, Config, Operation, Resource, ResourceType
from headgate.kafka_client.admin.topics import describe_cluster, find_topic, find_topics, list_topics
from headgate.kafka_client.errors import ResourceNotFound
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.requests import Body, body_v3, number_in_path, response_type_v3
from headgate.proxy.api.v3.resources import V3, Links, Row, no_content, respond, v3_of
from headgate.proxy.errors import BadRequest

router = APIRouter(prefix="/v3/clusters/{cluster_id}", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]
_CLUSTER = Resource(ResourceType.BROKER, "")


class UpdateConfig(Body):
    value: str | None = None


class Alteration(Body):
    name: str
    value: str | None = None
    operation: Literal["SET", "DELETE", "APPEND", "SUBTRACT", "set", "delete", "append", "subtract"] | None = None

    def change(self) -> Change:
        operation = Operation[(self.operation or "SET").upper()]
        return Change(self.name, operation, None if operation is Operation.DELETE else self.value)


class AlterConfigs(Body):
    data: list[Alteration]
    validate_only: bool | None = None

    def changes(self) -> list[Change]:
        return _distinct([each.change() for each in self.data], "data")


class AlterTopic(Body):
    topic_name: str
    configs: list[Alteration]


class AlterTopics(Body):
    data: list[AlterTopic]
    validate_only: bool | None = None


async def resource_of(v3: Context, request: Request) -> Resource:
    """The existing topic or broker that the path names, or the cluster-wide default."""
    if (topic_name := request.path_params.get("topic_name")) is not None:
        return _topic_resource((await find_topic(v3.cluster, topic_name)).name)
    if (broker_id := request.path_params.get("broker_id")) is not None:
        return _broker_resource((await describe_cluster(v3.cluster)).broker(number_in_path(broker_id)).id)
    return _CLUSTER


Found = Annotated[Resource, Depends(resource_of)]


@router.get("/brokers/-/configs")
async def list_all_broker_configs(v3: Context) -> Response:
    view = await describe_cluster(v3.cluster)
    found = await configs.describe(v3.cluster, [_broker_resource(broker.id) for broker in view.brokers])
    rows = [_row(v3.links, resource, each) for resource, listed in found.items() for each in listed]
    return respond(v3.links.collection("KafkaBrokerConfigList", ("brokers", "-", "configs"), rows))


@router.get("/topics/-/configs")
async def list_all_topic_configs(v3: Context) -> Response:
    resources = [_topic_resource(topic.name) for topic in await list_topics(v3.cluster)]
    found = await configs.describe(v3.cluster, resources) if resources else {}
    rows = [_row(v3.links, resource, each) for resource in resources for each in found.get(resource, ())]
    return respond(v3.links.collection("KafkaTopicConfigList", ("topics", "-", "configs"), rows))


@router.post("/topics/-/configs:alter")
async def alter_configs_of_topics(v3: Context, request: Request) -> Response:
    """Alters topics one by one. 207 lists the topics whose changes failed, 204 means that all succeeded.

    Unknown topics and config names fail the request with 404 before any change.
    """
    body = await body_v3(request, AlterTopics)
    wanted: dict[Resource, Sequence[Change]] = {}
    for index, row in enumerate(body.data):
        resource = _topic_resource(row.topic_name)
        if resource in wanted:
            raise BadRequest(f"data[{index}].topic_name: {row.topic_name} occurs twice.")
        wanted[resource] = _distinct([each.change() for each in row.configs], f"data[{index}].configs")
    if not wanted:
        return no_content()
    await find_topics(v3.cluster, sorted(resource.name for resource in wanted))
    await _check_names(v3, wanted)
    refused = await configs.alter_all(v3.cluster, wanted, validate_only=bool(body.validate_only))
    if not refused:
        return no_content()
    failures = [
        {"topic_name": resource.name, "error_code": status_of(error).error_code, "message": str(error)}
        for resource, error in sorted(refused.items(), key=lambda pair: pair[0].name)
    ]
    return respond({"failures": failures}, 207)


@router.get("/broker-configs")
@router.get("/brokers/{broker_id}/configs")
@router.get("/topics/{topic_name}/configs")
async def list_configs(v3: Context, resource: Found) -> Response:
    rows = [_row(v3.links, resource, each) for each in await configs.describe_one(v3.cluster, resource)]
    return respond(v3.links.collection(f"{_kind(resource)}List", _at(resource), rows))


@router.post("/broker-configs:alter")
@router.post("/brokers/{broker_id}/configs:alter")
@router.post("/topics/{topic_name}/configs:alter")
async def alter_configs(v3: Context, resource: Found, request: Request) -> Response:
    body = await body_v3(request, AlterConfigs)
    return await _change(v3, resource, body.changes(), validate_only=bool(body.validate_only))


@router.get("/broker-configs/{name}")
@router.get("/brokers/{broker_id}/configs/{name}")
@router.get("/topics/{topic_name}/configs/{name}")
async def get_config(v3: Context, resource: Found, name: str) -> Response:
    return respond(_row(v3.links, resource, await _find(v3, resource, name)))


@router.put("/broker-configs/{name}")
@router.put("/brokers/{broker_id}/configs/{name}")
@router.put("/topics/{topic_name}/configs/{name}")
async def update_config(v3: Context, resource: Found, name: str, request: Request) -> Response:
    body = await body_v3(request, UpdateConfig)
    return await _change(v3, resource, [Change(name, Operation.SET, body.value)])


@router.delete("/broker-configs/{name}")
@router.delete("/brokers/{broker_id}/configs/{name}")
@router.delete("/topics/{topic_name}/configs/{name}")
async def reset_config(v3: Context, resource: Found, name: str) -> Response:
    return await _change(v3, resource, [Change(name, Operation.DELETE, None)])


async def _change(v3: V3, resource: Resource, changes: list[Change], *, validate_only: bool = False) -> Response:
    # Kafka lists only the cluster-wide configs that are set, so a name that is not listed may be valid.
    if resource != _CLUSTER:
        await _check_names(v3, {resource: changes})
    await configs.alter(v3.cluster, resource, changes, validate_only=validate_only)
    return no_content()


async def _find(v3: V3, resource: Resource, name: str) -> Config:
    """Raises ResourceNotFound if the resource has no config with this name."""
    for config in await configs.describe_one(v3.cluster, resource):
        if config.name == name:
            return config
    raise _unknown_config(v3, resource, name)


async def _check_names(v3: V3, changes: Mapping[Resource, Sequence[Change]]) -> None:
    """Raises ResourceNotFound for the first change of an unknown config. Sends one request to each node."""
    found = await configs.describe(v3.cluster, list(changes))
    for resource, wanted in changes.items():
        there = {config.name for config in found.get(resource, ())}
        for change in wanted:
            if change.name not in there:
                raise _unknown_config(v3, resource, change.name)


def _unknown_config(v3: V3, resource: Resource, name: str) -> ResourceNotFound:
    return ResourceNotFound(f"Config {name} cannot be found for {resource} in cluster {v3.links.cluster_id}.")


def _broker_resource(broker_id: int) -> Resource:
    return Resource(ResourceType.BROKER, str(broker_id))


def _topic_resource(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def _distinct(changes: list[Change], place: str) -> list[Change]:
    """Raises BadRequest."""
    if len({change.name for change in changes}) < len(changes):
        raise BadRequest(f"{place} contains a name twice.")
    return changes


def _at(resource: Resource) -> tuple[str, ...]:
    if resource == _CLUSTER:
        return ("broker-configs",)
    return ("topics" if resource.type is ResourceType.TOPIC else "brokers", resource.name, "configs")


def _kind(resource: Resource) -> str:
    if resource == _CLUSTER:
        return "KafkaClusterConfig"
    return "KafkaTopicConfig" if resource.type is ResourceType.TOPIC else "KafkaBrokerConfig"


def _row(links: Links, resource: Resource, config: Config) -> Row:
    called: tuple[str, ...]
    whose: Row
    if resource == _CLUSTER:
        called, whose = ("broker-config", config.name), {"config_type": "BROKER"}
    elif resource.type is ResourceType.BROKER:
        called, whose = ("broker", resource.name, "config", config.name), {"broker_id": int(resource.name)}
    else:
        called, whose = ("topic", resource.name, "config", config.name), {"topic_name": resource.name}
    return links.resource(
        _kind(resource),
        (*_at(resource), config.name),
        called,
        **whose,
        name=config.name,
        value=config.value,
        is_default=config.is_default,
        is_read_only=config.is_read_only,
        is_sensitive=config.is_sensitive,
        source=config.source.name,
        synonyms=[{"name": each.name, "value": each.value, "source": each.source.name} for each in config.synonyms],
    )
