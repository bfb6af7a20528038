"""Plain ASGI path in front of FastAPI: cached responses, media types, request bodies, context prefixes in paths.

| request | handled by |
|---|---|
| GET or POST with a cached response | this module |
| POST /subjects/{subject}/versions | the route's handler, without FastAPI's routing |
| all other requests | FastAPI, with the rewritten path of `context_paths` |

Paths stay percent-encoded until a handler reads them, because a subject may contain a slash.
"""

from typing import Final
from urllib.parse import quote, unquote_to_bytes

from headgate.openapi.media_types import (
    EVENT_STREAM,
    JSON,
    NDJSON,
    OCTET_STREAM,
    REGISTRY_REQUESTS,
    REGISTRY_RESPONSES,
    REGISTRY_V1,
    content_type,
    negotiate,
)
from headgate.registry import limits
from headgate.registry.api.context_paths import rewritten
from headgate.registry.api.errors import HttpError
from headgate.web.asgi import App, Receive, Scope, Send
from headgate.web.errors import REASONS
from headgate.web.request_body import (
    BodyTimedOut,
    BodyTooLarge,
    ClientDisconnected,
    read_body,
    replayed,
    with_idle_timeout,
)
from headgate.web.response_cache import CachedResponse, CacheKey, ResponseCache, ResponseCapture, Tag
from headgate.web.responses import send_error, without_body

_DRAINED_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much of a body over the limit is read and dropped, so that the client reads the error response."""
_EXTRA_RESPONSES: Final = {"/changes": (EVENT_STREAM, NDJSON), "/export": (NDJSON, JSON)}
_EXTRA_REQUESTS: Final = {"/import": frozenset({NDJSON, JSON, OCTET_STREAM})}
_STREAMED_REQUESTS: Final = frozenset({"/import"})

CACHING: Final = "registry.caching"
RESPONSE_TYPE: Final = "registry.response_type"
"""Keys in the ASGI scope of a request: its `Caching` and the media type of its response."""


class Caching:
    """Filled in by a handler whose response may be cached."""

    __slots__ = ("generation", "tags")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.tags: tuple[Tag, ...] | None = None
        """None: do not cache the response."""


class FastPath:
    def __init__(self, app: App, cache: ResponseCache, register: App) -> None:
        """`register` handles registrations without FastAPI."""
        self._app = app
        self._register = register
        self._cache = cache

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        accept, media = b"", b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value if not accept else accept + b"," + value
            elif name == b"content-type":
                media = value
        raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        if scope["method"] == "GET":
            cached = self._cache.get((b"GET", raw_path, scope["query_string"], b""))
            if cached is not None:
                response_type = negotiate(accept.decode("latin-1"))
                if response_type is not None:
                    await cached.send(scope, send, response_type)
                    return
        try:
            await self._handle(scope, receive, send, raw_path, accept.decode("latin-1"), media)
        except HttpError as error:
            await send_error(send, error.status, error.code, str(error), REGISTRY_V1, error.headers)

    async def _handle(
        self, scope: Scope, receive: Receive, send: Send, raw_path: bytes, accept: str, media: bytes
    ) -> None:
        method: str = scope["method"]
        _check_utf8(raw_path, "path")
        _check_utf8(scope["query_string"], "query")
        path, query = rewritten(raw_path, scope["query_string"])
        response_type = negotiate(accept, (*REGISTRY_RESPONSES, *_EXTRA_RESPONSES.get(path, ())))
        if response_type is None:
            raise HttpError(406, REASONS[406])
        body = b""
        if method in ("POST", "PUT"):
            media_type, charset = content_type(media.decode("latin-1"))
            if media_type and media_type not in _EXTRA_REQUESTS.get(path, REGISTRY_REQUESTS):
                raise HttpError(415, REASONS[415])
            if path in _STREAMED_REQUESTS:
                receive = with_idle_timeout(receive, limits.BODY_SILENCE_SECONDS_MAX, _timed_out)
            else:
                body = _in_utf8(await _read_body(receive), charset)
                receive = replayed(body, receive)
        key: CacheKey = (method.encode(), raw_path, scope["query_string"], media + b"\0" + body)
        if method == "POST":
            cached = self._cache.get(key)
            if cached is not None:
                await cached.send(scope, send, response_type)
                return
        caching = Caching(self._cache.generation)
        inner = dict(scope)
        inner.update(path=path, raw_path=path.encode(), query_string=query)
        inner[CACHING], inner[RESPONSE_TYPE] = caching, response_type
        if method == "HEAD":
            inner["method"] = "GET"
            send = without_body(send)
        if method not in ("GET", "POST"):
            await self._app(inner, receive, send)
            return
        app = self._app
        if method == "POST":
            parts = path.split("/")
            if len(parts) == 4 and parts[1] == "subjects" and parts[3] == "versions":
                inner["path_params"] = {"subject": parts[2]}
                app = self._register
        captured = ResponseCapture(send)
        await app(inner, receive, captured.send)
        if caching.tags is not None and captured.status == 200 and captured.body is not None:
            if method == "GET":
                key = (b"GET", raw_path, scope["query_string"], b"")
            self._cache.put(key, CachedResponse(captured.body), caching.tags, caching.generation)


def response_type_of(scope: Scope) -> str:
    """The negotiated media type of the response. The default type if the request is rejected before negotiation."""
    found: str = scope.get(RESPONSE_TYPE, REGISTRY_V1)
    return found


def _timed_out() -> HttpError:
    idle = f"{limits.BODY_SILENCE_SECONDS_MAX:g} seconds"
    return HttpError(408, f"The rest of the request body did not arrive within {idle}")


async def _read_body(receive: Receive) -> bytes:
    try:
        return await read_body(
            receive, limits.BODY_BYTES_MAX, limits.BODY_SILENCE_SECONDS_MAX, drained_bytes_max=_DRAINED_BYTES_MAX
        )
    except BodyTooLarge:
        raise HttpError(422, f"The request body has more than {limits.BODY_BYTES_MAX} bytes", 42209) from None
    except BodyTimedOut:
        raise _timed_out() from None
    except ClientDisconnected:
        raise HttpError(400, "The client closed the connection before the end of the request body") from None


def _in_utf8(body: bytes, charset: str) -> bytes:
    if charset in ("utf-8", "utf8"):
        return body
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError):
        raise HttpError(400, f"The request body is not text in the charset {charset[:100]}") from None


def _check_utf8(raw: bytes, part: str) -> None:
    """Rejects other encodings: replacement characters would give one subject several names."""
    if b"%" not in raw and raw.isascii():
        return
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, f"The {part} is not UTF-8: {error.reason} at byte {error.start}") from None
