"""The registry's HTTP application: FastAPI behind the plain front, and the one place that maps faults to answers."""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headgate.openapi.errors import error_body
from headgate.openapi.media_types import REGISTRY_V1
from headgate.registry.api.context import Api
from headgate.registry.api.errors import REASONS, HttpFault, status_and_code
from headgate.registry.api.front import App, Front, Receive, Scope, Send
from headgate.registry.api.routes import (
    associations,
    beyond,
    compatibility,
    dek_registry,
    schemas,
    server,
    settings,
    subjects,
)
from headgate.registry.errors import RegistryError
from headgate.registry.service.registry import Registry
from headgate.web.access import Access
from headgate.web.settings import AccessSettings

_log: Final = logging.getLogger(__name__)
Handler = Callable[..., Coroutine[Any, Any, Response]]


def create_app(registry: Registry, access: AccessSettings | None = None) -> Front:
    """An ASGI application that serves `registry`. It writes from when it starts until its lifespan ends.

    Without `access` it answers requests for loopback names and addresses only. Raises InvalidSetting.
    """
    checked = Access(access or AccessSettings(), f"{REGISTRY_V1} or application/json")
    api = Api(registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await api.close()

    routed: list[Route] = []
    handlers = _handlers(registry, routed)
    app = FastAPI(
        title="Headgate schema registry",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers=handlers,
    )
    for module in (schemas, subjects, compatibility, settings, associations, dek_registry, server, beyond):
        router = module.routes(api)
        routed += [route for route in router.routes if isinstance(route, Route)]
        app.include_router(router)
    return Front(app, api.cache, _unframed(subjects.registering(api), handlers), routed, api.begin_stop, checked)


def _unframed(handler: Handler, handlers: dict[int | type[Exception], Handler]) -> App:
    """A route called as it is: what the framework would add to it costs as much as the registration itself."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response: Response = await handler(request)
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind in handlers)
            response = await handlers[kind](request, error)
        await response(scope, receive, send)

    return app


def _allowed(routed: list[Route], path: str) -> list[str]:
    """The methods of every route that the path matches; the framework knows those of the first alone."""
    return sorted({method for route in routed if route.path_regex.match(path) for method in route.methods or ()})


def _handlers(registry: Registry, routed: list[Route]) -> dict[int | type[Exception], Handler]:
    detailed = registry.settings.detailed_conflict_code

    def failed(request: Request, status: int, code: int, message: str) -> Response:
        media_type = request.scope.get("registry_type", REGISTRY_V1)
        return Response(error_body(code, message), status_code=status, headers={"content-type": media_type})

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, RegistryError)
        status, code = status_and_code(error, detailed_conflict=detailed)
        if status >= 500:
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return failed(request, status, code, str(error))

    async def faulty(request: Request, error: Exception) -> Response:
        assert isinstance(error, HttpFault)
        response = failed(request, error.status, error.code, str(error))
        response.raw_headers.extend(error.headers)
        return response

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code
        response = failed(request, status, status, REASONS.get(status, error.detail))
        if status == 405:
            response.headers["allow"] = ", ".join(_allowed(routed, request.scope["path"]))
        return response

    async def unforeseen(request: Request, error: Exception) -> Response:
        _log.exception("%s %s", request.method, request.url.path, exc_info=error)
        return failed(request, 500, 500, REASONS[500])

    return {RegistryError: refused, HttpFault: faulty, HTTPException: unrouted, Exception: unforeseen}
