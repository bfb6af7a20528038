"""The proxy's HTTP application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from headgate.proxy.api import health
from headgate.proxy.api.addresses import access_of
from headgate.proxy.api.errors import error_headers, media_type_of, status_of
from headgate.proxy.api.escaped_paths import restore_slashes
from headgate.proxy.api.fast_path import PRODUCE_PATHS, FastPath
from headgate.proxy.api.forwarding import Forwarding
from headgate.proxy.api.metrics import proxy_metrics
from headgate.proxy.api.v2 import consumers as v2_consumers
from headgate.proxy.api.v2 import read_records as v2_read_records
from headgate.proxy.api.v2 import topics as v2_topics
from headgate.proxy.api.v3 import (
    acls,
    brokers,
    clusters,
    configs,
    consume_websocket,
    dead_letters,
    group_streams,
    groups,
    partitions,
    read_records,
    topics,
)
from headgate.proxy.errors import ProxyError
from headgate.proxy.services import open_services
from headgate.proxy.settings import ProxySettings
from headgate.web.application import Application, methods_of, routes_of
from headgate.web.asgi import Scope
from headgate.web.connection import AbortableHttpProtocol
from headgate.web.exception_handlers import exception_handlers
from headgate.web.landing_page import LandingPage
from headgate.web.metrics import HttpMetrics

_LANDING_PAGE = LandingPage(
    "Headgate REST proxy",
    "This is the API of Confluent's REST Proxy, v2 and v3, for any Kafka cluster. It produces and reads records with "
    "or without schemas, runs consumers, and manages topics, configs and groups.",
    "docs/proxy.md",
    ("proxy_v2", "proxy_v3"),
    ("/topics", "/v3/clusters"),
)


def create_app(settings: ProxySettings, listen_host: str = "127.0.0.1") -> Application:
    """An ASGI application. The end of its lifespan delivers pending records and closes all connections.

    `listen_host` is the host of the listening socket. Raises InvalidSetting.
    """
    access = access_of(settings, listen_host)
    services = open_services(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await services.close()

    def allowed_methods(scope: Scope) -> set[str]:
        produce = {"POST"} if any(pattern.match(scope["raw_path"]) for pattern in PRODUCE_PATHS) else set()
        return methods_of(application.routes, scope["path"]) | produce

    app = FastAPI(
        title="Headgate REST proxy",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(restore_slashes)],
        exception_handlers=exception_handlers(
            (ProxyError,),
            status_of=status_of,
            headers_of=error_headers,
            media_type_of=media_type_of,
            methods_of=allowed_methods,
            logs_server_errors=False,  # While no broker is available, every request fails with a 503.
        ),
    )
    app.state.services = services
    for module in (v2_consumers, v2_read_records, read_records, group_streams, consume_websocket, v2_topics, health):
        app.include_router(module.router)
    for module in (clusters, brokers, configs, topics, partitions, groups, acls, dead_letters):
        app.include_router(module.router)
    app.include_router(acls.batch_router)
    app.add_middleware(Forwarding, services=services)
    application = Application(
        FastPath(app, services),
        access,
        media_type_of,
        routes=routes_of(app),
        begin_stop=services.begin_stop,
        metrics=HttpMetrics("proxy", lambda: proxy_metrics(services)),
        landing_page=_LANDING_PAGE,
        http_protocol=AbortableHttpProtocol,
    )
    return application
