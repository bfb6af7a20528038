"""Pages of other origins: which may read our answers (CORS, the Fetch standard), and which may open a WebSocket.

`access.control.allow.origin` is a list as in Confluent's proxy: origins, with `*` for any part of a name or for all.
Without it browsers keep answers from pages of other origins by themselves. They do not do so for WebSockets: there it
is the server that must look (RFC 6455, section 10.2).
"""

import re
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from proxy.api.addresses import base_url
from proxy.api.answers import Message, Scope, Send, send_answer
from proxy.settings import ProxySettings

_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_HEADERS: Final = (
    "Accept, Authorization, Content-Encoding, Content-Type, Idempotency-Key, Last-Event-ID, X-Requested-With"
)
# Headers of answers that a page may look at beside those that it always may.
_EXPOSED: Final = b"Allow, Idempotency-Replayed, Location, Retry-After, X-Headgate-Replay"
# How long a browser may remember what it was told; none does so for longer than two hours.
_REMEMBERED_SECONDS: Final = b"7200"
_PLAIN: Final = "text/plain"


class Origins:
    def __init__(self, settings: ProxySettings) -> None:
        names = [name.strip() for name in settings.access_control_allow_origin.split(",") if name.strip()]
        self.is_on = bool(names)
        self._advertised_url = settings.advertised_url
        self._every = "*" in names
        patterns = (re.escape(name).replace(r"\*", "[A-Za-z0-9.-]*") for name in names)
        self._allowed = re.compile("|".join(patterns).encode() if names else rb"(?!)", re.IGNORECASE)
        self._methods = (settings.access_control_allow_methods.strip() or _METHODS).encode()
        self._headers = (settings.access_control_allow_headers.strip() or _HEADERS).encode()

    def allows(self, origin: bytes) -> bool:
        return self._every or self._allowed.fullmatch(origin) is not None

    def admits_socket(self, scope: Scope) -> bool:
        """A page of our own, one that is allowed, or no page at all."""
        origin = _header(scope, b"origin")
        if not origin or self.allows(origin):
            return True
        # No page chooses these headers of its handshake: they are the browser's, or those of the proxies in front.
        own = urlsplit(base_url(HTTPConnection(scope), self._advertised_url)).netloc.encode()
        try:
            return urlsplit(origin.lower()).netloc in (_header(scope, b"host").lower(), own.lower())
        except ValueError:
            return False

    async def answer_preflight(self, scope: Scope, send: Send) -> bool:
        """Whether this was a browser that asks before it sends what a page wants to send."""
        if scope["method"] != "OPTIONS":
            return False
        origin, method = _header(scope, b"origin"), _header(scope, b"access-control-request-method")
        if not origin or not method:
            return False
        headers = self._marks(origin)
        if self.allows(origin):
            headers += [
                (b"access-control-allow-methods", self._methods),
                (b"access-control-allow-headers", self._headers),
                (b"access-control-max-age", _REMEMBERED_SECONDS),
            ]
            if _header(scope, b"access-control-request-private-network"):
                headers.append((b"access-control-allow-private-network", b"true"))
        await send_answer(send, 200, b"", _PLAIN, headers)
        return True

    def marked(self, scope: Scope, send: Send) -> Send:
        """`send`, with answers that tell a browser which page may read them."""
        origin = _header(scope, b"origin")

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                marks = self._marks(origin)
                if origin and self.allows(origin):
                    marks.append((b"access-control-expose-headers", _EXPOSED))
                message = {**message, "headers": [*message.get("headers", ()), *marks]}
            await send(message)

        return send_marked

    def _marks(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        if self._every:
            return [(b"access-control-allow-origin", b"*")] if origin else []
        # For caches: the answer to another page differs, even where this one got nothing.
        marks = [(b"vary", b"origin")]
        if origin and self.allows(origin):
            marks.append((b"access-control-allow-origin", origin))
        return marks


def _header(scope: Scope, name: bytes) -> bytes:
    found: bytes = next((value for field, value in scope["headers"] if field == name), b"")
    return found
