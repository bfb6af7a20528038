"""What every route has at hand: the registry, the one writer, kept answers, and how to answer."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.api.answer_cache import AnswerCache, Mark
from headgate.registry.api.answers import encoded
from headgate.registry.api.front import Keep
from headgate.registry.api.writes import WriteQueue
from headgate.registry.service.registry import Registry
from headgate.registry.storage.base import StoredVersion, StoreReader, StoreWriter, Touched
from headgate.registry.subjects import Subject

T = TypeVar("T")

BRIEF_BODY_BYTES_MAX: Final = 8 * 1024
"""A schema this long is understood in a millisecond or two: done where it is asked for, without a thread."""
BRIEF_COMPARISON_STEPS_MAX: Final = 2_000
"""A comparison of this many steps takes some ten milliseconds at most. A short text can need far more."""
_EXAMINERS: Final = 2
"""Threads for long work on schemas. They share one interpreter: more would only take it from everybody else."""


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
        self.stopping = False
        self._examiners = ThreadPoolExecutor(_EXAMINERS, thread_name_prefix="registry-examiner")

    def begin_stop(self) -> None:
        """Those who follow along are let go, so that nobody waits for them."""
        self.stopping = True
        self.changed.set()

    async def close(self) -> None:
        """Write what is waiting, then stop."""
        await self.writes.close()
        self._examiners.shutdown(wait=False, cancel_futures=True)

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
        return await asyncio.to_thread(self.read, question)

    async def examine(self, question: Callable[[StoreReader], T]) -> T:
        """Answered in one of a few threads, in turn: for what understands or compares schemas of any size."""
        return await asyncio.get_running_loop().run_in_executor(self._examiners, self.read, question)

    async def read_formatted(self, question: Callable[[StoreReader], T], *, plain: bool) -> T:
        """At once when the stored text is shown as it is; in a thread when it must be understood first."""
        return self.read(question) if plain else await self.examine(question)

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
