"""Any Kafka message over an aiokafka connection.

aiokafka has connections, authentication and routing, but only some of Kafka's messages and few of their versions; kio
has all of them. Here a request of kio's takes the shape that aiokafka's connection expects of its own: it is asked for
the version (`prepare`), the header and the bytes, and later to parse the answer.
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from broker.protocol.entities import Answer, entity_builder
from gateway.kafka.errors import ApiMissing


class Api(IntEnum):
    """The APIs that are asked here, by Kafka's keys."""

    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DESCRIBE_CONFIGS = 32
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    CONSUMER_GROUP_DESCRIBE = 69


# Later versions have another shape (batches of groups, topic ids) that brings nothing here.
_VERSION_MAX: Mapping[Api, int] = {
    Api.OFFSET_COMMIT: 8,
    Api.OFFSET_FETCH: 7,
    Api.FIND_COORDINATOR: 3,
    Api.DELETE_TOPICS: 5,
}


@dataclass(frozen=True, slots=True)
class KioRequest:
    """What aiokafka calls a request: it settles on a version once the connection knows what the broker offers."""

    api: Api
    fields: Answer
    """In the newest version's names; what the version in use lacks is left out."""

    def prepare(self, offered: Mapping[int, tuple[int, int]]) -> "KioMessage":
        name = self.api.name.title().replace("_", "")
        if self.api not in offered:
            raise ApiMissing(name)
        oldest, newest = offered[self.api]
        ours = max(schema_name_map[api_key_map[self.api]])
        version = min(newest, ours, _VERSION_MAX.get(self.api, newest))
        if version < oldest:
            raise ApiMissing(f"{name} in version {version} or older")
        return KioMessage(self.api, version, self.fields)


@dataclass(frozen=True, slots=True)
class KioMessage:
    """A request in one version, and how its answer is read."""

    api: Api
    version: int
    fields: Answer

    @property
    def RESPONSE_TYPE(self) -> "KioMessage":
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> "EncodedHeader":
        client = client_id.encode()
        header = struct.pack(">hhih", self.api, self.version, correlation_id, len(client)) + client
        flexible = load_request_schema(self.api, self.version).__flexible__
        return EncodedHeader(header + b"\x00" if flexible else header)

    def encode(self) -> bytes:
        schema = load_request_schema(self.api, self.version)
        buffer = io.BytesIO()
        entity_writer(schema)(buffer, entity_builder(schema)(self.fields))  # type: ignore[arg-type]  # its own schema
        return buffer.getvalue()

    def parse_response_header(self, frame: io.BytesIO) -> Any:
        schema = load_response_schema(self.api, self.version).__header_schema__
        header, size = entity_reader(schema)(frame.getvalue(), 0)
        frame.seek(size)
        return header

    def decode(self, frame: io.BytesIO) -> Any:
        schema = load_response_schema(self.api, self.version)
        response, _ = entity_reader(schema)(frame.getvalue(), frame.tell())
        return response


@dataclass(frozen=True, slots=True)
class EncodedHeader:
    content: bytes

    def encode(self) -> bytes:
        return self.content
