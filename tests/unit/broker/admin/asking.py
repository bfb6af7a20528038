"""Builds and handles requests, then encodes and decodes each response, to check that it fits its version."""

import dataclasses
import enum
from collections.abc import Generator, Mapping
from types import ModuleType
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_reader

from headgate.broker.handlers import create_topics, describe_configs, incremental_alter_configs
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import request_type, response_writer
from headgate.broker.protocol.request_shapes import RequestContext
from headgate.wire.entities import entity_builder

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


class Admin:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def ask(self, api: ModuleType, version: int | None = None, **fields: Any) -> Any:
        """Return the response as plain dictionaries, with the names of error codes."""
        version = api.VERSIONS[-1] if version is None else version
        request = entity_builder(request_type(api.API_KEY, version))(fields)
        answer = api.handle(self.broker, RequestContext(version, "test", "127.0.0.1"), request)
        if isinstance(answer, Generator):
            answer = self.broker.slices.run(answer, is_exclusive=True)
        encoded = response_writer(api.API_KEY, version)(answer)
        decoded, length = entity_reader(load_response_schema(api.API_KEY, version))(encoded, 0)
        assert length == len(encoded)
        return plain(decoded)

    def create(self, *names: str, partitions: int = 1, **configs: str) -> None:
        """Create topics and check for success. In config names, underscores stand for dots."""
        answer = self.ask(create_topics, topics=[new_topic(name, partitions, configs=configs) for name in names])
        assert [topic["error_code"] for topic in answer["topics"]] == ["none"] * len(names)

    def configs(self, resource_type: int, name: str, *keys: str) -> dict[str, Any]:
        resource = {"resource_type": resource_type, "resource_name": name, "configuration_keys": keys or None}
        (result,) = self.ask(describe_configs, resources=[resource], include_synonyms=True)["results"]
        assert result["error_code"] == "none", result
        return {config["name"]: config for config in result["configs"]}

    def alter(self, resource_type: int, name: str, *operations: tuple[str, int, str | None], **more: Any) -> Any:
        resource = {
            "resource_type": resource_type,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": operation, "value": value} for key, operation, value in operations
            ],
        }
        (answer,) = self.ask(incremental_alter_configs, resources=[resource], **more)["responses"]
        return answer


def new_topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: dict[int, list[int]] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in (configs or {}).items()],
        "assignments": [
            {"partition_index": index, "broker_ids": brokers} for index, brokers in (assignments or {}).items()
        ],
    }


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.name if isinstance(value, enum.Enum) else value
