"""Fast path for repeated Produce requests: reuses the parsed header of an earlier request.

A producer that sends one batch per request to one partition sends nearly the same bytes each time. Only the correlation
id and the records differ. The fast path stores the parsed fields under the request's prefix, the bytes before the
records. A later request with the same prefix has the same fields if its records end the request.
`broker.handlers.produce` still verifies every batch. All other requests take the normal path.
"""

import struct
from typing import NamedTuple
from uuid import UUID

from headgate.broker.handlers.produce import produce_one
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.request_shapes import ProduceRequest
from headgate.broker.runtime.deferred import Deferred

FLEXIBLE_SINCE_VERSION = 9
TOPIC_IDS_SINCE_VERSION = 13

# Limit on stored prefixes, and on connections with a last prefix. There is one prefix per client id and partition, with
# a few hundred bytes. At the limit, all entries are evicted.
entries_max = 8_192

# Longer prefixes are not stored. A client id can have up to 32 KiB.
prefix_bytes_max = 1_024

_AFTER_CORRELATION_ID = 8
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

# The fields between client id and topic: tags, transactional id, acks, timeout, number of topics.
_BEFORE_TOPIC_BYTES = 1 + 1 + 2 + 4 + 1
# The same fields before version 9, with a null transactional id.
_BEFORE_TOPIC_BYTES_OLD = 2 + 2 + 4 + 4
_TOPIC_ID_BYTES = 16
# The number of partitions, and the partition index.
_PARTITION_BYTES = 1 + 4
_PARTITION_BYTES_OLD = 4 + 4
# Empty tagged fields of the partition, the topic and the request.
_END = b"\x00\x00\x00"


class _ParsedPrefix(NamedTuple):
    version: int
    prefix: bytes
    """The bytes after the correlation id, up to `end`. The length of the records is at `end`."""
    end: int
    acks: int
    topic_name: str
    topic_id: UUID | None
    partition: int


class ProduceFastPath:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[tuple[int, bytes], _ParsedPrefix] = {}
        self._last: dict[int, _ParsedPrefix] = {}
        """The last prefix of each connection. The next request probably has the same prefix."""

    def answer(self, frame: memoryview, version: int, connection_id: int) -> bytes | Deferred[bytes] | None:
        """Return the response body, or None if the request must take the normal path."""
        parsed = self._last.get(connection_id)
        try:
            if (
                parsed is None
                or parsed.version != version
                or frame[_AFTER_CORRELATION_ID : parsed.end] != parsed.prefix
            ):
                end = _prefix_end(frame, version)
                parsed = self._known.get((version, bytes(frame[_AFTER_CORRELATION_ID:end])))
                if parsed is None:
                    return None
                if len(self._last) >= entries_max:
                    self._last.clear()
                self._last[connection_id] = parsed
            records = _records(frame, parsed.end, version)
        except (IndexError, struct.error):
            return None
        if records is None:
            return None
        topics = self._broker.topics
        topic = topics.find(parsed.topic_name) if parsed.topic_id is None else topics.find_by_id(parsed.topic_id)
        return produce_one(self._broker, topic, parsed.partition, records, parsed.acks, version)

    def learn(self, frame: memoryview, version: int, request: ProduceRequest) -> None:
        """Store the prefix of a parsed request if the request has one batch and the shortest encoding."""
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
            end = _prefix_end(frame, version)
            prefix = bytes(frame[_AFTER_CORRELATION_ID:end])
            if end > prefix_bytes_max or _records(frame, end, version) is None:
                return
        except (IndexError, struct.error):
            return
        client_id_bytes = _length(frame, _AFTER_CORRELATION_ID)
        if not _is_shortest(prefix[2 + client_id_bytes :], version, request.acks, name, topic_id, index):
            return
        if len(self._known) >= entries_max:
            self._known.clear()
        self._known[version, prefix] = _ParsedPrefix(version, prefix, end, request.acks, name, topic_id, index)


def _is_shortest(behind: bytes, version: int, acks: int, name: str, topic_id: UUID | None, index: int) -> bool:
    """Whether the bytes between client id and records (`behind`) have the shortest encoding. Ignores the timeout."""
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


def _prefix_end(frame: memoryview, version: int) -> int:
    """Return the position of the length of the records. The result is valid only for the shortest encoding."""
    position = _AFTER_CORRELATION_ID + 2 + _length(frame, _AFTER_CORRELATION_ID)
    if version >= TOPIC_IDS_SINCE_VERSION:
        return position + _BEFORE_TOPIC_BYTES + _TOPIC_ID_BYTES + _PARTITION_BYTES
    if version >= FLEXIBLE_SINCE_VERSION:
        position += _BEFORE_TOPIC_BYTES
        # One byte contains the length of the name plus one. The name follows.
        return position + frame[position] + _PARTITION_BYTES
    position += _BEFORE_TOPIC_BYTES_OLD
    return position + 2 + _length(frame, position) + _PARTITION_BYTES_OLD


def _length(frame: memoryview, position: int) -> int:
    """Read a length of two bytes. Null has length 0."""
    length: int = _INT16.unpack_from(frame, position)[0]
    return length if length > 0 else 0


def _records(frame: memoryview, position: int, version: int) -> memoryview | None:
    """Return the records. Their length is at `position`. None if they are empty, or if other fields follow."""
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
