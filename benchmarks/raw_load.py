"""Load without a client library. Prebuilt frames and plain sockets keep the client's cost out of the measurement."""

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.wire.entities import API_KEYS, encode_request, request_is_flexible
from tests.wire.raw_client import RawConnection, request_header
from tests.wire.record_batches import Batch, NewRecord

PRODUCE_VERSION = 9
FETCH_VERSION = 12
# In-flight produce requests, as with max.in.flight.requests.per.connection=5.
PIPELINE = 5
ANSWER_BYTES_MAX = 256 * 1024
"""Largest response in `_closed_loop`, whose connections share one buffer."""

_LENGTH = struct.Struct(">i")
_OFFSET = struct.Struct(">q")
# Placeholder for the offset in a frame. No other part of the frame contains these bytes.
_SOME_OFFSET = 0x1122334455667788

FrameFor: TypeAlias = Callable[[int, int], bytes]
"""(connection, turn) → the request to send."""


def batch_of(records: int, value_bytes: int) -> bytes:
    return batch_with([bytes(value_bytes)] * records)


def batch_with(values: Sequence[bytes], codec: str = "none") -> bytes:
    now_ms = int(time.time() * 1000)
    return Batch(records=[NewRecord(value, timestamp=now_ms) for value in values], codec=codec).encode()


def request_frame(api: str, version: int, body: dict[str, object]) -> bytes:
    header = request_header(API_KEYS[api], version, 1, flexible=request_is_flexible(api, version))
    payload = header + encode_request(api, version, body)
    return struct.pack(">i", len(payload)) + payload


def produce_frame(topic: str, batch: bytes, acks: int, partition: int = 0) -> bytes:
    body: dict[str, object] = {
        "transactional_id": None,
        "acks": acks,
        "timeout": 30_000,
        "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}],
    }
    return request_frame("produce", PRODUCE_VERSION, body)


def fetch_frame(topic: str, offset: int, max_bytes: int, partition: int = 0) -> bytes:
    asked = {
        "partition": partition,
        "current_leader_epoch": -1,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": max_bytes,
    }
    body: dict[str, object] = {
        "replica_id": -1,
        "max_wait": 500,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [asked]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return request_frame("fetch", FETCH_VERSION, body)


def create_topic(address: str, topic: str, partitions: int = 1, configs: Sequence[tuple[str, str]] = ()) -> None:
    wanted = {
        "name": topic,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in configs],
    }
    with RawConnection(address) as connection:
        answer = connection.ask("create_topics", 5, {"topics": [wanted], "timeout": 30_000, "validate_only": False})
        assert answer["topics"][0]["error_code"] == "NONE", answer
        # Kafka responds before the partitions have a leader.
        deadline = time.monotonic() + 30
        while True:
            listed = _end_offsets(connection, topic, partitions)
            if all(partition["error_code"] == "NONE" for partition in listed):
                return
            assert time.monotonic() < deadline, listed
            time.sleep(0.02)


def count_records(address: str, topic: str, partitions: int) -> int:
    with RawConnection(address) as connection:
        return sum(partition["offset"] for partition in _end_offsets(connection, topic, partitions))


def _end_offsets(connection: RawConnection, topic: str, partitions: int) -> list[Any]:
    asked = [{"partition_index": number, "timestamp": -1, "current_leader_epoch": -1} for number in range(partitions)]
    body = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": asked}]}
    listed: list[Any] = connection.ask("list_offsets", 5, body)["topics"][0]["partitions"]
    return listed


def delete_topic(address: str, topic: str) -> None:
    with RawConnection(address) as connection:
        connection.ask("delete_topics", 4, {"topic_names": [topic], "timeout": 30_000})


class Wire:
    """One connection that sends frames and receives complete responses."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(8 * 1024 * 1024))

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def receive(self) -> memoryview:
        self._fill(0, 4)
        size = struct.unpack_from(">i", self._buffer)[0]
        self._fill(0, size)
        return self._buffer[:size]

    def _fill(self, start: int, end: int) -> None:
        while start < end:
            count = self.socket.recv_into(self._buffer[start:end])
            if not count:
                raise ConnectionError("the broker closed the connection")
            start += count

    def close(self) -> None:
        self.socket.close()


def produce(address: str, topic: str, batch: bytes, count: int, acks: int, partition: int = 0) -> None:
    """Produce `count` batches over one connection, with `PIPELINE` requests in flight."""
    wire, frame = Wire(address), produce_frame(topic, batch, acks, partition)
    for number in range(count + PIPELINE):
        if number < count:
            wire.send(frame)
        if number >= PIPELINE:
            _check_produced(wire.receive(), topic)
    wire.close()


def _check_produced(answer: memoryview, topic: str) -> None:
    # The error code follows the correlation id, tags, topic count, topic name, partition count and partition index.
    position = 4 + 1 + 1 + 1 + len(topic) + 1 + 4
    error = struct.unpack_from(">h", answer, position)[0]
    assert error == 0, f"produce failed with error {error}"


def consume(address: str, topic: str, batch_bytes: int, records_each: int, count: int, max_bytes: int) -> None:
    """Consume `count` batches of equal size, in fetches of at most `max_bytes`."""
    wire = Wire(address)
    done = 0
    while done < count:
        wire.send(fetch_frame(topic, done * records_each, max_bytes))
        done += len(wire.receive()) // batch_bytes
    wire.close()


def latencies(address: str, topic: str, batch: bytes, count: int, acks: int) -> list[float]:
    """Return the seconds from each request to its response, with one request in flight."""
    wire, frame = Wire(address), produce_frame(topic, batch, acks)
    clock = time.perf_counter
    taken = []
    for _ in range(count):
        started = clock()
        wire.send(frame)
        answer = wire.receive()
        taken.append(clock() - started)
        _check_produced(answer, topic)
    wire.close()
    return taken


def produce_over_many(address: str, topic: str, batch: bytes, connections: int, requests_each: int) -> None:
    """Run `connections` producers with one in-flight request each, all in one thread."""
    frame = produce_frame(topic, batch, 1)
    _closed_loop(address, connections, requests_each, lambda number, turn: frame)


def consume_over_many(
    address: str, topic: str, records_each: int, batch_bytes: int, connections: int, requests_each: int
) -> None:
    """Run `connections` consumers. Each reads a separate range of offsets, batch by batch."""
    before, _, after = fetch_frame(topic, _SOME_OFFSET, batch_bytes).partition(_OFFSET.pack(_SOME_OFFSET))
    pack = _OFFSET.pack
    _closed_loop(
        address,
        connections,
        requests_each,
        lambda number, turn: before + pack((number * requests_each + turn) * records_each) + after,
    )


@dataclass(slots=True)
class _Client:
    """One of many connections. Makes few system calls, so that the load generator is not the bottleneck."""

    socket: socket.socket
    number: int
    turn: int = 0
    received_bytes: int = 0
    answer_bytes: int = 0


def _closed_loop(address: str, connections: int, requests_each: int, frame_for: FrameFor) -> None:
    host, _, port = address.rpartition(":")
    buffer = memoryview(bytearray(ANSWER_BYTES_MAX))
    clients: dict[int, _Client] = {}
    with ExitStack() as open_sockets, select.epoll() as poll:
        for number in range(connections):
            sock = open_sockets.enter_context(socket.create_connection((host, int(port)), timeout=60))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            clients[sock.fileno()] = _Client(sock, number)
        for client in clients.values():
            client.socket.sendall(frame_for(client.number, 0))
            client.socket.setblocking(False)
            poll.register(client.socket.fileno(), select.EPOLLIN)
        left = connections
        while left:
            for fd, _ in poll.poll(60):
                client = clients[fd]
                count = client.socket.recv_into(buffer)
                if not count:
                    raise ConnectionError("the broker closed the connection")
                if not client.received_bytes:
                    # The first read contains all four bytes of the length.
                    client.answer_bytes = 4 + _LENGTH.unpack_from(buffer)[0]
                client.received_bytes += count
                if client.received_bytes < client.answer_bytes:
                    continue
                assert client.received_bytes == client.answer_bytes, "two answers to one request"
                client.received_bytes = 0
                client.turn += 1
                if client.turn == requests_each:
                    poll.unregister(fd)
                    left -= 1
                    continue
                frame = frame_for(client.number, client.turn)
                assert client.socket.send(frame) == len(frame), "a request that the socket did not take whole"
