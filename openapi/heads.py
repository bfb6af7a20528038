"""Heads of requests, bounded in size, time and number: uvicorn's fast parser takes them as they come. For every server.

What is counted are bytes that have become nothing yet: a request line, headers, the extension of a chunk, trailers.
Bodies are bounded where they are read, by each server itself.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from headgate.openapi.errors import error_body

head_bytes_max: Final = 64 * 1024
"""Several times what browsers, and the web servers in front of us, take."""
head_seconds_max: Final = 60.0
"""From the connection, or the first byte of a later request, to the end of the head."""
pipelined_max: Final = 1_000
"""Requests sent without waiting for the answer to the first; hundreds fit a packet, and each costs kilobytes."""


class HeadRefused(Exception): ...


class BoundedHeads(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._open_bytes = 0
        self._is_in_body = False
        self._is_too_large = False
        self._is_refused = False
        self._running: RequestResponseCycle | None = None
        self._slow: asyncio.TimerHandle | None = self.loop.call_later(head_seconds_max, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._progress()
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._open_bytes += len(data)
        super().data_received(data)
        if not self._open_bytes or self._is_refused or self.transport.is_closing():
            return
        if self._open_bytes > head_bytes_max:
            self._is_too_large = True
            self.send_400_response("")
        elif self._slow is None and not self._is_in_body:
            self._slow = self.loop.call_later(head_seconds_max, self._give_up)

    def on_headers_complete(self) -> None:
        # The bytes may be a body that came along with a small head.
        if self._open_bytes > head_bytes_max and self._head_bytes() > head_bytes_max:
            self._is_too_large = True
            raise HeadRefused
        if len(self.pipeline) >= pipelined_max:
            raise HeadRefused
        self._progress()
        self._is_in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._open_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress()
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_refused and not self._is_answering():
            self.transport.close()
        elif self.pipeline or self._is_refused:
            # More is read when these are answered, not with each answer.
            self.flow.pause_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, in the words of all refusals."""
        self._progress()
        newest = self.cycle if self._is_answering() else None
        if newest is not None and not self._is_in_body:
            # Those before it are answered, in their order; then the connection ends.
            self._is_refused = True
            self.flow.pause_reading()
            return
        if newest is None or not (self.pipeline or newest.response_started):
            status = 431 if self._is_too_large else 400
            reason = f"The head of the request is over the limit of {head_bytes_max} bytes." if status == 431 else msg
            body = error_body(status, reason)
            self.transport.write(
                b"%bcontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (STATUS_LINE[status], b"application/json", len(body), body)
            )
        self._disconnect()
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """uvicorn tells the last request that came, which need not be the one that is being answered."""
        self.pipeline.clear()
        for cycle in (self._running, self.cycle):
            if cycle is not None:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _progress(self) -> None:
        self._open_bytes = 0
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _give_up(self) -> None:
        self._slow = None
        # A stray byte behind a request does not end its answer, which may be a stream.
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        newest: RequestResponseCycle | None = self.cycle
        return newest is not None and not newest.response_complete
