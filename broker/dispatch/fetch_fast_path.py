"""Fast path for repeated Fetch requests: reuses the parsed fields of the connection's previous request.

A consumer of one partition sends nearly the same bytes each time. Only the correlation id and the fetch offset differ.
The fast path compares the bytes before and after the offset with the connection's previous request. If they match and
records are available at once, `broker.handlers.fetch` builds the response. All other requests take the normal path.
"""

import struct
from functools import cache
from typing import NamedTuple
from uuid import UUID

from kio.index import load_request_schema

from headgate.broker.handlers.fetch import TOPIC_IDS_SINCE_VERSION, AskedPartition, fetch_one
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.request_shapes import FetchRequest
from headgate.broker.requests.fetch_response import API_KEY, READ_COMMITTED
from headgate.broker.requests.payload import Payload
from headgate.wire.entities import entity_encoder

# Limit on stored requests: one per connection, with a few hundred bytes. At the limit, all entries are evicted.
entries_max = 8_192

# Longer requests are not stored. A client id can have up to 32 KiB.
request_bytes_max = 1_024

_AFTER_CORRELATION_ID = 8
_INT16 = struct.Struct(">h")
_OFFSET = struct.Struct(">q")
_SOME_OFFSET = 0x3A5B7C1D2E4F6071
_SHORT_NAME_BYTES_MAX = 126
"""In flexible versions, a longer name has a length field of more than one byte."""


class _ParsedRequest(NamedTuple):
    version: int
    before: bytes
    """The bytes between the correlation id and the offset."""
    behind: bytes
    offset_at: int
    topic_name: str
    topic_id: UUID | None
    asked: AskedPartition
    max_bytes: int
    min_bytes: int
    isolation: int


class FetchFastPath:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last: dict[int, _ParsedRequest] = {}
        """The last stored request of each connection, by connection id."""

    def answer(self, frame: memoryview, version: int, connection_id: int) -> Payload | None:
        """Return the response body, or None if the request must take the normal path."""
        parsed = self._last.get(connection_id)
        if parsed is None or not _is_like(frame, version, parsed):
            return None
        topics = self._broker.topics
        topic = topics.find(parsed.topic_name) if parsed.topic_id is None else topics.find_by_id(parsed.topic_id)
        if topic is None:
            return None
        (offset,) = _OFFSET.unpack_from(frame, parsed.offset_at)
        return fetch_one(
            self._broker, topic, parsed.asked, offset, version, parsed.max_bytes, parsed.min_bytes, parsed.isolation
        )

    def learn(self, frame: memoryview, version: int, connection_id: int, request: FetchRequest) -> None:
        """Store a parsed request if it fetches one partition and has the shortest encoding."""
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or len(frame) > request_bytes_max:
            return
        known = self._last.get(connection_id)
        if known is not None and _is_like(frame, version, known):
            return
        wanted = request.topics[0]
        asked = wanted.partitions[0]
        topic_id, name = None, ""
        if version < TOPIC_IDS_SINCE_VERSION:
            name = wanted.topic
        elif (topic_id := wanted.topic_id) is None:
            return
        if (
            request.session_epoch > 0
            or request.forgotten_topics_data
            or request.rack_id
            or request.isolation_level not in (0, READ_COMMITTED)
        ):
            return
        offset_at = _offset_position(frame, version, name)
        if offset_at is None or _OFFSET.unpack_from(frame, offset_at)[0] != asked.fetch_offset:
            return
        if len(self._last) >= entries_max:
            self._last.clear()
        self._last[connection_id] = _ParsedRequest(
            version,
            bytes(frame[_AFTER_CORRELATION_ID:offset_at]),
            bytes(frame[offset_at + _OFFSET.size :]),
            offset_at,
            name,
            topic_id,
            AskedPartition(
                asked.partition,
                asked.current_leader_epoch,
                asked.fetch_offset,
                asked.last_fetched_epoch,
                asked.partition_max_bytes,
            ),
            request.max_bytes,
            request.min_bytes,
            request.isolation_level,
        )


def _is_like(frame: memoryview, version: int, parsed: _ParsedRequest) -> bool:
    offset_at = parsed.offset_at
    return (
        parsed.version == version
        and frame[offset_at + 8 :] == parsed.behind
        and frame[_AFTER_CORRELATION_ID:offset_at] == parsed.before
    )


def _offset_position(frame: memoryview, version: int, name: str) -> int | None:
    """Return the position of the offset in a request for one partition. None if the encoding is not the shortest.

    Tagged fields and longer varints make a request longer. A request with the minimum length therefore has neither.
    """
    client_id_bytes = max(_INT16.unpack_from(frame, _AFTER_CORRELATION_ID)[0], 0)
    body_bytes, offset_and_after_bytes, flexible = _shortest(version)
    name_bytes = len(name.encode())
    if flexible and name_bytes > _SHORT_NAME_BYTES_MAX:
        return None
    header_bytes = _AFTER_CORRELATION_ID + _INT16.size + client_id_bytes + flexible
    if len(frame) != header_bytes + body_bytes + name_bytes:
        return None
    return len(frame) - offset_and_after_bytes


@cache
def _shortest(version: int) -> tuple[int, int, bool]:
    """Measure the shortest request for one partition, without a topic name.

    Returns its length, the number of bytes from the offset to the end, and whether the version is flexible.
    """
    schema = load_request_schema(API_KEY, version)
    partition = {"fetch_offset": _SOME_OFFSET}
    topic = {"topic": "", "topic_id": UUID(int=1), "partitions": (partition,)}
    body = entity_encoder(schema)({"topics": (topic,), "rack_id": "", "forgotten_topics_data": ()})
    return len(body), len(body) - body.index(_OFFSET.pack(_SOME_OFFSET)), bool(schema.__flexible__)
