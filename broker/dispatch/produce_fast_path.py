"""A producer's next request, answered without reading all of it again.

A producer that sends one batch at a time to one partition repeats itself: but for the correlation id and the records,
the next request is the last one, byte for byte. What a request with one batch means is remembered by the bytes before
its records; one that begins the same and ends where its records do means the same. Everything about the batch itself is
checked as ever, by `broker.handlers.produce`. Whatever is not recognised here takes the ordinary way.
"""

import struct
from typing import NamedTuple
from uuid import UUID

from headgate.broker.handlers.produce import produce_one
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import Request
from headgate.broker.runtime.deferred import Deferred

FLEXIBLE_SINCE_VERSION = 9
TOPIC_IDS_SINCE_VERSION = 13

# Beginnings of requests that are remembered, one per client id and partition, a few hundred bytes each, and connections
# whose last one is. Past it, all are forgotten and learnt again.
remembered_max = 8_192

# Longer ones (a client id may have 32 KiB) are not worth remembering.
beginning_bytes_max = 1_024

_BEHIND_CORRELATION_ID = 8
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

# From behind the client id to the topic: tags, transactional id, acks, timeout, the number of topics.
_BEFORE_TOPIC_BYTES = 1 + 1 + 2 + 4 + 1
# The same before version 9, with a null transactional id.
_BEFORE_TOPIC_BYTES_OLD = 2 + 2 + 4 + 4
_TOPIC_ID_BYTES = 16
# The number of partitions and the partition's index.
_PARTITION_BYTES = 1 + 4
_PARTITION_BYTES_OLD = 4 + 4
# No tagged fields, three times: the partition's, the topic's, the request's.
_END = b"\x00\x00\x00"


class _Meaning(NamedTuple):
    version: int
    beginning: bytes
    """Between the correlation id and `end`, where the length of the records stands."""
    end: int
    acks: int
    topic_name: str
    topic_id: UUID | None
    partition: int


class RepeatedProduce:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[tuple[int, bytes], _Meaning] = {}
        self._last: dict[int, _Meaning] = {}
        """What each connection asked for last, most likely the same as now."""

    def answer(self, frame: memoryview, version: int, connection_id: int) -> bytes | Deferred[bytes] | None:
        """The body of the answer; None if the request has to be read."""
        meaning = self._last.get(connection_id)
        try:
            if (
                meaning is None
                or meaning.version != version
                or frame[_BEHIND_CORRELATION_ID : meaning.end] != meaning.beginning
            ):
                end = _beginning_end(frame, version)
                meaning = self._known.get((version, bytes(frame[_BEHIND_CORRELATION_ID:end])))
                if meaning is None:
                    return None
                if len(self._last) >= remembered_max:
                    self._last.clear()
                self._last[connection_id] = meaning
            records = _records(frame, meaning.end, version)
        except (IndexError, struct.error):
            return None
        if records is None:
            return None
        topics = self._broker.topics
        topic = topics.find(meaning.topic_name) if meaning.topic_id is None else topics.find_by_id(meaning.topic_id)
        return produce_one(self._broker, topic, meaning.partition, records, meaning.acks, version)

    def learn(self, frame: memoryview, version: int, request: Request) -> None:
        """Remember a request that was read, if it is of the kind."""
        if len(request.topic_data) != 1 or request.acks not in (-1, 1):
            return
        topic_data = request.topic_data[0]
        if len(topic_data.partition_data) != 1:
            return
        index = topic_data.partition_data[0].index
        topic_id, name = None, ""
        if version < TOPIC_IDS_SINCE_VERSION:
            name = topic_data.name
        elif (topic_id := topic_data.topic_id) is None:
            return
        try:
            end = _beginning_end(frame, version)
            beginning = bytes(frame[_BEHIND_CORRELATION_ID:end])
            if end > beginning_bytes_max or _records(frame, end, version) is None:
                return
        except (IndexError, struct.error):
            return
        client_id_bytes = _length(frame, _BEHIND_CORRELATION_ID)
        if not _is_of_the_kind(beginning[2 + client_id_bytes :], version, request.acks, name, topic_id, index):
            return
        if len(self._known) >= remembered_max:
            self._known.clear()
        self._known[version, beginning] = _Meaning(version, beginning, end, request.acks, name, topic_id, index)


def _is_of_the_kind(behind: bytes, version: int, acks: int, name: str, topic_id: UUID | None, index: int) -> bool:
    """Whether what lies between client id and records is what such a request has there; the timeout may be any."""
    count, encoded = b"\x02", name.encode()
    if topic_id is not None:
        topic = topic_id.bytes
    elif version >= FLEXIBLE_SINCE_VERSION:
        topic = bytes((min(len(encoded) + 1, 0xFF),)) + encoded
    else:
        topic = len(encoded).to_bytes(2) + encoded
        count = b"\x00\x00\x00\x01"
    no_transaction = b"\x00\x00" if version >= FLEXIBLE_SINCE_VERSION else b"\xff\xff"
    return behind[:4] == no_transaction + acks.to_bytes(2, signed=True) and behind[8:] == (
        count + topic + count + index.to_bytes(4, signed=True)
    )


def _beginning_end(frame: memoryview, version: int) -> int:
    """Where the length of the records stands, if the request is of the kind; else anywhere."""
    position = _BEHIND_CORRELATION_ID + 2 + _length(frame, _BEHIND_CORRELATION_ID)
    if version >= TOPIC_IDS_SINCE_VERSION:
        return position + _BEFORE_TOPIC_BYTES + _TOPIC_ID_BYTES + _PARTITION_BYTES
    if version >= FLEXIBLE_SINCE_VERSION:
        position += _BEFORE_TOPIC_BYTES
        # The length of the name plus one, in one byte, which the name then follows.
        return position + frame[position] + _PARTITION_BYTES
    position += _BEFORE_TOPIC_BYTES_OLD
    return position + 2 + _length(frame, position) + _PARTITION_BYTES_OLD


def _length(frame: memoryview, position: int) -> int:
    """A length of two bytes; null is as long as nothing."""
    length: int = _INT16.unpack_from(frame, position)[0]
    return length if length > 0 else 0


def _records(frame: memoryview, position: int, version: int) -> memoryview | None:
    """The records whose length stands at `position`, if nothing but the end of the request follows them."""
    if version < FLEXIBLE_SINCE_VERSION:
        length = _INT32.unpack_from(frame, position)[0]
        position += 4
        return frame[position:] if length > 0 and position + length == len(frame) else None
    length = shift = 0
    while True:
        byte = frame[position]
        position += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            return None
    end = position + length - 1
    if length < 2 or end + len(_END) != len(frame) or frame[end:] != _END:
        return None
    return frame[position:end]
