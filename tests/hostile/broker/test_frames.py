"""Malformed and partial frames.

The broker closes the connection and logs the reason. Other clients are not affected.
"""

import contextlib
import random
import socket
import struct
import time

import pytest

from tests.hostile.broker.witness import log_of, resident_bytes
from tests.live.headgate import HeadgateBroker
from tests.wire.entities import encode_request
from tests.wire.raw_client import ConnectionClosed, RawConnection, request_header

FRAME_BYTES_MAX = 104_857_600
API_VERSIONS = request_header(18, 0, 1, flexible=False)


def assert_closed(connection: RawConnection) -> None:
    with pytest.raises(ConnectionClosed):
        connection.receive_frame()


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, FRAME_BYTES_MAX + 1])
def test_a_frame_of_an_impossible_length_ends_the_connection(attacked: HeadgateBroker, length: int) -> None:
    with RawConnection(attacked.address) as connection:
        connection.send_bytes(struct.pack(">i", length))
        assert_closed(connection)
    assert f"a frame of {length} bytes" in log_of(attacked)


@pytest.mark.parametrize("size", range(8))
def test_a_frame_too_short_for_a_header_ends_the_connection(attacked: HeadgateBroker, size: int) -> None:
    with RawConnection(attacked.address) as connection:
        connection.send_frame(bytes(size))
        assert_closed(connection)
    assert f"a frame of {size} bytes is no request" in log_of(attacked)


def test_a_request_that_comes_byte_by_byte_is_answered(attacked: HeadgateBroker) -> None:
    with RawConnection(attacked.address) as connection:
        for byte in struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS:
            connection.send_bytes(bytes([byte]))
        assert struct.unpack_from(">i", connection.receive_frame()) == (1,)


def test_half_a_frame_and_silence_costs_nobody_anything(attacked: HeadgateBroker) -> None:
    with RawConnection(attacked.address) as first, RawConnection(attacked.address) as second:
        first.send_bytes(b"\x00\x00")
        second.send_bytes(struct.pack(">i", 1000) + API_VERSIONS)
        with RawConnection(attacked.address) as other:
            assert other.ask("api_versions", 3, SOFTWARE)["error_code"] == "NONE"
        # A slow client can still complete its partial frame.
        first.send_bytes(struct.pack(">i", len(API_VERSIONS))[2:] + API_VERSIONS)
        assert struct.unpack_from(">i", first.receive_frame()) == (1,)


SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


def test_incomplete_large_frames_use_only_the_memory_of_the_received_bytes(attacked: HeadgateBroker) -> None:
    before = resident_bytes(attacked, "VmRSS")
    connections = [RawConnection(attacked.address) for _ in range(60)]
    megabyte = bytes(1024 * 1024 - 4)
    for connection in connections:
        connection.send_bytes(struct.pack(">i", 100_000_000) + megabyte)
    # Each frame header claims 100 MB. The buffer grows with the received bytes and at most doubles once.
    assert resident_bytes(attacked, "VmRSS") - before < 60 * 3 * 1024 * 1024
    for connection in connections:
        connection.close()


def test_garbage_ends_the_connection(attacked: HeadgateBroker) -> None:
    draw = random.Random(4)
    for _ in range(100):
        with RawConnection(attacked.address) as connection, contextlib.suppress(ConnectionClosed):
            connection.send_bytes(struct.pack(">i", 64) + draw.randbytes(64))
            assert_closed(connection)


@pytest.mark.parametrize(
    ("first_bytes", "hint"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "looks like HTTP"),
        (b"POST /subjects HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (bytes.fromhex("16030100f5010000f10303") + bytes(200), "looks like TLS"),
    ],
)
def test_the_log_names_the_protocol_of_foreign_clients(attacked: HeadgateBroker, first_bytes: bytes, hint: str) -> None:
    with RawConnection(attacked.address) as connection, contextlib.suppress(ConnectionClosed):
        connection.send_bytes(first_bytes)
        assert_closed(connection)
    assert hint in log_of(attacked)


@pytest.mark.parametrize(
    ("api_key", "version"), [(999, 0), (-1, 0), (3, -1), (3, 14), (0, 2), (1, 99), (32767, 32767), (4, 0), (36, 0)]
)
def test_an_unknown_api_or_version_ends_the_connection_with_a_reason(
    attacked: HeadgateBroker, api_key: int, version: int
) -> None:
    with RawConnection(attacked.address) as connection:
        connection.send_frame(request_header(api_key, version, 1, flexible=False) + bytes(20))
        assert_closed(connection)
    assert f"API {api_key} is " in log_of(attacked)


@pytest.mark.parametrize("version", [5, 6, 100, 32767, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0(attacked: HeadgateBroker, version: int) -> None:
    with RawConnection(attacked.address) as connection:
        connection.send_frame(request_header(18, version, 9, flexible=True) + bytes(10))
        answer = connection.receive_frame()
        assert struct.unpack_from(">ihihhh", answer) == (9, 35, 1, 18, 0, 4)
        # The connection stays open, so that the client can retry with a supported version.
        assert connection.ask("api_versions", 4, SOFTWARE)["error_code"] == "NONE"


def test_tagged_fields_that_nobody_knows_are_passed_over(attacked: HeadgateBroker) -> None:
    header = request_header(3, 12, 1, flexible=True)[:-1] + b"\x01\x63\x03abc"
    body = encode_request("metadata", 12, {"topics": None})[:-1] + b"\x02\x05\x00\x07\x02hi"
    with RawConnection(attacked.address) as connection:
        connection.send_frame(header + body)
        assert struct.unpack_from(">i", connection.receive_frame()) == (1,)


def test_a_request_is_answered_though_the_client_will_send_no_more(attacked: HeadgateBroker) -> None:
    host, _, port = attacked.address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while part := client.recv(65536):
            received += part
    assert struct.unpack_from(">i", received, 4) == (1,)


def test_slow_writers_of_whole_requests_are_served(attacked: HeadgateBroker) -> None:
    frame = struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS
    connections = [RawConnection(attacked.address) for _ in range(30)]
    for start in range(0, len(frame), 5):
        for connection in connections:
            connection.send_bytes(frame[start : start + 5])
        time.sleep(0.01)
    for connection in connections:
        assert struct.unpack_from(">i", connection.receive_frame()) == (1,)
        connection.close()
