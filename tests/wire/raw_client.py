"""A TCP connection that sends and receives Kafka frames. Tests can delay or corrupt requests and skip responses."""

import socket
import struct
from types import TracebackType
from typing import Self

from tests.wire.entities import (
    API_KEYS,
    Plain,
    decode_response,
    encode_request,
    request_is_flexible,
    response_is_flexible,
)

ANSWER_SECONDS_MAX = 15.0
CLIENT_ID = "wire-suite"


class ConnectionClosed(Exception):
    """The broker closed the connection without a response."""


class RawConnection:
    def __init__(self, address: str, seconds: float = ANSWER_SECONDS_MAX) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._waiting: list[tuple[int, str, int]] = []

    def ask(self, api: str, version: int, body: Plain) -> Plain:
        self.send(api, version, body)
        return self.receive()

    def send(self, api: str, version: int, body: Plain, *, answered: bool = True) -> None:
        self._correlation_id += 1
        header = request_header(
            API_KEYS[api], version, self._correlation_id, flexible=request_is_flexible(api, version)
        )
        self.send_frame(header + encode_request(api, version, body))
        if answered:
            self._waiting.append((self._correlation_id, api, version))

    def receive(self) -> Plain:
        correlation_id, api, version = self._waiting.pop(0)
        frame = self.receive_frame()
        (got,) = struct.unpack_from(">i", frame)
        if got != correlation_id:
            raise AssertionError(f"{api} v{version}: answer to {got}, expected {correlation_id}")
        start = 4
        if response_is_flexible(api, version):
            if frame[4] != 0:
                raise AssertionError(f"{api} v{version}: the response header carries tagged fields")
            start = 5
        return decode_response(api, version, frame[start:])

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, raw: bytes) -> None:
        try:
            self._socket.sendall(raw)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed from error

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._socket.recv(min(size, 1 << 20))
            except ConnectionResetError as error:
                raise ConnectionClosed from error
            if not part:
                raise ConnectionClosed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def request_header(api_key: int, version: int, correlation_id: int, *, flexible: bool) -> bytes:
    client = CLIENT_ID.encode()
    header = struct.pack(">hhih", api_key, version, correlation_id, len(client)) + client
    # The client id keeps its non-flexible encoding in flexible headers. Only the tag section is added.
    return header + b"\x00" if flexible else header
