"""A thread-safe LRU cache with a size limit and optional expiry."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    __slots__ = ("_clock", "_entries", "_entries_max", "_lock")

    def __init__(self, entries_max: int, clock: Callable[[], float]) -> None:
        self._entries_max = entries_max
        self._clock = clock
        self._entries: OrderedDict[Key, tuple[Value, float | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            value, expires = entry
            if expires is not None and self._clock() >= expires:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Key, value: Value, ttl_seconds: float | None = None) -> None:
        with self._lock:
            self._entries[key] = (value, None if ttl_seconds is None else self._clock() + ttl_seconds)
            self._entries.move_to_end(key)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
