"""Cache of encoded responses, invalidated by tags.

The key of an entry is the request. Its tags name the data that the response contains. A change invalidates all entries
that have one of its tags, or all entries.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from headgate.web.asgi import Message, Scope, Send
from headgate.web.responses import send_response

CacheKey = tuple[bytes, bytes, bytes, bytes]
"""Method, path, query, and (for POST) media type and body."""
Tag = str | int

_RECENT_CHANGES_MAX: Final = 256
"""Changes that are remembered to detect responses that were computed before a change and arrive after it."""
_ENTRY_OVERHEAD_BYTES: Final = 600
_ENTRY_BYTES_MAX: Final = 256 * 1024
"""Larger responses are not cached: sending them costs more than computing them."""

REMEMBER: Final = "headgate.remember"
"""Key in the ASGI scope: the function with which `web.repeated_requests` learns a response."""


@dataclass(slots=True, eq=False)
class CachedResponse:
    body: bytes
    is_valid: bool = True
    """False after invalidation. `web.repeated_requests` has its own references to the response."""

    async def send(self, scope: Scope, send: Send, media_type: str) -> None:
        remember = scope.get(REMEMBER)
        if remember is not None:
            remember(self, media_type)
        await send_response(send, 200, self.body, media_type)


@dataclass(frozen=True, slots=True)
class _Change:
    tags: frozenset[Tag]
    affects_all: bool


class ResponseCache:
    """Not thread-safe: use it on the event loop only."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: OrderedDict[CacheKey, tuple[CachedResponse, tuple[Tag, ...]]] = OrderedDict()
        self._keys_by_tag: dict[Tag, set[CacheKey]] = {}
        self.generation = 0
        """The number of changes so far."""
        self._recent: deque[_Change] = deque(maxlen=_RECENT_CHANGES_MAX)

    def get(self, key: CacheKey) -> CachedResponse | None:
        found = self._entries.get(key)
        return None if found is None else found[0]

    def put(self, key: CacheKey, response: CachedResponse, tags: Iterable[Tag], generation: int) -> None:
        """Caches a response that was computed at `generation`, unless a later change affects it."""
        size = _size(key, response)
        kept = tuple(tags)
        if size > _ENTRY_BYTES_MAX or key in self._entries or not self._is_current(generation, kept):
            return
        self._entries[key] = (response, kept)
        self._bytes += size
        for tag in kept:
            self._keys_by_tag.setdefault(tag, set()).add(key)
        while self._bytes > self._bytes_max:
            self._evict(next(iter(self._entries)))

    def _is_current(self, generation: int, tags: tuple[Tag, ...]) -> bool:
        changes = self.generation - generation
        if changes > len(self._recent):
            return False
        for index in range(1, changes + 1):
            change = self._recent[-index]
            if change.affects_all or any(tag in change.tags for tag in tags):
                return False
        return True

    def _evict(self, key: CacheKey) -> None:
        found = self._entries.pop(key, None)
        if found is None:
            return
        response, tags = found
        response.is_valid = False
        self._bytes -= _size(key, response)
        for tag in tags:
            keys = self._keys_by_tag.get(tag)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._keys_by_tag[tag]

    def invalidate(self, tags: Collection[Tag], *, affects_all: bool = False) -> int:
        """Removes responses that a change made stale. Returns the generation of responses computed after it."""
        if not tags and not affects_all:
            return self.generation
        self.generation += 1
        self._recent.append(_Change(frozenset(tags), affects_all))
        if affects_all:
            for response, _ in self._entries.values():
                response.is_valid = False
            self._entries.clear()
            self._keys_by_tag.clear()
            self._bytes = 0
            return self.generation
        for tag in tags:
            for key in tuple(self._keys_by_tag.get(tag, ())):
                self._evict(key)
        return self.generation

    def __len__(self) -> int:
        return len(self._entries)


class ResponseCapture:
    """Passes a response through and keeps its status and, if it is sent in one message, its body."""

    __slots__ = ("_send", "body", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.body: bytes | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and not message.get("more_body") and self.body is None:
            self.body = message.get("body", b"")
        await self._send(message)


def _size(key: CacheKey, response: CachedResponse) -> int:
    return sum(len(part) for part in key) + len(response.body) + _ENTRY_OVERHEAD_BYTES
