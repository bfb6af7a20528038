"""/, /contexts, /v1/metadata, /health."""

import asyncio
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.errors import HttpError
from headgate.registry.api.requests import Parameters
from headgate.registry.api.state import ApiState
from headgate.registry.errors import InvalidSubject, StoreFailed
from headgate.registry.service import configuration
from headgate.registry.subjects import DEFAULT_CONTEXT, context_prefix


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()

    @router.get("/")
    async def root(request: Request) -> Response:
        return api.respond(request, {})

    @router.get("/contexts")
    async def list_contexts(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page()
        prefix = parameters.text("contextPrefix")
        contexts = api.read(lambda store: store.contexts())
        shown = [context for context in contexts if context.startswith(prefix)]
        return api.respond(request, shown[offset : offset + limit])

    @router.delete("/contexts/{context}")
    async def delete_context(request: Request) -> Response:
        given = Parameters(request).path("context")
        try:
            context = context_prefix(given).strip(":") or DEFAULT_CONTEXT
        except InvalidSubject:
            raise HttpError(400, "Context name cannot contain a colon") from None
        await api.write(request, lambda store: configuration.delete_context(store, context))
        return Response(status_code=204)

    @router.get("/v1/metadata/id")
    async def cluster(request: Request) -> Response:
        clusters = {"kafka-cluster": api.registry.settings.cluster_id, "schema-registry-cluster": "schema-registry"}
        return api.respond(request, {"id": "", "scope": {"path": [], "clusters": clusters}})

    @router.get("/v1/metadata/version")
    async def release(request: Request) -> Response:
        try:
            number = version("headgate")
        except PackageNotFoundError:
            number = "unknown"
        return api.respond(request, {"version": number, "commitId": "unknown"})

    @router.get("/v1/metadata/deployment")
    async def deployment(request: Request) -> Response:
        return api.respond(request, {"attributes": []})

    @router.get("/health")
    async def health(request: Request) -> Response:
        try:
            await asyncio.to_thread(api.registry.store.check)
            counts = api.read(lambda store: store.counts())
        except StoreFailed as error:
            return api.respond(request, {"status": "DOWN", "reason": str(error)}, status=503)
        return api.respond(request, {"status": "UP", "stored": counts})

    return router
