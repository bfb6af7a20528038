"""Forwards requests for consumers to the worker that owns them, and streams the response back.

Requests go only to the configured worker URLs (`proxy.consumers.ownership`). A header marks forwarded requests, so that
no request is forwarded twice.
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
# The first worker has checked access already, and it adds the CORS headers.
_NOT_FORWARDED: Final = _HOP_BY_HOP | {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
# The first worker's server sets these headers.
_NOT_RETURNED: Final = _HOP_BY_HOP | {b"date", b"server"}
_OWNED: Final = (
    re.compile(r"/consumers/([^/]+)/instances/([^/]+)(?:/.*)?"),
    re.compile(r"/v3/clusters/[^/]+/consumer-groups/([^/]+)/streams/([^/]+)(?:/.*)?"),
)


class Forwarding:
    """ASGI middleware in front of the routes."""

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
    """The response of the owner. None if this worker must handle the request. Raises OwnerUnavailable."""
    if owner is None or any(name == FORWARDED_HEADER.encode() for name, _ in scope["headers"]):
        return None
    path = scope.get("raw_path") or scope["path"].encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_FORWARDED]
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    headers.append((FORWARDED_HEADER.encode(), b"1"))
    if not any(name in (b"forwarded", b"x-forwarded-host") for name, _ in headers):
        # Links in the response must use the address of the first worker, which the client can reach.
        headers += [(b"x-forwarded-host", host), (b"x-forwarded-proto", scope["scheme"].encode())]
    request = peers.build_request(
        scope["method"], httpx.URL(owner + (path + query).decode("latin-1")), headers=headers, content=body
    )
    try:
        response = await peers.send(request, stream=True)
    except httpx.HTTPError as error:
        raise OwnerUnavailable(
            f"The worker that owns this consumer is not available: {str(error) or type(error).__name__}."
        ) from error
    kept = {name: value for name, value in response.headers.items() if name.encode() not in _NOT_RETURNED}
    return StreamingResponse(_content(response), status_code=response.status_code, headers=kept)


async def _content(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.HTTPError:
        return
    finally:
        await response.aclose()
