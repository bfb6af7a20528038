"""A consumer's next fetch, answered without reading all of it again.

A consumer of one partition repeats itself: but for the correlation id and the offset, its next request is the last one,
byte for byte. What a connection asked for last is remembered by the bytes before and behind the offset. Only what can
be answered with records at once is answered here, by `broker.handlers.fetch`; everything else takes the ordinary way.
"""

import struct
from functools import cache
from typing import NamedTuple
from uuid import UUID

from kio.index import load_request_schema

from headgate.broker.handlers.fetch import TOPIC_IDS_SINCE_VERSION, AskedPartition, fetch_one
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import Request
from headgate.broker.requests.fetch_response import API_KEY, READ_COMMITTED
from headgate.broker.requests.payload import Payload
from headgate.wire.entities import entity_encoder

# Connections whose last request is remembered, a few hundred bytes each. Past it, all are forgotten and learnt again.
remembered_max = 8_192

# Longer ones (a client id may have 32 KiB) are not worth remembering.
request_bytes_max = 1_024

_BEHIND_CORRELATION_ID = 8
_INT16 = struct.Struct(">h")
_OFFSET = struct.Struct(">q")
_SOME_OFFSET = 0x3A5B7C1D2E4F6071
_SHORT_NAME_BYTES_MAX = 126
"""Names of up to so many bytes have a length of one byte in flexible versions."""


class _Meaning(NamedTuple):
    version: int
    before: bytes
    """Between the correlation id and the offset."""
    behind: bytes
    offset_at: int
    topic_name: str
    topic_id: UUID | None
    asked: AskedPartition
    max_bytes: int
    min_bytes: int
    isolation: int


class RepeatedFetch:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last: dict[int, _Meaning] = {}
        """By connection."""

    def answer(self, frame: memoryview, version: int, connection_id: int) -> Payload | None:
        """The body of the answer; None if the request has to be read."""
        meaning = self._last.get(connection_id)
        if meaning is None or not _is_like(frame, version, meaning):
            return None
        topics = self._broker.topics
        topic = topics.find(meaning.topic_name) if meaning.topic_id is None else topics.find_by_id(meaning.topic_id)
        if topic is None:
            return None
        (offset,) = _OFFSET.unpack_from(frame, meaning.offset_at)
        return fetch_one(
            self._broker, topic, meaning.asked, offset, version, meaning.max_bytes, meaning.min_bytes, meaning.isolation
        )

    def learn(self, frame: memoryview, version: int, connection_id: int, request: Request) -> None:
        """Remember a request that was read, if it is of the kind."""
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
            getattr(request, "session_epoch", -1) > 0
            or getattr(request, "forgotten_topics_data", ())
            or getattr(request, "rack_id", "")
            or request.isolation_level not in (0, READ_COMMITTED)
        ):
            return
        offset_at = _offset_position(frame, version, name)
        if offset_at is None or _OFFSET.unpack_from(frame, offset_at)[0] != asked.fetch_offset:
            return
        if len(self._last) >= remembered_max:
            self._last.clear()
        self._last[connection_id] = _Meaning(
            version,
            bytes(frame[_BEHIND_CORRELATION_ID:offset_at]),
            bytes(frame[offset_at + _OFFSET.size :]),
            offset_at,
            name,
            topic_id,
            AskedPartition(
                asked.partition,
                getattr(asked, "current_leader_epoch", -1),
                asked.fetch_offset,
                getattr(asked, "last_fetched_epoch", -1),
                asked.partition_max_bytes,
            ),
            request.max_bytes,
            request.min_bytes,
            request.isolation_level,
        )


def _is_like(frame: memoryview, version: int, meaning: _Meaning) -> bool:
    offset_at = meaning.offset_at
    return (
        meaning.version == version
        and frame[offset_at + 8 :] == meaning.behind
        and frame[_BEHIND_CORRELATION_ID:offset_at] == meaning.before
    )


def _offset_position(frame: memoryview, version: int, name: str) -> int | None:
    """Where the offset stands in a request for one partition, in its shortest form; None if this is not that form.

    Tagged fields or a length of more bytes than needed would make it longer, and nothing makes it shorter: a request
    as long as that form has it.
    """
    client_id_bytes = max(_INT16.unpack_from(frame, _BEHIND_CORRELATION_ID)[0], 0)
    body_bytes, behind_bytes, flexible = _shortest(version)
    name_bytes = len(name.encode())
    if flexible and name_bytes > _SHORT_NAME_BYTES_MAX:
        return None
    header_bytes = _BEHIND_CORRELATION_ID + _INT16.size + client_id_bytes + flexible
    if len(frame) != header_bytes + body_bytes + name_bytes:
        return None
    return len(frame) - behind_bytes


@cache
def _shortest(version: int) -> tuple[int, int, bool]:
    """Of a request for one partition of a topic without a name: its bytes, those from the offset on, and whether it
    has tagged fields."""
    schema = load_request_schema(API_KEY, version)
    partition = {"fetch_offset": _SOME_OFFSET}
    topic = {"topic": "", "topic_id": UUID(int=1), "partitions": (partition,)}
    body = entity_encoder(schema)({"topics": (topic,), "rack_id": "", "forgotten_topics_data": ()})
    return len(body), len(body) - body.index(_OFFSET.pack(_SOME_OFFSET)), bool(schema.__flexible__)
