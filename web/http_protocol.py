"""uvicorn's HTTP/1.1 protocol with limits for request heads: size, time, number of pipelined requests.

uvicorn's httptools parser has no such limits. The protocol counts bytes that have not become part of a request yet: the
request line, headers, chunk extensions and trailers. Body limits are in `web.request_body`.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from headgate.web.errors import error_body

HEAD_BYTES_MAX: Final = 64 * 1024
"""Browsers and reverse proxies limit heads to 8-32 KiB."""
HEAD_SECONDS_MAX: Final = 60.0
"""From the start of the connection, or the first byte of a later request, to the end of the head."""
PIPELINED_REQUESTS_MAX: Final = 1_000
"""Requests that a client sends before it has read the first response. Each one uses several kilobytes of memory."""


class HeadRejected(Exception):
    """Stops the parser. uvicorn then calls `send_400_response`."""


class _ResponseTransport(asyncio.Transport):
    """Sends the head of a response together with its body, in one system call. Streams send their head at once."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._head: bytes | None = None
        self.close = self._transport.close  # type: ignore[method-assign]
        self.is_closing = self._transport.is_closing  # type: ignore[method-assign]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head is None and self._cycle.chunked_encoding is False:  # The response has a Content-Length.
            self._head = bytes(data)
        elif self._head:
            self._transport.write(b"".join((self._head, data)))
            self._head = b""
        else:
            self._transport.write(data)


class BoundedHttpProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's signature
        super().connection_made(transport)
        self._unparsed_bytes = 0
        self._is_in_body = False
        self._is_head_too_large = False
        self._is_rejected = False
        self._running: RequestResponseCycle | None = None
        self._head_timer: asyncio.TimerHandle | None = self.loop.call_later(HEAD_SECONDS_MAX, self._head_timed_out)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reset_head()
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if not self._unparsed_bytes or self._is_rejected or self.transport.is_closing():
            return
        if self._unparsed_bytes > HEAD_BYTES_MAX:
            self._is_head_too_large = True
            self.send_400_response("")
        elif self._head_timer is None and not self._is_in_body:
            self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self._head_timed_out)

    def on_headers_complete(self) -> None:
        # The counted bytes may include a body that arrived together with a small head.
        if self._unparsed_bytes > HEAD_BYTES_MAX and self._head_bytes() > HEAD_BYTES_MAX:
            self._is_head_too_large = True
            raise HeadRejected
        if len(self.pipeline) >= PIPELINED_REQUESTS_MAX:
            raise HeadRejected
        self._reset_head()
        self._is_in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._reset_head()
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_rejected and not self._is_responding():
            self.transport.close()
        elif self.pipeline or self._is_rejected:
            # Resume reading after the last pipelined request, not after each response.
            self.flow.pause_reading()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP with the error body of the APIs."""
        self._reset_head()
        newest = self.cycle if self._is_responding() else None
        if newest is not None and not self._is_in_body:
            # Send the responses of earlier requests first, then close the connection.
            self._is_rejected = True
            self.flow.pause_reading()
            return
        if newest is None or not (self.pipeline or newest.response_started):
            status = 431 if self._is_head_too_large else 400
            reason = f"The request head is larger than the limit of {HEAD_BYTES_MAX} bytes." if status == 431 else msg
            body = error_body(status, reason)
            self.transport.write(
                b"%bcontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (STATUS_LINE[status], b"application/json", len(body), body)
            )
        self._disconnect()
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if cycle.scope["method"] != "HEAD":
            cycle.transport = _ResponseTransport(cycle)
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Send `http.disconnect` to the running request too. uvicorn sends it to the newest request only."""
        self.pipeline.clear()
        for cycle in (self._running, self.cycle):
            if cycle is not None:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _reset_head(self) -> None:
        self._unparsed_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        self._head_timer = None
        # Bytes after a request must not end its response, which may be a stream.
        if not self._is_responding():
            self.transport.close()

    def _is_responding(self) -> bool:
        newest: RequestResponseCycle | None = self.cycle
        return newest is not None and not newest.response_complete
