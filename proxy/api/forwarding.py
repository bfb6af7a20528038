"""Requests for consumers that live in another worker: passed on to it whole, answers streamed back.

Only to addresses of the configured list (`proxy.consumers.ownership`). A request that was passed on carries a mark and
is answered where it arrives: it never travels twice.
"""

import re
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import unquote

import httpx
from starlette.responses import Response, StreamingResponse

from headgate.proxy.api.errors import media_type_of, send_error
from headgate.proxy.api.request_body import read_body
from headgate.proxy.errors import OwnerUnavailable, ProxyError
from headgate.proxy.services import Services
from headgate.web.asgi import App, Receive, Scope, Send
from headgate.web.request_body import replayed

FORWARDED_HEADER: Final = "x-headgate-forwarded"
_HOP_BY_HOP: Final = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length", b"host")
)
# The worker that the client reached has checked who may send this request and adds the headers of CORS.
_NOT_PASSED_ON: Final = _HOP_BY_HOP | {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
# This worker's server sets its own.
_NOT_PASSED_BACK: Final = _HOP_BY_HOP | {b"date", b"server"}
_OWNED: Final = (
    re.compile(r"/consumers/([^/]+)/instances/([^/]+)(?:/.*)?"),
    re.compile(r"/v3/clusters/[^/]+/consumer-groups/([^/]+)/streams/([^/]+)(?:/.*)?"),
)


class Forwarding:
    """ASGI, before the routes: what belongs to another worker does not reach them."""

    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._ownership = services.ownership
        self._peers = services.peers
        self._body_bytes_max = services.settings.request_body_bytes_max
        self._silence_seconds = services.settings.request_body_timeout_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        owner = self._owner(scope) if scope["type"] == "http" and self._ownership.urls else None
        if owner is None:
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(receive, self._body_bytes_max, self._silence_seconds)
            response = await forward(self._peers, owner, scope, body)
        except ProxyError as error:
            await send_error(send, error, media_type_of(scope))
            return
        if response is None:
            await self._app(scope, replayed(body, receive), send)
        else:
            await response(scope, receive, send)

    def _owner(self, scope: Scope) -> str | None:
        path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        for pattern in _OWNED:
            match = pattern.fullmatch(path)
            if match is not None:
                return self._ownership.elsewhere(unquote(match[1]), unquote(match[2]))
        return None


async def forward(peers: httpx.AsyncClient, owner: str | None, scope: Scope, body: bytes) -> Response | None:
    """The owner's answer; None where this worker must answer itself. Raises OwnerUnavailable."""
    if owner is None or any(name == FORWARDED_HEADER.encode() for name, _ in scope["headers"]):
        return None
    path = scope.get("raw_path") or scope["path"].encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    headers.append((FORWARDED_HEADER.encode(), b"1"))
    if not any(name in (b"forwarded", b"x-forwarded-host") for name, _ in headers):
        # Links in the answer shall lead where the client came from, not to the owner's own address.
        headers += [(b"x-forwarded-host", host), (b"x-forwarded-proto", scope["scheme"].encode())]
    request = peers.build_request(
        scope["method"], httpx.URL(owner + (path + query).decode("latin-1")), headers=headers, content=body
    )
    try:
        answer = await peers.send(request, stream=True)
    except httpx.HTTPError as error:
        raise OwnerUnavailable(
            f"The worker that holds this consumer does not answer: {str(error) or type(error).__name__}."
        ) from error
    kept = {name: value for name, value in answer.headers.items() if name.encode() not in _NOT_PASSED_BACK}
    return StreamingResponse(_content(answer), status_code=answer.status_code, headers=kept)


async def _content(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    except httpx.HTTPError:
        return
    finally:
        await answer.aclose()
