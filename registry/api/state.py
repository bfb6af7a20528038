"""State that all routes share: the registry, the write queue, the response cache."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.fast_path import CACHING, Caching, response_type_of
from headgate.registry.api.responses import encoded
from headgate.registry.api.write_queue import WriteQueue
from headgate.registry.service.registry import Registry
from headgate.registry.storage.base import StoredVersion, StoreReader, StoreWriter, Touched
from headgate.registry.subjects import Subject
from headgate.web.response_cache import ResponseCache, Tag

T = TypeVar("T")

INLINE_BODY_BYTES_MAX: Final = 8 * 1024
"""Schemas up to this size are parsed on the event loop: that takes at most two milliseconds."""
INLINE_COMPARISON_STEPS_MAX: Final = 2_000
"""Compatibility checks up to this many steps run on the event loop: that takes about ten milliseconds."""
_SCHEMA_THREADS: Final = 2
"""Threads that parse and compare large schemas. More threads would only compete for the interpreter lock."""


def cache_tags_of(version: StoredVersion) -> tuple[Tag, ...]:
    """Cache tags of a response about a version: its id, its subject, and the subjects that it references."""
    references = version.content.references
    return (version.id, version.subject.name, *(Subject.parse(reference.subject).name for reference in references))


class ApiState:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.cache = ResponseCache(registry.settings.response_cache_bytes_max)
        self.writes = WriteQueue(registry.store, self._committed)
        self.changed = asyncio.Event()
        """Set and replaced at every change. Streams of changes wait for it."""
        self.is_stopping = False
        self._schema_pool = ThreadPoolExecutor(_SCHEMA_THREADS, thread_name_prefix="registry-schemas")

    def begin_stop(self) -> None:
        """Ends the streams of changes."""
        self.is_stopping = True
        self.changed.set()

    async def close(self) -> None:
        """Writes queued changes, then stops."""
        await self.writes.close()
        self._schema_pool.shutdown(wait=False, cancel_futures=True)

    def _committed(self, touched: Touched) -> int:
        generation = self.cache.invalidate(touched.subjects | touched.ids, affects_all=touched.settings)
        if touched.subjects or touched.ids or touched.settings:
            self.changed.set()
            self.changed = asyncio.Event()
        return generation

    def read(self, query: Callable[[StoreReader], T]) -> T:
        """Runs `query` on the event loop. Use it for queries that take at most a few milliseconds."""
        with self.registry.store.reading() as store:
            return query(store)

    async def read_in_thread(self, query: Callable[[StoreReader], T]) -> T:
        """Runs `query` in a thread. Use it for queries that may read the whole store."""
        return await asyncio.to_thread(self.read, query)

    async def read_in_schema_pool(self, query: Callable[[StoreReader], T]) -> T:
        """Runs `query` in a small thread pool. Use it for queries that parse or compare schemas of any size."""
        return await asyncio.get_running_loop().run_in_executor(self._schema_pool, self.read, query)

    async def read_formatted(self, query: Callable[[StoreReader], T], *, plain: bool) -> T:
        """Runs `query` on the event loop if it returns stored text (`plain`), in the schema pool if it must parse."""
        return self.read(query) if plain else await self.read_in_schema_pool(query)

    async def write(self, request: Request, operation: Callable[[StoreWriter], T], *, inline: bool = False) -> T:
        """The result of `operation`, after the commit. An `inline` operation takes at most two milliseconds."""
        result, generation = await self.writes.run(operation, inline=inline)
        caching: Caching = request.scope[CACHING]
        caching.generation = generation
        return result

    def respond(
        self, request: Request, value: Any, *, cache_tags: Iterable[Tag] | None = None, status: int = 200
    ) -> Response:
        """`value` as JSON. With `cache_tags`, the response is cached until a change has one of the tags."""
        return self.respond_raw(request, encoded(value), cache_tags=cache_tags, status=status)

    def respond_raw(
        self, request: Request, body: bytes, *, cache_tags: Iterable[Tag] | None = None, status: int = 200
    ) -> Response:
        if cache_tags is not None:
            caching: Caching = request.scope[CACHING]
            caching.tags = tuple(cache_tags)
        return Response(body, status_code=status, headers={"content-type": response_type_of(request.scope)})
