"""Extensions of Confluent's API: search, latest versions of all subjects, change stream, export and import."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

import orjson
from fastapi import APIRouter
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from headgate.openapi.media_types import EVENT_STREAM, NDJSON
from headgate.registry import limits
from headgate.registry.api.errors import HttpError
from headgate.registry.api.fast_path import RESPONSE_TYPE
from headgate.registry.api.requests import Parameters
from headgate.registry.api.responses import change_json, version_json
from headgate.registry.api.state import ApiState
from headgate.registry.languages import type_named
from headgate.registry.service import export_import, schema_queries
from headgate.registry.service.search import Query, search_schemas
from headgate.registry.storage.base import Deleted, Selection, StoreWriter

_HEARTBEAT_SECONDS: Final = 15.0
"""Interval of heartbeats. They keep idle connections open and detect disconnected clients."""
_CHANGES_PER_EVENT_MAX: Final = 500
_IMPORT_MEMORY_BYTES_MAX: Final = 4 * 1024 * 1024
_EXPORT_CHUNK_BYTES: Final = 64 * 1024


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()

    @router.get("/search")
    async def search(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(100)
        kind = parameters.text("schemaType")
        query = Query(
            text=parameters.text("text"),
            field=parameters.text("field"),
            field_type=parameters.text("type"),
            type=type_named(kind) if kind else None,
            tag=parameters.text("tag"),
            subject=parameters.text("subject"),
            all_versions=parameters.flag("allVersions"),
        )
        found = await api.read_in_thread(lambda store: search_schemas(store, query, offset, limit))
        shown = []
        for match in found:
            entry = version_json(match.version)
            if match.fields:
                entry["fields"] = list(dict.fromkeys(match.fields))
            shown.append(entry)
        return api.respond(request, shown)

    @router.get("/latest")
    async def latest(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        prefix = parameters.text("subjectPrefix") if parameters.given("subjectPrefix") else ":*:"
        listed = await api.read_in_thread(
            lambda store: schema_queries.list_schemas(
                store,
                Selection.parse(prefix),
                Deleted.HIDDEN,
                latest_only=True,
                aliases=False,
                rule_type="",
                offset=offset,
                limit=limit,
            )
        )
        shown = [
            {
                "subject": one.version.subject.qualified,
                "version": one.version.version,
                "id": one.version.id,
                "schemaType": one.version.content.type,
                "ts": one.version.created_ms,
            }
            for one in listed
        ]
        return api.respond(request, shown)

    @router.get("/changes")
    async def changes(request: Request) -> Response:
        parameters = Parameters(request)
        if request.scope[RESPONSE_TYPE] != EVENT_STREAM:
            after = parameters.number("after", 0)
            if after < 0:
                raise HttpError(400, f"The parameter after must not be negative, but is {after}")
            _, limit = parameters.page()
            listed = api.read(lambda store: store.changes(after, limit))
            return api.respond(request, [change_json(change) for change in listed])
        resumed = request.headers.get("last-event-id", parameters.text("after"))
        if resumed and not (resumed.isascii() and resumed.isdigit()):
            raise HttpError(400, f"Last-Event-ID must be the sequence number of a change, not '{resumed[:100]}'")
        start = int(resumed[:18]) if resumed else api.read(lambda store: store.last_change())
        return StreamingResponse(
            _events(api, start), headers={"content-type": EVENT_STREAM, "cache-control": "no-cache"}
        )

    @router.get("/export")
    async def export(request: Request) -> Response:
        parameters = Parameters(request)
        prefix = parameters.text("subjectPrefix") if parameters.given("subjectPrefix") else ":*:"
        deleted = not parameters.given("deleted") or parameters.flag("deleted")
        chunks = _chunks(api, Selection.parse(prefix), deleted, skip_damaged=parameters.flag("skipDamaged"))
        return StreamingResponse(iterate_in_threadpool(chunks), headers={"content-type": NDJSON})

    @router.post("/import")
    async def import_(request: Request) -> Response:
        with tempfile.SpooledTemporaryFile(max_size=_IMPORT_MEMORY_BYTES_MAX) as spool:
            try:
                async for chunk in request.stream():
                    spool.write(chunk)
            except ClientDisconnect:
                raise HttpError(400, "The client closed the connection before the end of the import") from None

            def operation(store: StoreWriter) -> export_import.Imported:
                spool.seek(0)
                return export_import.imported(api.registry.environment, store, _lines(spool), api.registry.now_ms())

            done = await api.write(request, operation)
        shown = {"versions": done.versions, "configs": done.configs, "modes": done.modes}
        others = {"keks": done.keks, "deks": done.deks, "associations": done.associations}
        return api.respond(request, shown | {name: count for name, count in others.items() if count})

    return router


def _lines(spool: "IO[bytes]") -> Iterator[bytes]:
    while line := spool.readline(limits.IMPORT_LINE_BYTES_MAX + 1):
        yield line


def _chunks(api: ApiState, selection: Selection, deleted: bool, *, skip_damaged: bool) -> Iterator[bytes]:
    with api.registry.store.snapshot(skip_damaged=skip_damaged) as store:
        chunk = bytearray()
        for line in export_import.exported(store, selection, deleted=deleted):
            chunk += line
            if len(chunk) >= _EXPORT_CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
        yield bytes(chunk)


async def _events(api: ApiState, after: int) -> AsyncIterator[bytes]:
    """Server-sent events for the changes after a sequence number. A `gap` event reports changes that were deleted."""
    yield b": the changes of the schema registry\n\n"
    oldest = api.read(lambda store: store.changes(0, 1))
    if oldest and after < oldest[0].sequence - 1:
        yield f"event: gap\ndata: {oldest[0].sequence - 1 - after}\n\n".encode()
    while not api.is_stopping:
        changed = api.changed
        listed = api.read(lambda store, after=after: store.changes(after, _CHANGES_PER_EVENT_MAX))  # type: ignore[misc]
        if listed:
            yield b"".join(
                b"id: %d\nevent: %s\ndata: %s\n\n"
                % (change.sequence, change.kind.encode(), orjson.dumps(change_json(change)))
                for change in listed
            )
            after = listed[-1].sequence
            continue
        try:
            await asyncio.wait_for(changed.wait(), _HEARTBEAT_SECONDS)
        except TimeoutError:
            yield b": still here\n\n"
