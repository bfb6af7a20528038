"""Sends any Kafka request over a connection of aiokafka, with the messages of kio.

aiokafka implements only some APIs and few versions of them. kio implements all. `Request` has the interface of
aiokafka's requests: the connection calls `prepare` with the broker's API versions, encodes the result, and decodes the
response.
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader

from headgate.kafka_client.errors import ApiUnsupported, ValueTooLong
from headgate.wire.entities import entity_encoder

STRING_BYTES_MAX: Final = 32_767
"""Brokers close the connection after a longer string, even if the encoding allows it."""


class Api(IntEnum):
    """The APIs that this package uses, with their keys."""

    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    CONSUMER_GROUP_DESCRIBE = 69

    @property
    def title(self) -> str:
        """The name in Kafka's documentation, such as `ListOffsets`."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def changes(self) -> bool:
        """True if a repeated request can have a different effect or result."""
        return self in _CHANGING


_CHANGING: Final = frozenset(
    {
        Api.OFFSET_COMMIT,
        Api.CREATE_TOPICS,
        Api.DELETE_TOPICS,
        Api.DELETE_RECORDS,
        Api.CREATE_ACLS,
        Api.DELETE_ACLS,
        Api.CREATE_PARTITIONS,
        Api.DELETE_GROUPS,
        Api.INCREMENTAL_ALTER_CONFIGS,
        Api.OFFSET_DELETE,
    }
)

# Later versions have another structure (batches of groups, topic ids), which has no benefit for this client.
_VERSION_MAX: Final[Mapping[Api, int]] = {
    Api.OFFSET_COMMIT: 8,
    Api.OFFSET_FETCH: 7,
    Api.FIND_COORDINATOR: 3,
    Api.DELETE_TOPICS: 5,
}


@dataclass(frozen=True, slots=True)
class Request:
    api: Api
    fields: Mapping[str, object]
    """Fields with the names of the newest version. Fields that the selected version lacks are not sent."""

    def prepare(self, offered: Mapping[int, tuple[int, int]]) -> "PreparedRequest":
        """Encode the request in the newest version that both sides support. Raises ApiUnsupported, ValueTooLong."""
        if self.api not in offered:
            raise ApiUnsupported(f"The broker does not support {self.api.title}.")
        oldest, newest = offered[self.api]
        ours = max(schema_name_map[api_key_map[self.api]])
        version = min(newest, ours, _VERSION_MAX.get(self.api, newest))
        if version < oldest:
            raise ApiUnsupported(f"The broker does not support {self.api.title}.")
        schema = load_request_schema(self.api, version)
        _check_strings(self.api.title, self.fields)
        return PreparedRequest(self.api, version, bool(schema.__flexible__), entity_encoder(schema)(self.fields))


@dataclass(frozen=True, slots=True)
class Encoded:
    content: bytes

    def encode(self) -> bytes:
        return self.content


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """An encoded request of one version, and the decoder of its response."""

    api: Api
    version: int
    flexible: bool
    content: bytes

    @property
    def RESPONSE_TYPE(self) -> "PreparedRequest":
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> Encoded:
        client = client_id.encode()
        header = struct.pack(">hhih", self.api, self.version, correlation_id, len(client)) + client
        return Encoded(header + b"\x00" if self.flexible else header)

    def encode(self) -> bytes:
        return self.content

    def parse_response_header(self, frame: io.BytesIO) -> Any:
        schema = load_response_schema(self.api, self.version).__header_schema__
        header, size = entity_reader(schema)(frame.getvalue(), 0)
        frame.seek(size)
        return header

    def decode(self, frame: io.BytesIO) -> Any:
        schema = load_response_schema(self.api, self.version)
        response, _ = entity_reader(schema)(frame.getvalue(), frame.tell())
        return response


def _check_strings(name: str, value: object) -> None:
    """Raises ValueTooLong."""
    if isinstance(value, str):
        if len(value.encode()) > STRING_BYTES_MAX:
            raise ValueTooLong(f"{name} is longer than Kafka's limit of {STRING_BYTES_MAX} bytes: {value[:40]}…")
    elif isinstance(value, Mapping):
        for field, nested in value.items():
            _check_strings(field, nested)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_strings(name, item)
