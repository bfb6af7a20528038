"""Clients that open too many connections, send too many requests, or read slowly or never."""

import contextlib
import os
import resource
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.waiting import eventually
from tests.hostile.broker.conftest import assert_no_defect
from tests.hostile.broker.witness import Witness, create_topic, log_of, produce, resident_bytes
from tests.live.headgate import START_SECONDS_MAX, HeadgateBroker
from tests.live.ports import accepts
from tests.live.process import ServerProcess
from tests.wire.entities import encode_request
from tests.wire.raw_client import ConnectionClosed, RawConnection, request_header
from tests.wire.record_batches import Batch, NewRecord

SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
GROWTH_BYTES_MAX = 100 * 1024 * 1024


@contextlib.contextmanager
def running(folder: Path, **settings: str) -> Iterator[HeadgateBroker]:
    """Start a broker with the given settings. In setting names, underscores stand for dots."""
    broker = HeadgateBroker(folder, {name.replace("_", "."): value for name, value in settings.items()})
    broker.start()
    try:
        yield broker
    finally:
        assert broker.stop() == 0, log_of(broker)[-4000:]
    assert_no_defect(broker)


def framed(api_key: int, version: int, body: bytes, correlation_id: int = 1, *, flexible: bool = False) -> bytes:
    frame = request_header(api_key, version, correlation_id, flexible=flexible) + body
    return struct.pack(">i", len(frame)) + frame


def raw_socket(broker: HeadgateBroker) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    return socket.create_connection((host, int(port)), 15)


def send_until_nobody_reads(client: socket.socket, data: bytes) -> int:
    """Send until backpressure blocks the sender. Return the number of bytes sent."""
    client.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError, BlockingIOError):
        while sent < len(data):
            sent += client.send(data[sent : sent + 65536])
    client.settimeout(15)
    return sent


def read_frames(client: socket.socket, count: int) -> int:
    """Return how many of `count` frames arrive before end of stream."""
    stream = client.makefile("rb")
    for number in range(count):
        head = stream.read(4)
        if len(head) < 4:
            return number
        stream.read(struct.unpack(">i", head)[0])
    return count


def test_requests_without_end_that_nobody_reads_the_answers_of(attacked: HeadgateBroker) -> None:
    """The broker stops reading until the client reads its responses (backpressure)."""
    body = encode_request("describe_configs", 1, {"resources": [{"resource_type": 4, "resource_name": "1"}]})
    one, before = framed(32, 1, body), resident_bytes(attacked, "VmRSS")
    with raw_socket(attacked) as client:
        # More than both socket buffers hold.
        sent = send_until_nobody_reads(client, one * 500_000)
        assert sent < len(one) * 500_000
        assert resident_bytes(attacked, "VmRSS") - before < GROWTH_BYTES_MAX
        # The broker answers every complete request when the client reads.
        whole = sent // len(one)
        assert read_frames(client, min(whole, 500)) == min(whole, 500)


def test_requests_behind_a_long_poll_wait_without_end(attacked: HeadgateBroker) -> None:
    """The responses would be large, and they must wait for the response of the long poll."""
    with RawConnection(attacked.address) as connection:
        create_topic(connection, "quiet")
    poll = framed(1, 11, encode_request("fetch", 11, {
        "max_wait": 60_000, "min_bytes": 1000, "max_bytes": 1000,
        "topics": [{"topic": "quiet", "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}],
    }))  # fmt: skip
    configs = encode_request("describe_configs", 1, {"resources": [{"resource_type": 4, "resource_name": "1"}] * 20})
    before = resident_bytes(attacked, "VmRSS")
    with raw_socket(attacked) as client:
        send_until_nobody_reads(client, poll + framed(32, 1, configs) * 2_000)
        assert resident_bytes(attacked, "VmRSS") - before < GROWTH_BYTES_MAX


def test_a_client_that_fetches_and_never_reads(attacked: HeadgateBroker) -> None:
    value = NewRecord(bytes(900_000))
    with RawConnection(attacked.address) as connection:
        create_topic(connection, "large")
        for _ in range(30):
            assert produce(connection, "large", Batch([value]).encode())["error_code"] == "NONE"
    body = encode_request("fetch", 11, {
        "max_bytes": 2**31 - 1,
        "topics": [{"topic": "large", "partitions": [{"partition": 0, "partition_max_bytes": 2**31 - 1}]}],
    })  # fmt: skip
    before = resident_bytes(attacked, "VmRSS")
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            client = stack.enter_context(raw_socket(attacked))
            client.sendall(framed(1, 11, body) * 10)
        with RawConnection(attacked.address) as other:
            assert other.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
        # The pending responses total 2.7 GB. They stay in the page cache.
        assert resident_bytes(attacked, "VmRSS") - before < GROWTH_BYTES_MAX


def test_long_polls_of_disconnected_clients_are_removed(attacked: HeadgateBroker) -> None:
    with RawConnection(attacked.address) as connection:
        create_topic(connection, "polled")
    body = encode_request("fetch", 11, {
        "max_wait": 2**31 - 1, "min_bytes": 2**31 - 1, "max_bytes": 1000,
        "topics": [{"topic": "polled", "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}],
    })  # fmt: skip
    poll, before = framed(1, 11, body) * 100, 0
    for number in range(300):
        with raw_socket(attacked) as client:
            client.sendall(poll)
        if number == 50:
            before = resident_bytes(attacked, "VmRSS")
    # 25,000 long polls of 24 days each. A leak would keep a few KiB for each poll.
    assert resident_bytes(attacked, "VmRSS") - before < 15 * 1024 * 1024


def test_two_thousand_idle_connections(tmp_path: Path) -> None:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(2_000, allowed - 200)
    # Use a separate broker: the shared broker may still process requests from earlier tests.
    with running(tmp_path) as broker:
        with RawConnection(broker.address) as connection:
            assert connection.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
        before = resident_bytes(broker, "VmRSS")
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(RawConnection(broker.address)) for _ in range(count)]
            for connection in (connections[0], connections[count // 2], connections[-1]):
                assert connection.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
            assert resident_bytes(broker, "VmRSS") - before < count * 16 * 1024
        with RawConnection(broker.address) as connection:
            assert connection.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"


def test_connections_that_come_and_go(attacked: HeadgateBroker) -> None:
    for number in range(400):
        client = raw_socket(attacked)
        if number % 3 == 0:
            client.sendall(b"\x00")
        if number % 5 == 0:
            # Close with RST instead of FIN.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    with RawConnection(attacked.address) as connection:
        assert connection.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
    assert attacked.process is not None
    deadline = time.monotonic() + 10
    while len(os.listdir(f"/proc/{attacked.process.pid}/fd")) > 100:
        assert time.monotonic() < deadline, "descriptors of closed connections stay open"
        time.sleep(0.05)


def test_a_broker_without_descriptors_serves_those_it_has_and_recovers(tmp_path: Path) -> None:
    limit = 200
    broker = HeadgateBroker(tmp_path)
    broker.folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "headgate.broker", "--data-dir", str(broker.data), "--listen", broker.address]
    code = (
        f"import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit})); "
        f"os.execv({command[0]!r}, {command!r})"
    )
    broker.process = ServerProcess([sys.executable, "-c", code], tmp_path / "broker.log", cwd=Path.cwd())
    broker.process.start(lambda: accepts(broker.address), START_SECONDS_MAX)
    with RawConnection(broker.address) as early, Witness(broker):
        crowd = [raw_socket(broker) for _ in range(limit)]
        eventually(lambda: "cannot accept connections for now" in log_of(broker), "the broker out of descriptors")
        assert early.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
        # The broker can still open segments and snapshots.
        create_topic(early, "made-in-need")
        assert produce(early, "made-in-need", Batch().encode(), acks=-1)["error_code"] == "NONE"
        for client in crowd:
            client.close()
        with RawConnection(broker.address) as late:
            assert late.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
    assert "accepting connections again" in log_of(broker)
    assert broker.stop() == 0
    assert_no_defect(broker)


def test_connections_past_max_connections_are_closed(tmp_path: Path) -> None:
    with running(tmp_path, max_connections="5") as broker, contextlib.ExitStack() as stack:
        first = [stack.enter_context(served(broker)) for _ in range(5)]
        with RawConnection(broker.address) as sixth, pytest.raises(ConnectionClosed):
            sixth.receive_frame()
        assert first[0].ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
        first[0].close()
        stack.enter_context(served(broker))
    assert "max.connections" in log_of(broker)


def served(broker: HeadgateBroker) -> RawConnection:
    """Return an accepted connection. Retry, because the broker frees the slot of a closed connection with a delay."""
    deadline = time.monotonic() + 10
    while True:
        connection = RawConnection(broker.address)
        try:
            connection.ask("api_versions", 3, SOFTWARE)
        except ConnectionClosed:
            connection.close()
            assert time.monotonic() < deadline, "a place that became free is not given away"
        else:
            return connection


def test_idle_connections_are_closed_and_busy_ones_are_not(tmp_path: Path) -> None:
    with running(tmp_path, connections_max_idle_ms="600") as broker:
        with RawConnection(broker.address) as busy, RawConnection(broker.address) as idle:
            until = time.monotonic() + 1.8
            while time.monotonic() < until:
                assert busy.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
                time.sleep(0.05)
            with pytest.raises(ConnectionClosed):
                idle.receive_frame()
        assert "idle for longer" in log_of(broker)


def test_connections_without_an_idle_limit_stay(tmp_path: Path) -> None:
    with running(tmp_path, connections_max_idle_ms="-1") as broker, RawConnection(broker.address) as idle:
        time.sleep(0.5)
        assert idle.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"


def test_a_broker_with_clients_in_every_state_stops_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as broker, contextlib.ExitStack() as stack:
        with RawConnection(broker.address) as connection:
            create_topic(connection, "stopped")
        body = encode_request("fetch", 11, {
            "max_wait": 60_000, "min_bytes": 1, "max_bytes": 1000,
            "topics": [{"topic": "stopped", "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}],
        })  # fmt: skip
        for number in range(300):
            client = stack.enter_context(raw_socket(broker))
            client.sendall((b"", b"\x00\x00", framed(1, 11, body), framed(1, 11, body) * 50)[number % 4])
        # The fetches wait for longer than `stop` does.
        assert broker.stop() == 0
