"""Any Kafka message over an aiokafka connection.

aiokafka connects, authenticates and routes, but has only some of Kafka's messages and few of their versions; kio has
all of them. A `Question` is what aiokafka's connection takes for a request of its own: it is asked for a version
(`prepare`) once the connection knows what the broker offers, then for bytes, and later to read the answer.
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

from headgate.proxy.errors import BadRequest, KafkaBadRequest
from headgate.wire.entities import entity_encoder

# A longer text makes brokers drop the connection, whatever the version's encoding could carry.
text_bytes_max: Final = 32_767


class Api(IntEnum):
    """What is asked here, by Kafka's keys."""

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
        """Kafka's name of it."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def changes(self) -> bool:
        """Whether asking twice may differ from asking once."""
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

# Later versions have another shape (batches of groups, topic ids) that brings nothing here.
_VERSION_MAX: Final[Mapping[Api, int]] = {
    Api.OFFSET_COMMIT: 8,
    Api.OFFSET_FETCH: 7,
    Api.FIND_COORDINATOR: 3,
    Api.DELETE_TOPICS: 5,
}


class ApiMissing(KafkaBadRequest):
    """The broker does not offer what was asked."""

    def __init__(self, api: Api) -> None:
        super().__init__(f"The broker does not offer {api.title}.")
        self.api = api


@dataclass(frozen=True, slots=True)
class Question:
    api: Api
    fields: Mapping[str, object]
    """In the newest version's names; what the version in use lacks is left out."""

    def prepare(self, offered: Mapping[int, tuple[int, int]]) -> "Asked":
        """Raises ApiMissing, BadRequest."""
        if self.api not in offered:
            raise ApiMissing(self.api)
        oldest, newest = offered[self.api]
        ours = max(schema_name_map[api_key_map[self.api]])
        version = min(newest, ours, _VERSION_MAX.get(self.api, newest))
        if version < oldest:
            raise ApiMissing(self.api)
        schema = load_request_schema(self.api, version)
        _check_texts(self.api.title, self.fields)
        return Asked(self.api, version, bool(schema.__flexible__), entity_encoder(schema)(self.fields))


@dataclass(frozen=True, slots=True)
class Encoded:
    content: bytes

    def encode(self) -> bytes:
        return self.content


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in one version, ready to leave, and how its answer is read."""

    api: Api
    version: int
    flexible: bool
    content: bytes

    @property
    def RESPONSE_TYPE(self) -> "Asked":
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
        answer, _ = entity_reader(schema)(frame.getvalue(), frame.tell())
        return answer


def _check_texts(name: str, value: object) -> None:
    """Raises BadRequest."""
    if isinstance(value, str):
        if len(value.encode()) > text_bytes_max:
            raise BadRequest(f"{name} is longer than the {text_bytes_max} bytes that Kafka takes: {value[:40]}…")
    elif isinstance(value, Mapping):
        for field, nested in value.items():
            _check_texts(field, nested)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_texts(name, item)
