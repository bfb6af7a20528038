"""/schemas: get by id or guid, list."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.requests import Parameters
from headgate.registry.api.responses import schema_json, version_json
from headgate.registry.api.routes.associations import selected_associations
from headgate.registry.api.state import ApiState, cache_tags_of
from headgate.registry.associations import Association
from headgate.registry.model import SchemaType
from headgate.registry.service import schema_queries
from headgate.registry.service.associations import of_subject
from headgate.registry.service.schema_queries import subject_of
from headgate.registry.storage.base import Deleted, Selection, StoreReader
from headgate.registry.subjects import Subject


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()
    environment = api.registry.environment

    def asked_subject(store: StoreReader, parameters: Parameters) -> Subject | None:
        text = parameters.text("subject")
        return subject_of(store, text) if text else None

    @router.get("/schemas")
    async def list_schemas(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page()
        selection = Selection.parse(parameters.text("subjectPrefix"))
        deleted = Deleted.SHOWN if parameters.flag("deleted") else Deleted.HIDDEN
        latest_only, aliases = parameters.flag("latestOnly"), parameters.flag("aliases")
        listed = await api.read_in_thread(
            lambda store: schema_queries.list_schemas(
                store,
                selection,
                deleted,
                latest_only=latest_only,
                aliases=aliases,
                rule_type=parameters.text("ruleType"),
                offset=offset,
                limit=limit,
            )
        )
        associations: dict[Subject, list[Association]] = {}
        if any(parameters.given(name) for name in ("resourceType", "associationType", "lifecycle")):
            selected = selected_associations(parameters)
            subjects = {one.version.subject for one in listed}
            associations = await api.read_in_thread(
                lambda store: {subject: of_subject(store, subject, selected) for subject in subjects}
            )
        shown = []
        for one in listed:
            entry = version_json(one.version)
            if one.aliases:
                entry["aliases"] = list(one.aliases)
            if associated := associations.get(one.version.subject):
                entry["associations"] = [association.to_json() for association in associated]
            shown.append(entry)
        return api.respond(request, shown)

    @router.get("/schemas/types")
    async def list_types(request: Request) -> Response:
        return api.respond(request, [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO], cache_tags=())

    @router.get("/schemas/ids/{id}")
    async def get_by_id(request: Request) -> Response:
        parameters = Parameters(request)
        id = parameters.path_number("id")
        form, wanted = parameters.text("format"), parameters.texts("findTags")
        fetch_max_id = parameters.flag("fetchMaxId")
        qualified = parameters.text("referenceFormat").lower() == "qualified"

        def query(store: StoreReader) -> Response:
            version = schema_queries.by_id(store, id, asked_subject(store, parameters))
            text = schema_queries.formatted(environment, store, version, form)
            tags = schema_queries.tags_found(version, wanted) if wanted else None
            max_id = store.max_id(version.subject.context) if fetch_max_id else None
            shown = schema_queries.qualified_references(version) if qualified else version
            body = schema_json(shown, text, tags, max_id)
            return api.respond(request, body, cache_tags=None if fetch_max_id else cache_tags_of(version))

        return await api.read_formatted(query, plain=not form and not wanted)

    @router.get("/schemas/ids/{id}/schema")
    async def get_text_by_id(request: Request) -> Response:
        parameters = Parameters(request)
        id = parameters.path_number("id")

        def query(store: StoreReader) -> Response:
            version = schema_queries.by_id(store, id, asked_subject(store, parameters))
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            return api.respond_raw(request, text.encode(), cache_tags=cache_tags_of(version))

        return await api.read_formatted(query, plain=not parameters.text("format"))

    @router.get("/schemas/ids/{id}/subjects")
    async def list_subjects_of_id(request: Request) -> Response:
        parameters = Parameters(request)
        id, deleted = parameters.path_number("id"), parameters.flag("deleted")
        offset, limit = parameters.page()

        def query(store: StoreReader) -> Response:
            uses = schema_queries.uses_of_id(store, id, asked_subject(store, parameters), deleted=deleted)
            names = list(dict.fromkeys(use.subject.qualified for use in uses))
            return api.respond(request, names[offset : offset + limit], cache_tags=(id,))

        return api.read(query)

    @router.get("/schemas/ids/{id}/versions")
    async def list_versions_of_id(request: Request) -> Response:
        parameters = Parameters(request)
        id, deleted = parameters.path_number("id"), parameters.flag("deleted")
        offset, limit = parameters.page()

        def query(store: StoreReader) -> Response:
            uses = schema_queries.uses_of_id(store, id, asked_subject(store, parameters), deleted=deleted)
            shown = [{"subject": use.subject.qualified, "version": use.version} for use in uses]
            return api.respond(request, shown[offset : offset + limit], cache_tags=(id,))

        return api.read(query)

    @router.get("/schemas/guids/{guid}")
    async def get_by_guid(request: Request) -> Response:
        parameters = Parameters(request)

        def query(store: StoreReader) -> Response:
            version = schema_queries.by_guid(store, parameters.path("guid"))
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            return api.respond(
                request, schema_json(version, text, with_subject=False), cache_tags=cache_tags_of(version)
            )

        return await api.read_formatted(query, plain=not parameters.text("format"))

    @router.get("/schemas/guids/{guid}/ids")
    async def list_ids_of_guid(request: Request) -> Response:
        guid = Parameters(request).path("guid")
        ids = api.read(lambda store: schema_queries.ids_of_guid(store, guid))
        return api.respond(request, [{"context": context, "id": id} for context, id in ids])

    return router
