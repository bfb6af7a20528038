"""The shortest way to a kept answer: the bytes of a request that was answered before, to the bytes of its answer.

A keep-alive client asks again with the very same bytes, headers and all. Where a kept answer was just given for them,
it is given again without parsing HTTP or starting a task, until `AnswerCache` drops it. Everything else goes to
uvicorn's own protocol with its bounds (`openapi.heads`), which this one extends.
"""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headgate.openapi.heads import BoundedHeads
from headgate.registry.api.answer_cache import Answer

_REQUESTS_KEPT_MAX: Final = 20_000
_REQUEST_BYTES_MAX: Final = 16 * 1024
"""Longer requests come in several pieces and are never seen whole."""


class Shortcuts:
    """Requests that were seen, with their answers. Belongs to the event loop."""

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[Answer, bytes]] = {}
        self.taken = 0
        """How many requests were answered this way; they pass by everything else that counts."""

    def learn(self, request: bytes, answer: Answer, media_type: str) -> None:
        if len(self.known) >= _REQUESTS_KEPT_MAX:
            self.known.clear()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {len(answer.body)}\r\n\r\n"
        self.known[request] = (answer, head.encode() + answer.body)

    def protocol(self) -> type[HttpToolsProtocol]:
        """The protocol class that a server of this application runs."""
        return type("ShortcutProtocol", (_ShortcutProtocol,), {"shortcuts": self})


class _ShortcutProtocol(BoundedHeads):
    shortcuts: Shortcuts

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._inside_message = False
        self._request = b""
        self._messages = 0
        self._answered_at = 0.0

    def data_received(self, data: bytes) -> None:
        idle = not self._inside_message and self._answered()
        if idle:
            known = self.shortcuts.known.get(data)
            if known is not None:
                answer, response = known
                if answer.valid and not self.flow.write_paused and not self.transport.is_closing():
                    self._answered_at = self.loop.time()
                    self.shortcuts.taken += 1
                    self.transport.write(response)
                    return
                del self.shortcuts.known[data]
        self._request = data if idle and len(data) <= _REQUEST_BYTES_MAX else b""
        self._messages = 0
        super().data_received(data)

    def _answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def on_message_begin(self) -> None:
        self._inside_message = True
        self._messages += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._request and self._messages == 1 and not self.expect_100_continue:
            self.scope["headgate.learn"] = self._learner(self._request)  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._inside_message = False
        super().on_message_complete()

    def _learner(self, request: bytes) -> Any:
        def learn(answer: Answer, media_type: str) -> None:
            whole = not self._inside_message and self._messages == 1 and request is self._request
            if whole and self.cycle.keep_alive and self.scope["http_version"] == "1.1":
                self.shortcuts.learn(request, answer, media_type)

        return learn

    def timeout_keep_alive_handler(self) -> None:
        # The timer was armed by the last ordinary answer; later ones by shortcut only left their time.
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()
