"""The registry's HTTP application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from headgate.openapi.media_types import REGISTRY_V1
from headgate.registry.api.errors import HttpError, headers_of, status_of
from headgate.registry.api.fast_path import FastPath, response_type_of
from headgate.registry.api.metrics import registry_metrics
from headgate.registry.api.routes import (
    associations,
    compatibility,
    dek_registry,
    extensions,
    schemas,
    server,
    settings,
    subjects,
)
from headgate.registry.api.state import ApiState
from headgate.registry.errors import RegistryError
from headgate.registry.service.registry import Registry
from headgate.web.access import Access
from headgate.web.application import Application, methods_of, routes_of
from headgate.web.exception_handlers import exception_handlers, without_framework
from headgate.web.landing_page import LandingPage
from headgate.web.metrics import HttpMetrics
from headgate.web.repeated_requests import RepeatedRequests
from headgate.web.settings import AccessSettings

_LANDING_PAGE = LandingPage(
    "Headgate schema registry",
    "This is the API of Confluent's Schema Registry for Avro, JSON Schema and Protobuf. It stores schemas by subject "
    "and version, and rejects versions that are not compatible. Clients use this address as schema.registry.url.",
    "docs/registry.md",
    ("registry",),
    ("/subjects", "/schemas/types", "/config"),
)


def create_app(registry: Registry, access: AccessSettings | None = None) -> Application:
    """An ASGI application that serves `registry`. The end of its lifespan writes queued changes.

    Without `access` it accepts only loopback names and addresses in the Host header. Raises InvalidSetting.
    """
    checked = Access(access or AccessSettings(), f"{REGISTRY_V1} or application/json")
    api = ApiState(registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await api.close()

    handlers = exception_handlers(
        (RegistryError, HttpError),
        status_of=partial(status_of, detailed_conflict=registry.settings.detailed_conflict_code),
        headers_of=headers_of,
        media_type_of=response_type_of,
        methods_of=lambda scope: methods_of(application.routes, scope["path"]),
        logs_server_errors=True,
    )
    app = FastAPI(
        title="Headgate schema registry",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers=handlers,
    )
    for module in (schemas, subjects, compatibility, settings, associations, dek_registry, server, extensions):
        app.include_router(module.routes(api))
    repeated = RepeatedRequests()
    application = Application(
        FastPath(app, api.cache, without_framework(subjects.registering(api), handlers)),
        checked,
        response_type_of,
        routes=routes_of(app),
        begin_stop=api.begin_stop,
        metrics=HttpMetrics("registry", lambda: registry_metrics(repeated)),
        landing_page=_LANDING_PAGE,
        http_protocol=repeated.protocol(),
    )
    return application
