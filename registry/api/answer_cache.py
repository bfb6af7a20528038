"""Answers that are given again as bytes, until what they tell of changes.

An answer is kept under the request that asked for it, and marked with the subjects and ids it tells of. A change drops
the answers about what it touched; a change of configuration, mode or contexts drops all of them.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headgate.registry.storage.base import Touched

Key = tuple[bytes, bytes, bytes, bytes]
"""Method, path, query, and (for POST) media type and body."""
Mark = str | int
"""A subject's name, without its context, or an id."""

_RECENT_MAX: Final = 256
"""Changes remembered to judge answers that were on their way when they happened."""
_ENTRY_OVERHEAD_BYTES: Final = 600
_ENTRY_BYTES_MAX: Final = 256 * 1024
"""A larger answer is made anew: it costs more to send than to make."""


@dataclass(slots=True, eq=False)
class Answer:
    body: bytes
    valid: bool = True
    """False once it was dropped: others may still hold it."""


class AnswerCache:
    """Not for several threads: it belongs to the event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._answers: OrderedDict[Key, tuple[Answer, tuple[Mark, ...]]] = OrderedDict()
        self._marked: dict[Mark, set[Key]] = {}
        self.generation = 0
        """Goes up with every change: an answer made before one about the same things must not be kept after it."""
        self._recent: deque[Touched] = deque(maxlen=_RECENT_MAX)

    def get(self, key: Key) -> Answer | None:
        found = self._answers.get(key)
        return None if found is None else found[0]

    def keep(self, key: Key, answer: Answer, marks: Iterable[Mark], generation: int) -> None:
        size = _size(key, answer)
        kept = tuple(marks)
        if size > _ENTRY_BYTES_MAX or key in self._answers or not self._fresh(generation, kept):
            return
        self._answers[key] = (answer, kept)
        self._bytes += size
        for mark in kept:
            self._marked.setdefault(mark, set()).add(key)
        while self._bytes > self._bytes_max:
            self._drop(next(iter(self._answers)))

    def _fresh(self, generation: int, marks: tuple[Mark, ...]) -> bool:
        """Whether nothing of `marks` changed since `generation`."""
        since = self.generation - generation
        if since > len(self._recent):
            return False
        for index in range(1, since + 1):
            touched = self._recent[-index]
            if touched.settings or any(mark in touched.subjects or mark in touched.ids for mark in marks):
                return False
        return True

    def _drop(self, key: Key) -> None:
        found = self._answers.pop(key, None)
        if found is None:
            return
        answer, marks = found
        answer.valid = False
        self._bytes -= _size(key, answer)
        for mark in marks:
            keys = self._marked.get(mark)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._marked[mark]

    def committed(self, touched: Touched) -> int:
        """Drop what a change made stale; the generation of answers made after it."""
        if not (touched.subjects or touched.ids or touched.settings):
            return self.generation
        self.generation += 1
        self._recent.append(touched)
        if touched.settings:
            for answer, _ in self._answers.values():
                answer.valid = False
            self._answers.clear()
            self._marked.clear()
            self._bytes = 0
            return self.generation
        marks: list[Mark] = [*touched.subjects, *touched.ids]
        for mark in marks:
            for key in tuple(self._marked.get(mark, ())):
                self._drop(key)
        return self.generation

    def __len__(self) -> int:
        return len(self._answers)


def _size(key: Key, answer: Answer) -> int:
    return sum(len(part) for part in key) + len(answer.body) + _ENTRY_OVERHEAD_BYTES
