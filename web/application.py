"""The outermost ASGI layer of every HTTP API: access check, metrics and CORS.

Requests pass `Application`, then the API's fast path (plain ASGI, for hot and cached requests), then FastAPI.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.web.access import Access
from headgate.web.asgi import App, Receive, Scope, Send
from headgate.web.http_protocol import BoundedHttpProtocol
from headgate.web.landing_page import LandingPage
from headgate.web.metrics import MEDIA_TYPE, PATH, HttpMetrics
from headgate.web.response_cache import REMEMBER
from headgate.web.responses import send_response


class Application:
    def __init__(
        self,
        app: App,
        access: Access,
        media_type_of: Callable[[Scope], str],
        *,
        routes: Iterable[Route],
        begin_stop: Callable[[], None],
        metrics: HttpMetrics,
        landing_page: LandingPage | None = None,
        http_protocol: type[HttpToolsProtocol] = BoundedHttpProtocol,
    ) -> None:
        """`media_type_of` returns the media type of error responses. `routes` are the routes of FastAPI.

        The server calls `begin_stop` before it waits for open connections, so that the API ends its streams.
        """
        self._app = app
        self._access = access
        self._media_type_of = media_type_of
        self.routes = tuple(routes)
        self.begin_stop = begin_stop
        self.metrics = metrics
        self._landing_page = landing_page
        self.http_protocol = http_protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            self.metrics.watch_event_loop()
            await self._app(scope, receive, send)
            return
        refusal = self._access.refusal(scope)
        if refusal is not None:
            self.metrics.refused(refusal.status)
            await refusal.send(scope, send, self._media_type_of(scope))
            return
        if scope["type"] == "http":
            await self._count(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == PATH and scope["method"] in ("GET", "HEAD"):
            await send_response(send, 200, self.metrics.render(), MEDIA_TYPE)
            return
        if self._landing_page is not None and await self._landing_page.answer(scope, send):
            return
        send = self.metrics.begin(scope, send)
        try:
            await self._serve(scope, receive, send)
        finally:
            self.metrics.end()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._access.cors.is_on:
            if await self._access.cors.answer_preflight(scope, send):
                return
            send = self._access.cors.marked(scope, send)
            scope.pop(REMEMBER, None)  # `web.repeated_requests` would send the response without CORS headers.
        await self._app(scope, receive, send)


def routes_of(router: Any) -> Iterator[Route]:
    """All routes, including those of included routers, which FastAPI does not copy."""
    for route in router.routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from routes_of(included)
        elif isinstance(route, Route):
            yield route


def methods_of(routes: Iterable[Route], path: str) -> set[str]:
    """The methods of all routes that match `path`. Starlette's Allow header contains those of the first one only."""
    return {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
