"""Cross-origin resource sharing: which pages of other origins may use this server (the Fetch standard).

`access.control.allow.origin` is a list as in Confluent's servers: origins, with `*` for any part of a name or for all.
"""

import re
from typing import Final

from headgate.web.asgi import Message, Scope, Send
from headgate.web.settings import AccessSettings, listed

_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_HEADERS: Final = (
    "Accept, Authorization, Content-Encoding, Content-Type, Idempotency-Key, Last-Event-ID, X-Requested-With"
)
# Response headers that a page may read in addition to those of the Fetch standard.
_EXPOSED: Final = b"Allow, Idempotency-Replayed, Location, Retry-After, X-Headgate-Replay"
# How long a browser may cache the response to a preflight. No browser caches it for more than two hours.
_MAX_AGE_SECONDS: Final = b"7200"


class Cors:
    def __init__(self, settings: AccessSettings) -> None:
        names = listed(settings.access_control_allow_origin)
        self.is_on = bool(names)
        self.allows_all = "*" in names
        patterns = (re.escape(name).replace(r"\*", "[A-Za-z0-9.-]*") for name in names)
        self._allowed = re.compile("|".join(patterns).encode() if names else rb"(?!)", re.IGNORECASE)
        self._methods = (settings.access_control_allow_methods.strip() or _METHODS).encode()
        self._headers = (settings.access_control_allow_headers.strip() or _HEADERS).encode()

    def allows(self, origin: bytes) -> bool:
        return self.allows_all or self._allowed.fullmatch(origin) is not None

    async def answer_preflight(self, scope: Scope, send: Send) -> bool:
        """Answers a preflight request and returns True. Returns False for every other request."""
        if scope["method"] != "OPTIONS":
            return False
        origin, method = _header(scope, b"origin"), _header(scope, b"access-control-request-method")
        if not origin or not method:
            return False
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"0"), *self._marks(origin)]
        if self.allows(origin):
            headers += [
                (b"access-control-allow-methods", self._methods),
                (b"access-control-allow-headers", self._headers),
                (b"access-control-max-age", _MAX_AGE_SECONDS),
            ]
            if _header(scope, b"access-control-request-private-network"):
                headers.append((b"access-control-allow-private-network", b"true"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return True

    def marked(self, scope: Scope, send: Send) -> Send:
        """`send` that adds the response headers of CORS."""
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
        if self.allows_all:
            return [(b"access-control-allow-origin", b"*")] if origin else []
        # The response depends on the origin, also if it allows nothing: caches must not mix them up.
        marks = [(b"vary", b"origin")]
        if origin and self.allows(origin):
            marks.append((b"access-control-allow-origin", origin))
        return marks


def _header(scope: Scope, name: bytes) -> bytes:
    found: bytes = next((value for field, value in scope["headers"] if field == name), b"")
    return found
