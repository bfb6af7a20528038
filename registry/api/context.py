"""What every route has at hand: the registry, the one writer, kept answers, and how to answer."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from registry.api.answer_cache import AnswerCache, Mark
from registry.api.answers import encoded
from registry.api.front import Keep
from registry.api.writes import WriteQueue
from registry.service.registry import Registry
from registry.storage.base import StoredVersion, StoreReader, StoreWriter, Touched
from registry.subjects import Subject

T = TypeVar("T")


def marks_of(version: StoredVersion) -> tuple[Mark, ...]:
    """What an answer about a version tells of: its id, its subject, and the subjects it refers to."""
    references = version.content.references
    return (version.id, version.subject.name, *(Subject.parse(reference.subject).name for reference in references))


class Api:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.cache = AnswerCache(registry.settings.answers_kept_bytes_max)
        self.writes = WriteQueue(registry.store, self._committed)
        self.changed = asyncio.Event()
        """Set, and replaced, at every change: those who follow along wait for it."""

    def _committed(self, touched: Touched) -> int:
        generation = self.cache.committed(touched)
        if touched.subjects or touched.ids or touched.settings:
            self.changed.set()
            self.changed = asyncio.Event()
        return generation

    def read(self, question: Callable[[StoreReader], T]) -> T:
        """Answered at once, from what is committed. For what takes milliseconds at most."""
        with self.registry.store.reading() as store:
            return question(store)

    async def read_long(self, question: Callable[[StoreReader], T]) -> T:
        """Answered in a thread: for what may walk over everything."""

        def answer() -> T:
            with self.registry.store.reading() as store:
                return question(store)

        return await asyncio.to_thread(answer)

    async def write(self, request: Request, operation: Callable[[StoreWriter], T], *, light: bool = False) -> T:
        """What the operation returns, once it is durable. A `light` one takes no longer than a millisecond or two."""
        result, generation = await self.writes.run(operation, light=light)
        keep: Keep = request.scope["registry_keep"]
        keep.generation = generation
        return result

    def answer(
        self, request: Request, value: Any, *, marks: Iterable[Mark] | None = None, status: int = 200
    ) -> Response:
        """`value` as JSON. With `marks`, the answer may be given again until one of them changes."""
        return self.raw(request, encoded(value), marks=marks, status=status)

    def raw(self, request: Request, body: bytes, *, marks: Iterable[Mark] | None = None, status: int = 200) -> Response:
        if marks is not None:
            keep: Keep = request.scope["registry_keep"]
            keep.marks = tuple(marks)
        return Response(body, status_code=status, headers={"content-type": request.scope["registry_type"]})
