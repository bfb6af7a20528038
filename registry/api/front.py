"""The plain ASGI path in front of FastAPI: the access check, kept answers, contexts in the path, media types, bodies.

A kept answer is sent from here and FastAPI never hears of the request. What passes is rewritten: `/contexts/x/...`
becomes `:.x:` before subjects, trailing slashes go, and paths stay percent-encoded so that a subject may hold a slash.
"""

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlencode

from starlette.routing import Route

from headgate.openapi.errors import error_body
from headgate.openapi.media_types import (
    EVENT_STREAM,
    JSON,
    NDJSON,
    REGISTRY_ANSWERS,
    REGISTRY_REQUESTS,
    content_type,
    negotiate,
)
from headgate.registry import limits
from headgate.registry.api.answer_cache import Answer, AnswerCache, Key, Mark
from headgate.registry.api.errors import REASONS, HttpFault
from headgate.registry.api.shortcut import Shortcuts
from headgate.registry.errors import InvalidSubject
from headgate.registry.subjects import context_prefix
from headgate.web.access import Access
from headgate.web.bodies import timed

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log: Final = logging.getLogger(__name__)
_DRAINED_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much of a body that is too large is read and thrown away, so that the client gets to read the answer."""
_OTHER_ANSWERS: Final = {"/changes": (EVENT_STREAM, NDJSON), "/export": (NDJSON, JSON)}
_OTHER_REQUESTS: Final = {"/import": frozenset({NDJSON, JSON, "application/octet-stream"})}
_UNBOUNDED: Final = frozenset({"/import"})


class Keep:
    """Where a handler says that its answer may be given again, and of what it tells."""

    __slots__ = ("generation", "marks")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.marks: tuple[Mark, ...] | None = None


class Front:
    def __init__(
        self,
        app: App,
        cache: AnswerCache,
        register: App,
        routes: Sequence[Route],
        begin_stop: Callable[[], None],
        access: Access,
    ) -> None:
        """`register` takes registrations past the framework. `routes` are those behind this front.

        A server calls `begin_stop` before it waits for its connections: it ends streams that would never end.
        """
        self._app = app
        self._register = register
        self.routes = routes
        self.begin_stop = begin_stop
        self._cache = cache
        self._access = access
        self.shortcuts = Shortcuts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._access.refusal(scope)
        if refused is not None:
            await refused.send(scope, send, REGISTRY_ANSWERS[0])
            return
        if self._access.cors.is_on:
            if await self._access.cors.answer_preflight(scope, send):
                return
            send = self._access.cors.marked(scope, send)
            scope.pop("headgate.learn", None)  # A shortcut would send the response without the headers of CORS.
        accept, media = b"", b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value if not accept else accept + b"," + value
            elif name == b"content-type":
                media = value
        method: str = scope["method"]
        raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        if method == "GET":
            key: Key = (b"GET", raw_path, scope["query_string"], b"")
            kept = self._cache.get(key)
            if kept is not None:
                answer_type = negotiate(accept.decode("latin-1"))
                if answer_type is not None:
                    await _give(scope, send, kept, answer_type)
                    return
        try:
            await self._pass(scope, receive, send, method, raw_path, accept.decode("latin-1"), media)
        except HttpFault as fault:
            await _send(send, fault.status, error_body(fault.code, str(fault)), REGISTRY_ANSWERS[0], fault.headers)

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, method: str, raw_path: bytes, accept: str, media: bytes
    ) -> None:
        _check_utf8(raw_path, "path")
        _check_utf8(scope["query_string"], "query")
        path, query = rewritten(raw_path, scope["query_string"])
        answer_type = negotiate(accept, (*REGISTRY_ANSWERS, *_OTHER_ANSWERS.get(path, ())))
        if answer_type is None:
            raise HttpFault(406, REASONS[406])
        body = b""
        if method in ("POST", "PUT"):
            media_type, charset = content_type(media.decode("latin-1"))
            if media_type and media_type not in _OTHER_REQUESTS.get(path, REGISTRY_REQUESTS):
                raise HttpFault(415, REASONS[415])
            receive = timed(receive, limits.body_silence_seconds_max, _timed_out)
            if path not in _UNBOUNDED:
                body = _in_utf8(await _body(receive), charset)
                receive = _replayed(body, receive)
        key: Key = (method.encode(), raw_path, scope["query_string"], media + b"\0" + body)
        if method == "POST":
            kept = self._cache.get(key)
            if kept is not None:
                await _give(scope, send, kept, answer_type)
                return
        keep = Keep(self._cache.generation)
        inner = dict(scope)
        inner.update(
            path=path, raw_path=path.encode(), query_string=query, registry_keep=keep, registry_type=answer_type
        )
        if method == "HEAD":
            inner["method"] = "GET"
            send = _without_body(send)
        if method not in ("GET", "POST"):
            await self._app(inner, receive, send)
            return
        status = 0
        sent: bytes | None = None

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body" and not message.get("more_body") and sent is None:
                sent = message.get("body", b"")
            await send(message)

        app = self._app
        if method == "POST":
            parts = path.split("/")
            if len(parts) == 4 and parts[1] == "subjects" and parts[3] == "versions":
                inner["path_params"] = {"subject": parts[2]}
                app = self._register
        await app(inner, receive, watched)
        if keep.marks is not None and status == 200 and sent is not None:
            if method == "GET":
                key = (b"GET", raw_path, scope["query_string"], b"")
            self._cache.keep(key, Answer(sent), keep.marks, keep.generation)


async def _give(scope: Scope, send: Send, kept: Answer, media_type: str) -> None:
    """A kept answer; a server that can is told to give it by itself next time."""
    learn = scope.get("headgate.learn")
    if learn is not None:
        learn(kept, media_type)
    await _send(send, 200, kept.body, media_type)


async def _send(
    send: Send, status: int, body: bytes, media_type: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", media_type.encode()),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _timed_out() -> HttpFault:
    silence = f"{limits.body_silence_seconds_max:g} seconds"
    return HttpFault(408, f"The rest of the request body did not arrive within {silence}")


def _without_body(send: Send) -> Send:
    async def headless(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return headless


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size <= limits.body_bytes_max:
            parts.append(part)
        elif size > _DRAINED_BYTES_MAX:
            break
        if not message.get("more_body"):
            break
    if size > limits.body_bytes_max:
        raise HttpFault(422, f"The request body has more than {limits.body_bytes_max} bytes", 42209)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _in_utf8(body: bytes, charset: str) -> bytes:
    if charset in ("utf-8", "utf8"):
        return body
    try:
        return body.decode(charset).encode()
    except (LookupError, UnicodeError):
        raise HttpFault(400, f"The request body is not text in the charset {charset[:100]}") from None


def _check_utf8(raw: bytes, what: str) -> None:
    """Names are text. Read with gaps, one subject would answer to many names that nobody meant."""
    if b"%" not in raw and raw.isascii():
        return
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise HttpFault(400, f"The {what} is not UTF-8: {error.reason} at byte {error.start}") from None


def rewritten(raw_path: bytes, query: bytes) -> tuple[str, bytes]:
    """Path and query without a context prefix: it moves into the subject, or the parameter that names one."""
    path = raw_path.decode("latin-1")
    if not path.isascii():
        path = quote(path, safe="/%:", encoding="latin-1")
    path = path.rstrip("/") or "/"
    if path.endswith("/referencedBy"):
        path = path.removesuffix("By") + "by"  # So clients of Redpanda's registry spell it.
    if not path.startswith("/contexts/"):
        return path, query
    parts = path.split("/")[2:]
    if len(parts) == 1:
        return path, query
    try:
        prefix = context_prefix(unquote(parts[0]))
    except InvalidSubject:
        raise HttpFault(400, "Context name cannot contain a colon") from None
    if parts[1] == "contexts":
        return rewritten(("/" + "/".join(parts[1:])).encode(), query)
    return _in_context(prefix, parts[1:]), _query_in_context(prefix, parts[1:], query)


def _qualified(prefix: str, name: str) -> str:
    return name if unquote(name).startswith((":.", ":*:")) else quote(prefix, safe="") + name


def _in_context(prefix: str, parts: list[str]) -> str:
    if parts[0] in ("config", "mode"):
        if len(parts) > 1:
            parts = [parts[0], _qualified(prefix, parts[1]), *parts[2:]]
        elif prefix:
            parts = [parts[0], quote(prefix, safe="")]
        return "/" + "/".join(parts)
    for index, part in enumerate(parts[:-1]):
        if part == "subjects" or (parts[0] == "dek-registry" and index == 4):
            parts = [*parts[: index + 1], _qualified(prefix, parts[index + 1]), *parts[index + 2 :]]
            break
    return "/" + "/".join(parts)


def _query_in_context(prefix: str, parts: list[str], query: bytes) -> bytes:
    if parts[:2] == ["schemas", "ids"]:
        name = "subject"
    elif parts in (["schemas"], ["subjects"], ["search"], ["export"]):
        name = "subjectPrefix"
    elif parts[0].startswith("associations"):
        name = "context"
    else:
        return query
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    given = next((value for key, value in pairs if key == name), "")
    if name == "context":
        given = prefix
    elif not given.startswith((":.", ":*:")):
        given = prefix + given
    kept = [(key, value) for key, value in pairs if key != name]
    return urlencode([*kept, (name, given)]).encode()
