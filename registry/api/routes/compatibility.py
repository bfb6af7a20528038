"""/compatibility: would this schema be taken? With `verbose`, why not, and what to change."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from registry.api.answers import found_json
from registry.api.context import Api
from registry.api.requests import Parameters, candidate_of
from registry.errors import InvalidSchema
from registry.service.checking import check
from registry.service.reading import subject_of, version_number
from registry.storage.base import StoreReader


def routes(api: Api) -> APIRouter:
    router = APIRouter()

    async def answer(request: Request, version: int | None) -> Response:
        parameters = Parameters(request)
        body = await request.body()
        verbose, normalize = parameters.flag("verbose"), parameters.flag("normalize")

        def question(store: StoreReader) -> Response:
            try:
                found = check(
                    api.registry.environment,
                    store,
                    subject_of(store, parameters.subject()),
                    candidate_of(body),
                    version,
                    normalize=normalize,
                )
            except InvalidSchema as error:
                if not verbose:
                    raise
                return api.answer(request, {"is_compatible": False, "messages": [str(error)]})
            verdict = found.verdict
            if not verbose:
                return api.answer(request, {"is_compatible": verdict.compatible})
            shown = {"is_compatible": verdict.compatible, "messages": list(verdict.messages)}
            if verdict.found:
                shown["incompatibilities"] = [found_json(one) for one in verdict.found]
            return api.answer(request, shown)

        return await api.read_long(question)

    @router.post("/compatibility/subjects/{subject}/versions")
    async def check_against_all(request: Request) -> Response:
        return await answer(request, None)

    @router.post("/compatibility/subjects/{subject}/versions/{version}")
    async def check_against_one(request: Request) -> Response:
        return await answer(request, version_number(Parameters(request).path("version")))

    return router
