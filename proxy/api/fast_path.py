"""Plain ASGI path in front of FastAPI.

For all routes: rate limits, Content-Encoding, percent-encoded paths, trailing slashes. Produce requests are handled
here (`produce_endpoint`), because FastAPI's routing would cost more than the request itself.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from headgate.proxy.api.content_encoding import compressed, decompressed, negotiate_encoding
from headgate.proxy.api.errors import media_type_of, send_error
from headgate.proxy.api.escaped_paths import unescape_path
from headgate.proxy.api.produce_endpoint import ProduceEndpoint
from headgate.proxy.api.rate_limit import RateLimit, client_of
from headgate.proxy.api.request_headers import RequestHeaders
from headgate.proxy.api.v3.produce_websocket import ProduceWebSocket
from headgate.proxy.errors import ProxyError
from headgate.proxy.services import Services
from headgate.web.asgi import App, Receive, Scope, Send

_V2_PRODUCE: Final = re.compile(rb"/topics/([^/]+)(?:/partitions/([^/]+))?\Z")
_V3_PRODUCE: Final = re.compile(rb"/v3/clusters/([^/]+)/topics/([^/]+)/records(:batch)?\Z")
_V3_WEBSOCKET: Final = re.compile(rb"/v3/clusters/([^/]+)/topics/([^/]+)/records:produce/?\Z")
PRODUCE_PATHS: Final = (_V2_PRODUCE, _V3_PRODUCE)


class FastPath:
    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._limit = RateLimit(services.settings)
        self._produce = ProduceEndpoint(services, self._limit)
        self._websocket = ProduceWebSocket(services, self._limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._handle_websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: bytes = scope["raw_path"]
        headers = RequestHeaders(scope)
        try:
            if path.endswith(b"/") and len(path) > 1:
                # Ignored, as in Confluent's REST Proxy. Some clients add one.
                path = path[:-1]
                scope = {**scope, "path": scope["path"].removesuffix("/"), "raw_path": path}
            if b"%" in path:
                scope = unescape_path(scope)
            if self._limit.is_on:
                client = client_of(scope)
                self._limit.take(client)
                receive = self._limit.counting(receive, client)
            if headers.content_encoding:
                receive = decompressed(receive, headers.content_encoding)
        except ProxyError as error:
            await send_error(send, error, media_type_of(scope))
            return
        if headers.accept_encoding:
            encoding = negotiate_encoding(headers.accept_encoding)
            if encoding is not None:
                send = compressed(send, scope, encoding)
        if scope["method"] == "POST":
            match = _V2_PRODUCE.match(path)
            if match is not None:
                await self._produce.produce_v2(_text(match[1]), match[2], headers, receive, send)
                return
            match = _V3_PRODUCE.match(path)
            if match is not None:
                cluster_id, topic = _text(match[1]), _text(match[2])
                if match[3] is None:
                    await self._produce.stream_v3(cluster_id, topic, headers, scope, receive, send)
                else:
                    await self._produce.batch_v3(cluster_id, topic, headers, receive, send)
                return
        await self._app(scope, receive, send)

    async def _handle_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: bytes = scope["raw_path"]
        try:
            if b"%" in path:
                scope = unescape_path(scope)
        except ProxyError:
            await send({"type": "websocket.close"})  # The handshake is not complete, so the server sends a 403.
            return
        match = _V3_WEBSOCKET.match(path)
        if match is not None:
            headers = RequestHeaders(scope)
            await self._websocket.serve(_text(match[1]), _text(match[2]), headers, receive, send, client_of(scope))
        else:
            await self._app(scope, receive, send)


def _text(quoted: bytes) -> str:
    return (unquote_to_bytes(quoted) if b"%" in quoted else quoted).decode()
