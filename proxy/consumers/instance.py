"""v2 consumer instance: a group member with a subscription. Its last response can be repeated.

Commits: with `auto.commit.enable=true`, the next read or the DELETE commits the records of a response. The request
proves that the response arrived. A revocation of partitions commits too. A crash of the proxy or the client loses no
record, but the last response may be repeated. With `false`, only POST /offsets commits.

Replay: each response has a token. A client that lost a response reads again with
`replay=<token of the last response that arrived>`. The read repeats the lost response, or returns new records.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

from headgate.proxy.consumers.config import InstanceConfig
from headgate.proxy.consumers.membership import GroupMember, MemberSettings, Record
from headgate.proxy.errors import IllegalState, ProxyError
from headgate.proxy.reading.cluster import Cluster
from headgate.proxy.settings import ProxySettings

RESPONSE_RECORDS_MAX: Final = 10_000
"""Maximum number of rows in one response. The next read returns the rest."""
RECORD_OVERHEAD_BYTES: Final = 100
"""Approximate size of a row without key and value."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    token: str
    body: bytes


class ConsumerInstance:
    def __init__(
        self, group: str, name: str, config: InstanceConfig, settings: ProxySettings, cluster: Cluster
    ) -> None:
        self.group = group
        self.name = name
        self.config = config
        self._settings = settings
        member = MemberSettings(group, config.auto_offset_reset, config.isolation_level, config.group_instance_id)
        self.member = GroupMember(settings, cluster, member, self._before_revocation)
        self.topics: list[str] = []
        self.pattern: str | None = None
        self._assigned_by_hand = False
        self._reading = asyncio.Lock()
        self._busy = 0
        self._last_used = time.monotonic()
        self._responses = 0
        self._last_response: StoredResponse | None = None
        self._committing: asyncio.Task[None] | None = None

    def idle_seconds(self, now: float) -> float:
        return 0.0 if self._busy else now - self._last_used

    def in_use(self) -> "_Use":
        return _Use(self)

    async def subscribe(self, topics: list[str], pattern: str | None) -> None:
        if self._assigned_by_hand:
            raise IllegalState(_EXCLUSIVE)
        if (pattern is None and self.pattern is not None) or (pattern is not None and self.topics and not self.pattern):
            raise IllegalState(_EXCLUSIVE)
        if topics == self.topics and pattern == self.pattern:
            return
        if self.config.auto_commit:
            await self._try_commit()
        if topics:
            await self.member.subscribe(topics)
        elif self.topics:
            await self.member.unsubscribe()
        self.topics, self.pattern = topics, pattern

    async def unsubscribe(self) -> None:
        if self.config.auto_commit:
            await self._try_commit()
        await self.member.unsubscribe()
        self.topics, self.pattern, self._assigned_by_hand = [], None, False

    async def assign(self, partitions: list[TopicPartition]) -> None:
        if self.topics or self.pattern is not None:
            raise IllegalState(_EXCLUSIVE)
        if self.config.auto_commit:
            await self._try_commit()
        await self.member.assign(partitions)
        self._assigned_by_hand = True

    async def read(
        self, timeout_ms: int | None, bytes_max: int, render: Callable[[list[Record]], Awaitable["Rendering"]]
    ) -> StoredResponse:
        """Waits for records and renders them. `render` may consume only the first of the given records."""
        async with self._reading:
            if self.config.auto_commit:
                self._commit_in_background()
            taken = await self._take(self._wait_seconds(timeout_ms), bytes_max)
            generation = self.member.generation
            consumed = 0
            try:
                rendering = await render(taken)
                consumed = rendering.consumed
            finally:
                if self.member.generation == generation:
                    self.member.waiting().extendleft(reversed(taken[consumed:]))
            kept = taken[:consumed]
            for record in kept:
                self.member.deliver(record)
            return self._remember(rendering.body, repeatable=bool(kept))

    def replay(self, token: str) -> StoredResponse | None:
        """Returns the response after `token`, or None if `token` is the last response. Raises IllegalState.

        "0" means that no response has arrived. "last" repeats the last response.
        """
        if token == "last":
            token = str(self._responses - 1)
        if token == str(self._responses):
            return None
        if self._last_response is not None and token == str(self._responses - 1):
            return self._last_response
        raise IllegalState(f"The response after {token[:40]!r} is not the last one, or was evicted.")

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata] | None) -> None:
        await self.member.commit(offsets)

    def drop_response(self) -> int:
        """Drops the stored response. Returns its size."""
        size = 0 if self._last_response is None else len(self._last_response.body)
        self._last_response = None
        return size

    async def close(self, *, confirmed: bool) -> None:
        """`confirmed`: the client deleted the instance, so the last response has arrived."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
        if confirmed and self.config.auto_commit:
            await self._try_commit()
        await self.member.close()

    def _remember(self, body: bytes, *, repeatable: bool) -> StoredResponse:
        if not repeatable:
            # An empty response needs no replay. The previous response stays available.
            return StoredResponse(str(self._responses), body)
        self._responses += 1
        self._last_response = StoredResponse(str(self._responses), body)
        return self._last_response

    def _wait_seconds(self, timeout_ms: int | None) -> float:
        """Clamps `timeout` to the timeout of the instance, if it has one, as in Confluent's REST Proxy."""
        own = self.config.request_timeout_ms
        if timeout_ms is None or timeout_ms < 0:
            chosen = self._settings.consumer_request_timeout_ms if own is None else own
        else:
            chosen = min(timeout_ms, self._settings.consumer_request_timeout_max_ms if own is None else own)
        return chosen / 1000

    async def _take(self, seconds: float, bytes_max: int) -> list[Record]:
        deadline = time.monotonic() + seconds
        waiting = self.member.waiting()
        taken: list[Record] = []
        size = 0
        generation = self.member.generation
        try:
            while True:
                while waiting and len(taken) < RESPONSE_RECORDS_MAX:
                    record_size = _size(waiting[0])
                    if taken and size + record_size > bytes_max:
                        return taken
                    taken.append(waiting.popleft())
                    size += record_size
                if size >= bytes_max or len(taken) >= RESPONSE_RECORDS_MAX:
                    return taken
                enough = size >= self.config.fetch_min_bytes and bool(taken)
                remaining = deadline - time.monotonic()
                if not self.topics and not self._assigned_by_hand:
                    if self.pattern is None:
                        raise IllegalState("Consumer is not subscribed to any topics or assigned any partitions")
                    await asyncio.sleep(max(remaining, 0))
                    return taken
                if remaining <= 0 and (taken or seconds > 0):
                    break
                found = await self.member.fetch(0.0 if enough else max(remaining, 0.0))
                if self.member.generation != generation:
                    # A rebalance took place. Drop the records: the next owner of their partitions fetches them again.
                    generation = self.member.generation
                    taken, size = [], 0
                if not found and (enough or time.monotonic() >= deadline):
                    break
        except BaseException:
            if self.member.generation == generation:
                waiting.extendleft(reversed(taken))
            raise
        if not taken:
            self.member.check_connected()
        return taken

    def _commit_in_background(self) -> None:
        if self.member.delivered and (self._committing is None or self._committing.done()):
            self._committing = asyncio.get_running_loop().create_task(self._try_commit())

    async def _try_commit(self) -> None:
        # After a failure, the next read retries the commit, or the next owner of the partition reads the records again.
        with contextlib.suppress(ProxyError):
            await self.member.commit()

    async def _before_revocation(self) -> None:
        if self.config.auto_commit:
            await self._try_commit()


@dataclass(frozen=True, slots=True)
class Rendering:
    body: bytes
    consumed: int
    """The number of rendered records, from the first one."""


class _Use:
    """Context of a request. The instance is not idle during it."""

    def __init__(self, instance: ConsumerInstance) -> None:
        self._instance = instance

    def __enter__(self) -> ConsumerInstance:
        self._instance._busy += 1
        return self._instance

    def __exit__(self, *_: object) -> None:
        self._instance._busy -= 1
        self._instance._last_used = time.monotonic()


_EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive."


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES
