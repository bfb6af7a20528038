"""/compatibility: checks a schema without registering it. `verbose` adds the reasons and advice."""

from contextlib import suppress
from functools import partial
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry import limits
from headgate.registry.api.requests import Parameters, submitted_schema_of
from headgate.registry.api.state import INLINE_BODY_BYTES_MAX, INLINE_COMPARISON_STEPS_MAX, ApiState
from headgate.registry.errors import InvalidSchema, WorkLimitExceeded
from headgate.registry.service.compatibility_check import WorkLimits, check_compatibility
from headgate.registry.service.schema_queries import subject_of, version_number
from headgate.registry.storage.base import StoreReader

_WORK_LIMITS: Final = WorkLimits(
    versions_max=limits.VERSION_MAX, chars_max=INLINE_BODY_BYTES_MAX, steps_max=INLINE_COMPARISON_STEPS_MAX
)
"""Limits for compatibility checks on the event loop. Larger checks run in the schema pool."""


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()

    async def answer(request: Request, version: int | None) -> Response:
        parameters = Parameters(request)
        body = await request.body()
        verbose, normalize = parameters.flag("verbose"), parameters.flag("normalize")

        def invalid(error: InvalidSchema) -> Response:
            if not verbose:
                raise error
            return api.respond(request, {"is_compatible": False, "messages": [str(error)]})

        try:
            submitted = submitted_schema_of(body)
        except InvalidSchema as error:
            return invalid(error)

        def query(store: StoreReader, work_limits: WorkLimits | None = None) -> Response:
            try:
                found = check_compatibility(
                    api.registry.environment,
                    store,
                    subject_of(store, parameters.subject()),
                    submitted,
                    version,
                    normalize=normalize,
                    work_limits=work_limits,
                )
            except InvalidSchema as error:
                return invalid(error)
            result = found.result
            if not verbose:
                return api.respond(request, {"is_compatible": result.compatible})
            shown = {"is_compatible": result.compatible, "messages": list(result.messages)}
            if result.found:
                shown["incompatibilities"] = [one.as_json() for one in result.found]
            return api.respond(request, shown)

        if len(body) <= INLINE_BODY_BYTES_MAX and not submitted.references:
            with suppress(WorkLimitExceeded):
                return await api.read_in_thread(partial(query, work_limits=_WORK_LIMITS))
        return await api.read_in_schema_pool(query)

    @router.post("/compatibility/subjects/{subject}/versions")
    async def check_against_all(request: Request) -> Response:
        return await answer(request, None)

    @router.post("/compatibility/subjects/{subject}/versions/{version}")
    async def check_against_one(request: Request) -> Response:
        return await answer(request, version_number(Parameters(request).path("version")))

    return router
