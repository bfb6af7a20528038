"""HTTP client that sends a body in pieces while it reads the response."""

import json
import socket
from typing import Any

SECONDS_MAX = 30.0


class Conversation:
    """One POST with a chunked body on a separate connection."""

    def __init__(self, url: str, path: str, **fields: str) -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS_MAX)
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n"
        fields = {"content_type": "application/json", **fields}
        head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"{head}\r\n".encode())
        self._buffer = b""
        self._lines: list[bytes] = []
        self._rest = b""
        self.is_over = False

    def send(self, data: bytes) -> None:
        self.socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def send_record(self, record: dict[str, Any]) -> None:
        self.send(json.dumps(record).encode() + b"\n")

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def status(self) -> int:
        """Wait for the response head and return the status."""
        while b"\r\n\r\n" not in self._buffer:
            self._fill()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1])

    def report(self) -> dict[str, Any] | None:
        """Return the next report, or None after the last one."""
        while not self._lines:
            if self.is_over:
                return None
            self._chunk()
        found: dict[str, Any] = json.loads(self._lines.pop(0))
        return found

    def reports(self) -> list[dict[str, Any]]:
        """Return all remaining reports."""
        found = []
        while (report := self.report()) is not None:
            found.append(report)
        return found

    def close(self) -> None:
        self.socket.close()

    def _chunk(self) -> None:
        while b"\r\n" not in self._buffer:
            self._fill()
        size_text, _, rest = self._buffer.partition(b"\r\n")
        size = int(size_text, 16)
        while len(rest) < size + 2:
            self._buffer = b""
            self._fill()
            rest += self._buffer
        self._buffer = rest[size + 2 :]
        if size == 0:
            self.is_over = True
            return
        *lines, self._rest = (self._rest + rest[:size]).split(b"\n")
        self._lines += lines

    def _fill(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the proxy closed the connection")
        self._buffer += data
