"""The proxy's HTTP application: FastAPI behind the plain front, and the one place that maps faults to answers."""

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import Depends, FastAPI
from headgate.web.errors import error_body
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.proxy.api import health
from headgate.proxy.api.addresses import access_of
from headgate.proxy.api.answers import JSON, V2_JSON
from headgate.proxy.api.errors import error_headers, status_of
from headgate.proxy.api.escaped_paths import restore_slashes
from headgate.proxy.api.forwarding import Forwarding
from headgate.proxy.api.front import Front
from headgate.proxy.api.methods import allowed
from headgate.proxy.api.v2 import consumers as v2_consumers
from headgate.proxy.api.v2 import records_read as v2_records_read
from headgate.proxy.api.v2 import topics as v2_topics
from headgate.proxy.api.v3 import (
    acls,
    brokers,
    clusters,
    configs,
    group_streams,
    groups,
    partitions,
    read_socket,
    records_read,
    topics,
)
from headgate.proxy.errors import ProxyError
from headgate.proxy.services import Services, open_services
from headgate.proxy.settings import ProxySettings

_log: Final = logging.getLogger(__name__)
_REASONS: Final = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}
Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]


def create_app(settings: ProxySettings, listen_host: str = "127.0.0.1") -> Front:
    """An ASGI application. What it holds is closed, and records under way are delivered, when its lifespan ends.

    `listen_host` is the host of the listening socket. Raises InvalidSetting.
    """
    access = access_of(settings, listen_host)
    services = open_services(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await services.close()

    app = FastAPI(
        title="Headgate REST proxy",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(restore_slashes)],
        exception_handlers=_handlers(),
    )
    app.state.services = services
    app.include_router(v2_consumers.router)
    app.include_router(v2_records_read.router)
    for reading in (records_read, group_streams, read_socket):
        app.include_router(reading.router)
    app.include_router(v2_topics.router)
    app.include_router(health.router)
    for module in (clusters, brokers, configs, topics, partitions, groups, acls):
        app.include_router(module.router)
    app.include_router(acls.batch_router)
    app.add_middleware(Forwarding, services=services)
    return Front(app, services, access)


def services_of(request: Request) -> Services:
    """For routes: `Depends(services_of)`."""
    services: Services = request.app.state.services
    return services


def media_type_of(request: Request) -> str:
    return JSON if request.url.path.startswith("/v3") else V2_JSON


def _handlers() -> dict[int | type[Exception], Handler]:
    def failed(request: Request, status: int, code: int, message: str) -> Response:
        return Response(error_body(code, message), status_code=status, media_type=media_type_of(request))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, ProxyError)
        fault = status_of(error)
        response = failed(request, fault.status, fault.error_code, str(error))
        for name, value in error_headers(error):
            response.headers[name.decode()] = value.decode()
        return response

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = failed(request, error.status_code, error.status_code, _REASONS.get(error.status_code, error.detail))
        if error.headers:
            response.headers.update(error.headers)
        if error.status_code == 405:
            response.headers["allow"] = allowed(request)
        return response

    async def unforeseen(request: Request, error: Exception) -> Response:
        _log.exception("%s %s", request.method, request.url.path, exc_info=error)
        return failed(request, 500, 500, "Internal Server Error")

    return {ProxyError: refused, HTTPException: unrouted, Exception: unforeseen}
