"""/config and /mode: of subjects, of contexts, global."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.requests import Parameters, config_of, mode_of
from headgate.registry.api.state import ApiState
from headgate.registry.service import configuration
from headgate.registry.subjects import Subject, checked_scope
from headgate.registry.wire import config_changes, config_json


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()
    settings = api.registry.settings

    def scope_of(parameters: Parameters, *, new: bool = False) -> Subject:
        name = parameters.path("subject") if parameters.has_path("subject") else ""
        return checked_scope(name) if new else Subject.parse(name)

    @router.get("/config")
    @router.get("/config/{subject}")
    async def get_config(request: Request) -> Response:
        parameters = Parameters(request)
        wide = parameters.flag("defaultToGlobal")
        config = api.read(
            lambda store: configuration.get_config(store, settings, scope_of(parameters), default_to_global=wide)
        )
        return api.respond(request, config_json(config))

    @router.put("/config")
    @router.put("/config/{subject}")
    async def change_config(request: Request) -> Response:
        parameters = Parameters(request)
        scope = scope_of(parameters, new=True)
        changes = config_changes(config_of(await request.body()))
        config = await api.write(request, lambda store: configuration.change_config(store, settings, scope, changes))
        return api.respond(request, config_json(config, "compatibility"))

    @router.delete("/config")
    @router.delete("/config/{subject}")
    async def delete_config(request: Request) -> Response:
        parameters = Parameters(request)
        config = await api.write(
            request, lambda store: configuration.delete_config(store, settings, scope_of(parameters))
        )
        return api.respond(request, config_json(config))

    @router.get("/mode")
    @router.get("/mode/{subject}")
    async def get_mode(request: Request) -> Response:
        parameters = Parameters(request)
        wide = parameters.flag("defaultToGlobal")
        mode = api.read(lambda store: configuration.get_mode(store, scope_of(parameters), default_to_global=wide))
        return api.respond(request, {"mode": mode})

    @router.put("/mode")
    @router.put("/mode/{subject}")
    async def set_mode(request: Request) -> Response:
        parameters = Parameters(request)
        scope = scope_of(parameters, new=True)
        text = mode_of(await request.body())
        mode = None if text is None else configuration.mode_named(text)
        force = parameters.flag("force")
        await api.write(request, lambda store: configuration.set_mode(store, settings, scope, mode, force=force))
        return api.respond(request, {"mode": mode})

    @router.delete("/mode")
    @router.delete("/mode/{subject}")
    async def delete_mode(request: Request) -> Response:
        parameters = Parameters(request)
        recursive = parameters.flag("recursive")
        mode = await api.write(
            request,
            lambda store: configuration.delete_mode(store, settings, scope_of(parameters), recursive=recursive),
        )
        return api.respond(request, {"mode": mode})

    return router
