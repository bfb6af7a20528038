"""/dek-registry/v1/keks: Confluent's DEK registry.

Clients may add a `context` parameter to requests about KEKs. As in Confluent's registry it has no effect: a KEK does
not belong to a context.
"""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry import limits
from headgate.registry.api.key_requests import dek_of, kek_changes_of, kek_of
from headgate.registry.api.requests import Parameters
from headgate.registry.api.state import ApiState
from headgate.registry.encryption_keys import Algorithm
from headgate.registry.service import encryption_keys as service
from headgate.registry.service.schema_queries import version_number
from headgate.registry.storage.base import StoreWriter

KEKS = "/dek-registry/v1/keks"
KEK = KEKS + "/{name}"
DEKS = KEK + "/deks"
DEK = DEKS + "/{subject}"
VERSIONS = DEK + "/versions"
VERSION = VERSIONS + "/{version}"


def _algorithm(parameters: Parameters) -> Algorithm:
    return service.algorithm_named(parameters.text("algorithm"))


def routes(api: ApiState) -> APIRouter:
    router = APIRouter()

    async def change(
        request: Request, operation: Callable[[StoreWriter, int], None], *, inline: bool = True
    ) -> Response:
        await api.write(request, lambda store: operation(store, api.registry.now_ms()), inline=inline)
        return Response(status_code=204)

    @router.get(KEKS)
    async def list_keks(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        prefixes, deleted = parameters.texts("subjectPrefix"), parameters.flag("deleted")
        names = await api.read_in_thread(lambda store: service.list_keks(store.keys, prefixes, deleted=deleted))
        return api.respond(request, names[offset : offset + limit])

    @router.post(KEKS)
    async def create_kek(request: Request) -> Response:
        test_sharing = Parameters(request).flag("testSharing")
        kek = kek_of(await request.body(), api.registry.now_ms())
        created = await api.write(
            request, lambda store: service.create_kek(store.keys, kek, test_sharing=test_sharing), inline=True
        )
        return api.respond(request, created.to_json())

    @router.get(KEK)
    async def get_kek(request: Request) -> Response:
        parameters = Parameters(request)
        name, deleted = parameters.path("name"), parameters.flag("deleted")
        return api.respond(
            request, api.read(lambda store: service.get_kek(store.keys, name, deleted=deleted)).to_json()
        )

    @router.put(KEK)
    async def change_kek(request: Request) -> Response:
        parameters = Parameters(request)
        name, test_sharing = parameters.path("name"), parameters.flag("testSharing")
        changes = kek_changes_of(await request.body())
        changed = await api.write(
            request,
            lambda store: service.change_kek(
                store.keys, name, changes, api.registry.now_ms(), test_sharing=test_sharing
            ),
            inline=True,
        )
        return api.respond(request, changed.to_json())

    @router.delete(KEK)
    async def delete_kek(request: Request) -> Response:
        parameters = Parameters(request)
        name, permanent = parameters.path("name"), parameters.flag("permanent")
        return await change(request, lambda store, now: service.delete_kek(store.keys, name, now, permanent=permanent))

    @router.post(KEK + "/undelete")
    async def undelete_kek(request: Request) -> Response:
        name = Parameters(request).path("name")
        return await change(request, lambda store, now: service.undelete_kek(store.keys, name, now))

    @router.post(KEK + "/test")
    async def test_kek(request: Request) -> Response:
        name = Parameters(request).path("name")
        kek = api.read(lambda store: service.get_kek(store.keys, name, deleted=False))
        service.verify_sharing(kek)
        return api.respond(request, kek.to_json())

    @router.get(DEKS)
    async def list_subjects(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        name, deleted = parameters.path("name"), parameters.flag("deleted")
        subjects = await api.read_in_thread(lambda store: service.list_dek_subjects(store.keys, name, deleted=deleted))
        return api.respond(request, subjects[offset : offset + limit])

    async def create(request: Request, subject: str | None) -> Response:
        parameters = Parameters(request)
        name, rewrap = service.checked_name(parameters.path("name")), parameters.flag("rewrap")
        new = dek_of(await request.body(), subject)
        created = await api.write(
            request,
            lambda store: service.create_dek(store, name, new, api.registry.now_ms(), rewrap=rewrap),
            inline=True,
        )
        return api.respond(request, created.to_json())

    @router.post(DEKS)
    async def create_dek(request: Request) -> Response:
        return await create(request, None)

    @router.post(DEK)
    async def create_dek_of_subject(request: Request) -> Response:
        return await create(request, Parameters(request).subject())

    async def get(request: Request, version: int) -> Response:
        parameters = Parameters(request)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        deleted = parameters.flag("deleted")
        found = api.read(
            lambda store: service.get_dek(
                store.keys, name, service.dek_subject(store, subject), algorithm, version, deleted=deleted
            )
        )
        return api.respond(request, found.to_json())

    @router.get(DEK)
    async def get_dek(request: Request) -> Response:
        return await get(request, service.FIRST_VERSION)

    @router.get(VERSIONS)
    async def list_versions(request: Request) -> Response:
        parameters = Parameters(request)
        offset, limit = parameters.page(limits.PAGE_MAX)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        deleted = parameters.flag("deleted")
        versions = await api.read_in_thread(
            lambda store: service.list_dek_versions(
                store.keys, name, service.dek_subject(store, subject), algorithm, deleted=deleted
            )
        )
        return api.respond(request, versions[offset : offset + limit])

    @router.get(VERSION)
    async def get_version(request: Request) -> Response:
        return await get(request, version_number(Parameters(request).path("version")))

    @router.delete(DEK)
    async def delete_versions(request: Request) -> Response:
        parameters = Parameters(request)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        permanent = parameters.flag("permanent")
        return await change(
            request,
            lambda store, now: service.delete_deks(
                store.keys, name, service.dek_subject(store, subject), algorithm, now, permanent=permanent
            ),
            inline=False,
        )

    @router.delete(VERSION)
    async def delete_version(request: Request) -> Response:
        parameters = Parameters(request)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        version, permanent = version_number(parameters.path("version")), parameters.flag("permanent")
        return await change(
            request,
            lambda store, now: service.delete_dek(
                store.keys, name, service.dek_subject(store, subject), algorithm, version, now, permanent=permanent
            ),
        )

    @router.post(DEK + "/undelete")
    async def undelete_versions(request: Request) -> Response:
        parameters = Parameters(request)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        return await change(
            request,
            lambda store, now: service.undelete_deks(
                store.keys, name, service.dek_subject(store, subject), algorithm, now
            ),
            inline=False,
        )

    @router.post(VERSION + "/undelete")
    async def undelete_version(request: Request) -> Response:
        parameters = Parameters(request)
        name, subject, algorithm = parameters.path("name"), parameters.subject(), _algorithm(parameters)
        version = version_number(parameters.path("version"))
        return await change(
            request,
            lambda store, now: service.undelete_dek(
                store.keys, name, service.dek_subject(store, subject), algorithm, version, now
            ),
        )

    return router
