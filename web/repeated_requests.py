"""Fast path for repeated requests: maps the raw bytes of a request to the raw bytes of its response.

Keep-alive clients repeat requests with identical bytes, headers included. If `ResponseCache` had a response for these
bytes and has not invalidated it since, the protocol sends it without parsing HTTP and without an asyncio task. All
other requests go through uvicorn's protocol.
"""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headgate.web.http_protocol import BoundedHttpProtocol
from headgate.web.response_cache import REMEMBER, CachedResponse

_REQUESTS_MAX: Final = 20_000
_REQUEST_BYTES_MAX: Final = 16 * 1024
"""Larger requests arrive in several reads, and the fast path compares single reads only."""


class RepeatedRequests:
    """Responses by raw request. Not thread-safe: use it on the event loop only."""

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[CachedResponse, bytes]] = {}
        self.hits = 0
        """Requests answered by the fast path. No other component counts them."""

    def remember(self, request: bytes, response: CachedResponse, media_type: str) -> None:
        if len(self.known) >= _REQUESTS_MAX:
            self.known.clear()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {len(response.body)}\r\n\r\n"
        self.known[request] = (response, head.encode() + response.body)

    def protocol(self) -> type[HttpToolsProtocol]:
        """The protocol class for `uvicorn.Config(http=...)`."""
        return type("RepeatedRequestsProtocol", (_RepeatedRequestsProtocol,), {"repeated": self})


class _RepeatedRequestsProtocol(BoundedHttpProtocol):
    repeated: RepeatedRequests

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_inside_message = False
        self._request = b""
        self._messages = 0
        self._last_hit_at = 0.0

    def data_received(self, data: bytes) -> None:
        is_idle = not self._is_inside_message and self._is_response_complete()
        if is_idle:
            known = self.repeated.known.get(data)
            if known is not None:
                cached, response = known
                if cached.is_valid and not self.flow.write_paused and not self.transport.is_closing():
                    self._last_hit_at = self.loop.time()
                    self.repeated.hits += 1
                    self.transport.write(response)
                    return
                del self.repeated.known[data]
        self._request = data if is_idle and len(data) <= _REQUEST_BYTES_MAX else b""
        self._messages = 0
        super().data_received(data)

    def _is_response_complete(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def on_message_begin(self) -> None:
        self._is_inside_message = True
        self._messages += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._request and self._messages == 1 and not self.expect_100_continue:
            self.scope[REMEMBER] = self._remember_function(self._request)  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_inside_message = False
        super().on_message_complete()

    def _remember_function(self, request: bytes) -> Any:
        def remember(response: CachedResponse, media_type: str) -> None:
            is_whole = not self._is_inside_message and self._messages == 1 and request is self._request
            if is_whole and self.cycle.keep_alive and self.scope["http_version"] == "1.1":
                self.repeated.remember(request, response, media_type)

        return remember

    def timeout_keep_alive_handler(self) -> None:
        # The last parsed request started the timer. Hits only record their time, which is cheaper.
        left = self._last_hit_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()
