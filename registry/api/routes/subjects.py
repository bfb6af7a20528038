"""/subjects: list, look up, register, versions, tags, delete."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry import limits
from headgate.registry.api.requests import Parameters, submitted_schema_of, tag_changes, tag_request_of
from headgate.registry.api.responses import registered_json, version_json
from headgate.registry.api.state import INLINE_BODY_BYTES_MAX, INLINE_COMPARISON_STEPS_MAX, ApiState, cache_tags_of
from headgate.registry.errors import WorkLimitExceeded
from headgate.registry.model import Metadata, merged_rule_sets
from headgate.registry.service import deletion, schema_queries
from headgate.registry.service.compatibility_check import WorkLimits
from headgate.registry.service.registration import examine, register
from headgate.registry.service.schema_queries import subject_of, version_number
from headgate.registry.service.scopes import unaliased
from headgate.registry.service.submitted_schema import SubmittedSchema
from headgate.registry.storage.base import Deleted, Selection, StoredVersion, StoreReader
from headgate.registry.subjects import Subject, checked
from headgate.registry.wire import metadata_of, rule_set_of

_WORK_LIMITS: Final = WorkLimits(
    versions_max=20, chars_max=INLINE_BODY_BYTES_MAX, steps_max=INLINE_COMPARISON_STEPS_MAX
)
"""Limits for compatibility checks on the event loop. Larger checks run in the schema pool."""


def deleted_shown(parameters: Parameters) -> Deleted:
    shown = Deleted.SHOWN if parameters.flag("deleted") else Deleted.HIDDEN
    return Deleted.ONLY if parameters.flag("deletedOnly") else shown


async def _register_long(
    api: ApiState,
    request: Request,
    asked: Callable[[StoreReader], tuple[Subject, SubmittedSchema]],
    *,
    normalize: bool,
) -> StoredVersion:
    """Parses and compares the schema in the schema pool, then writes it with the cached results.

    The write also compares with versions that were registered in between.
    """
    environment = api.registry.environment.remembering()
    known = await api.read_in_schema_pool(lambda store: examine(environment, store, *asked(store), normalize=normalize))
    if isinstance(known, StoredVersion):
        return known
    return await api.write(
        request,
        lambda store: register(environment, store, *asked(store), normalize=normalize, now_ms=api.registry.now_ms()),
    )


def registering(api: ApiState) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """The handler of registrations, for its route and for the fast path."""
    environment = api.registry.environment

    async def register_version(request: Request) -> Response:
        parameters = Parameters(request)
        body = await request.body()
        name = checked(parameters.subject())
        submitted = submitted_schema_of(body)
        normalize = parameters.flag("normalize")

        def asked(store: StoreReader) -> tuple[Subject, SubmittedSchema]:
            return unaliased(store, name), submitted

        version: StoredVersion | None = None
        if len(body) <= INLINE_BODY_BYTES_MAX and not submitted.references:
            with suppress(WorkLimitExceeded):
                version = await api.write(
                    request,
                    lambda store: register(
                        environment,
                        store,
                        *asked(store),
                        normalize=normalize,
                        now_ms=api.registry.now_ms(),
                        work_limits=_WORK_LIMITS,
                    ),
                    inline=True,
                )
        if version is None:
            version = await _register_long(api, request, asked, normalize=normalize)
        modified = (
            version.content.metadata is not None
            or version.content.rule_set is not None
            or not submitted.text.strip()
            or submitted.propagate_tags
        )
        cache_tags = None if submitted.version > 0 else _cache_tags(parameters, submitted, version)
        return api.respond(request, registered_json(version, modified=modified), cache_tags=cache_tags)

    return register_version


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()
    environment = api.registry.environment

    @router.get("/subjects")
    async def list_subjects(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        prefix = parameters.text("subjectPrefix") if parameters.given("subjectPrefix") else ":*:"
        deleted = deleted_shown(parameters)
        found = await api.read_in_thread(lambda store: store.subjects(Selection.parse(prefix), deleted, offset, limit))
        return api.respond(request, [subject.qualified for subject in found])

    @router.post("/subjects/{subject}")
    async def look_up(request: Request) -> Response:
        parameters = Parameters(request)
        body = await request.body()
        submitted = submitted_schema_of(body)
        normalize, deleted = parameters.flag("normalize"), parameters.flag("deleted")

        def query(store: StoreReader) -> Response:
            subject = subject_of(store, parameters.subject())
            version = schema_queries.look_up(
                environment, store, subject, submitted, normalize=normalize, deleted=deleted
            )
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            return api.respond(
                request, version_json(version, text), cache_tags=_cache_tags(parameters, submitted, version)
            )

        brief = len(body) <= INLINE_BODY_BYTES_MAX and not submitted.references and not parameters.text("format")
        return api.read(query) if brief else await api.read_in_schema_pool(query)

    @router.delete("/subjects/{subject}")
    async def delete_subject(request: Request) -> Response:
        parameters = Parameters(request)
        permanent = parameters.flag("permanent")
        numbers = await api.write(
            request,
            lambda store: deletion.delete_subject(store, subject_of(store, parameters.subject()), permanent=permanent),
        )
        return api.respond(request, numbers)

    @router.get("/subjects/{subject}/metadata")
    async def get_with_metadata(request: Request) -> Response:
        parameters = Parameters(request)
        wanted = dict(zip(parameters.texts("key"), parameters.texts("value"), strict=False))
        deleted = parameters.flag("deleted")

        def query(store: StoreReader) -> Response:
            subject = subject_of(store, parameters.subject())
            version = schema_queries.latest_with_metadata(store, subject, wanted, deleted=deleted)
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            return api.respond(request, version_json(version, text))

        return await api.read_formatted(query, plain=not parameters.text("format"))

    @router.get("/subjects/{subject}/versions")
    async def list_versions(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        deleted, as_negative = deleted_shown(parameters), parameters.flag("deletedAsNegative")

        def query(store: StoreReader) -> Response:
            subject = subject_of(store, parameters.subject())
            numbers = schema_queries.list_versions(store, subject, deleted, as_negative=as_negative)
            return api.respond(request, numbers[offset : offset + limit], cache_tags=(subject.name,))

        return api.read(query)

    router.add_api_route("/subjects/{subject}/versions", registering(api), methods=["POST"])

    @router.get("/subjects/{subject}/versions/{version}")
    async def get_version(request: Request) -> Response:
        parameters = Parameters(request)
        number = version_number(parameters.path("version"))
        deleted, wanted = parameters.flag("deleted"), parameters.texts("findTags")
        qualified = parameters.text("referenceFormat").lower() == "qualified"

        def query(store: StoreReader) -> Response:
            version = schema_queries.get_version(
                store, subject_of(store, parameters.subject()), number, deleted=deleted
            )
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            tags = schema_queries.tags_found(version, wanted) if wanted else None
            shown = schema_queries.qualified_references(version) if qualified else version
            return api.respond(request, version_json(shown, text, tags), cache_tags=cache_tags_of(version))

        return await api.read_formatted(query, plain=not parameters.text("format") and not wanted)

    @router.get("/subjects/{subject}/versions/{version}/schema")
    async def get_text(request: Request) -> Response:
        parameters = Parameters(request)
        number, deleted = version_number(parameters.path("version")), parameters.flag("deleted")

        def query(store: StoreReader) -> Response:
            version = schema_queries.get_version(
                store, subject_of(store, parameters.subject()), number, deleted=deleted
            )
            text = schema_queries.formatted(environment, store, version, parameters.text("format"))
            return api.respond_raw(request, text.encode(), cache_tags=cache_tags_of(version))

        return await api.read_formatted(query, plain=not parameters.text("format"))

    @router.get("/subjects/{subject}/versions/{version}/referencedby")
    async def list_referrers(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page()
        number, deleted = version_number(parameters.path("version")), parameters.flag("deleted")
        ids = api.read(
            lambda store: schema_queries.referenced_by(
                store, subject_of(store, parameters.subject()), number, deleted=deleted
            )
        )
        return api.respond(request, ids[offset : offset + limit])

    @router.delete("/subjects/{subject}/versions/{version}")
    async def delete_version(request: Request) -> Response:
        parameters = Parameters(request)
        number, permanent = version_number(parameters.path("version")), parameters.flag("permanent")
        deleted = await api.write(
            request,
            lambda store: deletion.delete_version(
                store, subject_of(store, parameters.subject()), number, permanent=permanent
            ),
        )
        return api.respond(request, deleted)

    @router.post("/subjects/{subject}/versions/{version}/tags")
    async def change_tags(request: Request) -> Response:
        parameters = Parameters(request)
        number = version_number(parameters.path("version"))
        wire = tag_request_of(await request.body())
        add, remove = tag_changes(wire.tagsToAdd), tag_changes(wire.tagsToRemove)
        metadata, given_rules = metadata_of(wire.metadata), rule_set_of(wire.ruleSet)
        merge = rule_set_of(wire.rulesToMerge)
        drop = None if wire.rulesToRemove is None else frozenset(wire.rulesToRemove)

        def asked(store: StoreReader) -> tuple[Subject, SubmittedSchema]:
            base = schema_queries.get_version(store, subject_of(store, parameters.subject()), number)
            rules = given_rules
            if merge is not None or drop is not None:
                before = store.latest(base.subject) if wire.newVersion is None else None
                if wire.newVersion is not None:
                    before = store.version(base.subject, wire.newVersion - 1)
                rules = merged_rule_sets(None if before is None else before.content.rule_set, merge)
                if rules is not None and drop is not None:
                    rules = rules.without(drop)
            content = base.content
            return base.subject, SubmittedSchema(
                content.type,
                content.text,
                content.references,
                metadata or content.metadata or Metadata(),
                rules,
                version=wire.newVersion or -1,
                tags_to_add=add,
                tags_to_remove=remove,
            )

        version = await _register_long(api, request, asked, normalize=False)
        return api.respond(request, registered_json(version, modified=True))

    return router


def _cache_tags(parameters: Parameters, submitted: SubmittedSchema, version: StoredVersion) -> tuple[str | int, ...]:
    """Cache tags of a response about a submitted schema: its subject, its id, and its references."""
    return (
        version.id,
        version.subject.name,
        Subject.parse(parameters.subject()).name,
        *(Subject.parse(reference.subject).name for reference in submitted.references),
    )
