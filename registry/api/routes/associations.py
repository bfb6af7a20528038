"""/associations: the subjects of resources such as topics, one by one and in batches.

A batch is not a transaction: each of its resources is changed fully or not at all, and reports its own result.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.association_requests import (
    Change,
    Deletion,
    GetRequest,
    OperationRequest,
    batch_get_of,
    batch_of,
    operations_of,
    request_of,
)
from headgate.registry.api.errors import HttpError, status_of
from headgate.registry.api.requests import Parameters
from headgate.registry.api.responses import version_json
from headgate.registry.api.state import ApiState
from headgate.registry.associations import TOPIC, Association, Lifecycle, Resource
from headgate.registry.errors import InvalidAssociation, InvalidSchema, InvalidSubject, RegistryError
from headgate.registry.service import associations as service
from headgate.registry.service.associations import Draft, Selected
from headgate.registry.service.schema_queries import subject_of
from headgate.registry.storage.base import StoredVersion, StoreReader, StoreWriter
from headgate.registry.subjects import DEFAULT_CONTEXT, Subject, context_prefix

BY_ID = "/associations/resources/{resourceId}"
Applied = list[tuple[Association, StoredVersion | None]]
Find = Callable[[StoreReader, Parameters, Selected], list[Association]]


def resource_json(
    resource: Mapping[str, str | None],
    associations: Sequence[Association] = (),
    schemas: Mapping[str, StoredVersion] | None = None,
) -> dict[str, Any]:
    """A resource with its associations. Fields without a value are omitted."""
    shown: dict[str, Any] = {name: value for name, value in resource.items() if value}
    infos = []
    for one in associations:
        info: dict[str, Any] = {
            "subject": one.subject.qualified,
            "associationType": one.type,
            "lifecycle": one.lifecycle,
            "frozen": one.frozen,
        }
        if schemas and one.type in schemas:
            info["schema"] = version_json(schemas[one.type])
        infos.append(info)
    if infos:
        shown["associations"] = infos
    return shown


def _fields(resource: Resource) -> dict[str, str | None]:
    return {
        "resourceName": resource.name,
        "resourceNamespace": resource.namespace,
        "resourceId": resource.id,
        "resourceType": resource.type,
    }


def selected_associations(parameters: Parameters) -> Selected:
    text = parameters.text("lifecycle")
    if text and text not in tuple(Lifecycle):
        raise HttpError(400, f"The parameter lifecycle must be STRONG or WEAK, not '{text[:100]}'")
    types = tuple(text for text in parameters.texts("associationType") if text)
    return Selected(parameters.text("resourceType") or TOPIC, types, Lifecycle(text) if text else None)


def _scope(parameters: Parameters) -> Subject:
    """The context that bare subjects of a request belong to."""
    text = parameters.text("context")
    if not text:
        return Subject(DEFAULT_CONTEXT, "")
    try:
        return Subject(context_prefix(text).strip(":") or DEFAULT_CONTEXT, "")
    except InvalidSubject:
        raise HttpError(400, "Context name cannot contain a colon") from None


def _new_guid() -> str:
    return str(uuid.uuid4())


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()

    async def listed(request: Request, find: Find) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page()
        selected = selected_associations(parameters)
        found = api.read(lambda store: find(store, parameters, selected))
        return api.respond(request, [one.to_json() for one in found[offset : offset + limit]])

    @router.get("/associations/subjects/{subject}")
    async def of_subject(request: Request) -> Response:
        def find(store: StoreReader, parameters: Parameters, selected: Selected) -> list[Association]:
            return service.of_subject(store, subject_of(store, parameters.subject()), selected)

        return await listed(request, find)

    @router.get("/associations/resources/{resourceNamespace}/{resourceName}")
    async def of_resource_name(request: Request) -> Response:
        def find(store: StoreReader, parameters: Parameters, selected: Selected) -> list[Association]:
            name, namespace = parameters.path("resourceName"), parameters.path("resourceNamespace")
            return service.of_resource_name(store, name, namespace, selected)

        return await listed(request, find)

    @router.get(BY_ID)
    async def of_resource(request: Request) -> Response:
        def find(store: StoreReader, parameters: Parameters, selected: Selected) -> list[Association]:
            return service.of_resource(store, parameters.path("resourceId"), selected)

        return await listed(request, find)

    async def put(request: Request, path_id: str | None, *, create_only: bool) -> Response:
        parameters = Parameters(request)
        dry_run, scope = parameters.flag("dryRun"), _scope(parameters)
        resource, drafts = request_of(await request.body(), path_id, create_only=create_only, dry_run=dry_run)
        environment = api.registry.environment.remembering()

        def planned(store: StoreReader) -> list[service.Planned]:
            return service.plan(environment, store, scope, resource, drafts, create_only=create_only)

        if dry_run or _brings_schema(drafts):
            # Parse and compare schemas before the write, which then uses the cached results.
            await api.read_in_schema_pool(planned)
        if dry_run:
            return api.respond(request, resource_json(_fields(resource)))

        def operation(store: StoreWriter) -> Applied:
            return service.apply(environment, store, resource, planned(store), api.registry.now_ms(), _new_guid)

        applied = await api.write(request, operation)
        schemas: dict[str, StoredVersion] = {one.type: version for one, version in applied if version is not None}
        return api.respond(request, resource_json(_fields(resource), [one for one, _ in applied], schemas))

    @router.post("/associations")
    async def create(request: Request) -> Response:
        return await put(request, None, create_only=True)

    @router.put(BY_ID)
    async def create_or_update(request: Request) -> Response:
        return await put(request, Parameters(request).path("resourceId"), create_only=False)

    @router.delete(BY_ID)
    async def delete(request: Request) -> Response:
        parameters = Parameters(request)
        id, selected = parameters.path("resourceId"), selected_associations(parameters)
        cascade, dry_run = parameters.flag("cascadeLifecycle"), parameters.flag("dryRun")
        if dry_run:

            def check(store: StoreReader) -> None:
                found = service.required(service.of_resource(store, id, selected), id)
                service.check_deletion(store, found, cascade=cascade)

            api.read(check)
        else:
            await api.write(
                request, lambda store: service.required(service.delete(store, id, selected, cascade=cascade), id)
            )
        return Response(status_code=204)

    @router.post("/associations:batchGet")
    async def batch_get(request: Request) -> Response:
        with_schemas = Parameters(request).flag("includeSchemas")
        requests = batch_get_of(await request.body(), with_schemas=with_schemas)

        def query(store: StoreReader) -> list[dict[str, Any]]:
            return [_result_of_get(api, store, one, with_schemas=with_schemas) for one in requests]

        return api.respond(request, {"results": await api.read_in_thread(query)})

    @router.post("/associations:batchMutate")
    async def batch_mutate(request: Request) -> Response:
        parameters = Parameters(request)
        dry_run, scope = parameters.flag("dryRun"), _scope(parameters)
        results = []
        for one in batch_of(await request.body()):
            try:
                results.append({"result": await _mutated(api, request, scope, one, dry_run=dry_run)})
            except (RegistryError, HttpError) as error:
                results.append(_error_json(api, error))
        return api.respond(request, {"results": results})

    return router


def _brings_schema(drafts: Sequence[Draft]) -> bool:
    return any(draft.submitted is not None for draft in drafts)


def _error_json(api: ApiState, error: RegistryError | HttpError) -> dict[str, Any]:
    # In a batch, Confluent reports an invalid schema as an invalid association.
    shown = InvalidAssociation("schema", str(error)) if isinstance(error, InvalidSchema) else error
    _, code = status_of(shown, detailed_conflict=api.registry.settings.detailed_conflict_code)
    return {"error": {"error_code": code, "message": str(error)}}


def _result_of_get(api: ApiState, store: StoreReader, wire: GetRequest, *, with_schemas: bool) -> dict[str, Any]:
    try:
        selected = wire.selected()
    except InvalidAssociation as error:
        return _error_json(api, error)
    if wire.resourceId:
        found = service.of_resource(store, wire.resourceId, selected)
    else:
        found = service.of_resource_name(store, wire.resourceName or "", wire.resourceNamespace or "", selected)
    resource = {
        "resourceName": wire.resourceName or (found[0].resource_name if found else None),
        "resourceNamespace": wire.resourceNamespace or (found[0].resource_namespace if found else None),
        "resourceId": wire.resourceId or (found[0].resource_id if found else None),
        "resourceType": selected.resource_type,
    }
    schemas: dict[str, StoredVersion] = {}
    if with_schemas:
        for one in found:
            latest = store.latest(one.subject)
            if latest is not None:
                schemas[one.type] = latest
    return {"result": resource_json(resource, found, schemas)}


async def _mutated(
    api: ApiState, request: Request, scope: Subject, wire: OperationRequest, *, dry_run: bool
) -> dict[str, Any]:
    """The associations of one resource after its operations."""
    resource, operations = operations_of(wire, dry_run=dry_run)
    environment = api.registry.environment.remembering()
    id = resource.id or ""

    def planned(store: StoreReader, one: Change) -> list[service.Planned]:
        return service.plan(environment, store, scope, resource, [one.draft], create_only=one.create_only)

    def check(store: StoreReader) -> None:
        for one in operations:
            if isinstance(one, Change):
                planned(store, one)
            else:
                doomed = service.of_resource(store, id, Selected(types=(one.type,)))
                service.check_deletion(store, doomed, cascade=one.cascade)

    if dry_run:
        await api.read_in_schema_pool(check)
        return resource_json(_fields(resource))
    if _brings_schema([one.draft for one in operations if isinstance(one, Change)]):
        with suppress(RegistryError):  # An earlier operation of the request may make it possible.
            await api.read_in_schema_pool(check)

    def mutate(store: StoreWriter) -> tuple[list[Association], dict[str, StoredVersion]]:
        schemas: dict[str, StoredVersion] = {}
        for one in operations:
            if isinstance(one, Deletion):
                service.delete(store, id, Selected(types=(one.type,)), cascade=one.cascade)
                continue
            applied = service.apply(environment, store, resource, planned(store, one), api.registry.now_ms(), _new_guid)
            schemas |= {association.type: version for association, version in applied if version is not None}
        return service.of_resource(store, id, Selected()), schemas

    associations, schemas = await api.write(request, mutate)
    return resource_json(_fields(resource), associations, schemas)
