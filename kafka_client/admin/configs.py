"""Configs of topics, of one broker and of all brokers (DescribeConfigs, IncrementalAlterConfigs)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import KafkaClientError, broker_error, check
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True)
class Resource:
    type: ResourceType
    name: str
    """The name of a topic or the id of a broker. Empty for the configs of all brokers."""

    @property
    def node(self) -> int | None:
        """The node that receives the request. A broker describes and alters only its own configs."""
        return int(self.name) if self.type is ResourceType.BROKER and self.name else None

    @property
    def subject(self) -> str:
        return f"{self.type.name.lower()} {self.name}".strip()

    def __str__(self) -> str:
        return f"{self.type.name} {self.name}".strip()


class ConfigSource(IntEnum):
    """The source of a value, with Kafka's numbers and Confluent's names."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6

    @classmethod
    def _missing_(cls, value: object) -> "ConfigSource":
        return cls.UNKNOWN


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Config:
    name: str
    value: str | None
    is_read_only: bool
    is_sensitive: bool
    source: ConfigSource
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    operation: Operation
    value: str | None


async def describe(client: RequestClient, resources: Sequence[Resource]) -> dict[Resource, list[Config]]:
    """Raises TopicNotFound, ResourceNotFound."""
    found: dict[Resource, list[Config]] = {}
    for node in {resource.node for resource in resources}:
        asked = [resource for resource in resources if resource.node == node]
        request = [
            {"resource_type": int(resource.type), "resource_name": resource.name, "configuration_keys": None}
            for resource in asked
        ]
        answer = await client.send(Api.DESCRIBE_CONFIGS, {"resources": request, "include_synonyms": True}, node)
        for result in answer.results:
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            check(result.error_code, result.error_message, resource.subject)
            found[resource] = sorted((_config(each) for each in result.configs), key=lambda each: each.name)
    return found


async def describe_one(client: RequestClient, resource: Resource) -> list[Config]:
    return (await describe(client, [resource])).get(resource, [])


async def alter(client: RequestClient, resource: Resource, changes: Sequence[Change], *, validate_only: bool) -> None:
    for error in (await alter_all(client, {resource: changes}, validate_only=validate_only)).values():
        raise error


async def alter_all(
    client: RequestClient, changes: dict[Resource, Sequence[Change]], *, validate_only: bool
) -> dict[Resource, KafkaClientError]:
    """Alters each resource atomically. Returns the errors by resource."""
    refused: dict[Resource, KafkaClientError] = {}
    for node in {resource.node for resource in changes}:
        request = [
            {
                "resource_type": int(resource.type),
                "resource_name": resource.name,
                "configs": [
                    {"name": each.name, "config_operation": int(each.operation), "value": each.value} for each in wanted
                ],
            }
            for resource, wanted in changes.items()
            if resource.node == node
        ]
        answer = await client.send(
            Api.INCREMENTAL_ALTER_CONFIGS, {"resources": request, "validate_only": validate_only}, node
        )
        for result in answer.responses:
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            if result.error_code is not ErrorCode.none:
                refused[resource] = broker_error(result.error_code, result.error_message, resource.subject)
    return refused


def _config(config: Any) -> Config:
    synonyms = [Synonym(each.name, each.value, ConfigSource(each.source)) for each in config.synonyms]
    return Config(
        config.name,
        config.value,
        bool(config.read_only),
        bool(config.is_sensitive),
        ConfigSource(config.config_source),
        tuple(synonyms),
    )
