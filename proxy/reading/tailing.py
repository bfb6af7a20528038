"""Shared long polls at the end of partitions.

One fetch per partition waits for new records, and all waiting readers share its result. Readers that do not wait cause
no fetches. They later read missed records from the cache or fetch them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from aiokafka import TopicPartition

from headgate.kafka_client.fetch import Isolation
from headgate.proxy.errors import ProxyError
from headgate.proxy.reading.batches import Chunk, read_chunk
from headgate.proxy.reading.cluster import Cluster, Lane
from headgate.wire.expansion import EXPANDED_BYTES_MAX, EXPANDED_BYTES_MIN

HOLD_MS: Final = 250
"""`max_wait_ms` of a fetch. It is short, because a new partition may have to wait for the connection."""
LANES: Final = 4
FETCH_BYTES_MAX: Final = 1024 * 1024
HISTORY_BYTES_MAX: Final = 1024 * 1024
"""Size of the cached chunks per partition, for readers that are slightly behind."""
FAILED_SECONDS: Final = 0.5
GATHER_SECONDS_MAX: Final = 0.1
"""Linger time before the next fetch, so that many readers share large chunks instead of many small ones."""
SERVED_MANY: Final = 50
"""With fewer readers there is no linger time."""


class _Tail:
    __slots__ = ("at", "fetching", "history", "position", "waiters")

    def __init__(self, at: TopicPartition, position: int) -> None:
        self.at = at
        self.position = position
        self.waiters: set[asyncio.Future[None]] = set()
        self.history: deque[Chunk] = deque()
        self.fetching = False

    def since(self, position: int) -> list[Chunk]:
        """Returns consecutive cached chunks from a position on. Empty if the position precedes the cache."""
        found: list[Chunk] = []
        for chunk in self.history:
            if chunk.start <= position < chunk.next:
                found.append(chunk)
                position = chunk.next
        return found

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class Tails:
    """Tails of one isolation level."""

    def __init__(self, cluster: Cluster, isolation: Isolation) -> None:
        self._cluster = cluster
        self._isolation = isolation
        self._tails: dict[TopicPartition, _Tail] = {}
        self._changed = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._rounds: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._away = 0
        """Number of readers that received a chunk and have not requested the next one."""
        self._served_at = 0.0

    async def wait(
        self, positions: Mapping[TopicPartition, int], seconds: float
    ) -> list[tuple[TopicPartition, Chunk]] | None:
        """Returns the chunks after the positions: an empty list after the timeout, None if the reader must fetch."""
        tails: list[_Tail] = []
        for at, position in positions.items():
            tail = self._tails.get(at)
            if tail is None:
                tail = self._tails[at] = _Tail(at, position)
            elif position > tail.position:
                tail.wake()
                tail.history.clear()
                tail.position = position
            elif position < tail.position:
                return self._found(positions) or None
            tails.append(tail)
        if self._stopped:
            return []
        waiter = asyncio.get_running_loop().create_future()
        for tail in tails:
            tail.waiters.add(waiter)
        self._away = max(self._away - 1, 0)
        self._start()
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            was_woken = waiter.done()
            self._away += was_woken
            waiter.cancel()
            for tail in tails:
                tail.waiters.discard(waiter)
        return self._found(positions) or (None if was_woken else [])

    def stop(self) -> None:
        """Wakes all readers. Later calls do not wait."""
        self._stopped = True
        for tail in self._tails.values():
            tail.wake()

    async def close(self) -> None:
        self.stop()
        tasks = {*self._rounds, *([self._watcher] if self._watcher is not None else [])}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _found(self, positions: Mapping[TopicPartition, int]) -> list[tuple[TopicPartition, Chunk]]:
        found = []
        for at, position in positions.items():
            tail = self._tails.get(at)
            if tail is not None and position < tail.position:
                found += [(at, chunk) for chunk in tail.since(position)]
        return found

    def _start(self) -> None:
        self._changed.set()
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        lanes = [Lane(100 + LANES * int(self._isolation) + number) for number in range(LANES)]
        free = dict.fromkeys(lanes, True)
        while not self._stopped:
            self._changed.clear()
            self._forget_unwatched()
            if not self._tails:
                return
            by_leader: dict[int, list[_Tail]] = {}
            if time.monotonic() - self._served_at >= GATHER_SECONDS_MAX:
                self._away = 0  # Ignore readers that have disconnected or are slow.
            is_gathering = self._away > SERVED_MANY
            for tail in self._tails.values():
                if tail.waiters and not tail.fetching and not is_gathering:
                    by_leader.setdefault(self._cluster.leader(tail.at), []).append(tail)
            for tails in by_leader.values():
                lane = next((lane for lane, is_free in free.items() if is_free), None)
                if lane is None:
                    break
                free[lane] = False
                for tail in tails:
                    tail.fetching = True
                task = asyncio.get_running_loop().create_task(self._round(tails, lane, free))
                self._rounds.add(task)
                task.add_done_callback(self._rounds.discard)
            try:
                async with asyncio.timeout(GATHER_SECONDS_MAX if is_gathering else HOLD_MS / 1000 * 4):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _forget_unwatched(self) -> None:
        """Drops a partition after some rounds without readers. Readers usually return at once."""
        for at in [at for at, tail in self._tails.items() if not tail.waiters and not tail.fetching]:
            tail = self._tails[at]
            if tail.history:
                tail.history.popleft()
            else:
                del self._tails[at]

    async def _round(self, tails: list[_Tail], lane: Lane, free: dict[Lane, bool]) -> None:
        asked = {tail.at: tail.position for tail in tails}
        try:
            found = await self._cluster.fetch(
                asked, bytes_max=FETCH_BYTES_MAX, wait_ms=HOLD_MS, isolation=self._isolation, lane=lane
            )
            bytes_max = max(EXPANDED_BYTES_MAX // max(len(found), 1), EXPANDED_BYTES_MIN)
            for tail in tails:
                fetched = found.get(tail.at)
                if fetched is None or tail.position != asked[tail.at]:
                    continue
                if fetched.error is not None:
                    tail.wake()
                elif fetched.batches:
                    chunk = await read_chunk(
                        self._cluster.decompression, fetched, asked[tail.at], self._isolation, bytes_max
                    )
                    if tail.position == asked[tail.at]:
                        self._add(tail, chunk)
            self._served_at = time.monotonic()
        except ProxyError:
            for tail in tails:
                tail.wake()  # Each reader then fetches by itself and reports the error.
            await asyncio.sleep(FAILED_SECONDS)
        finally:
            free[lane] = True
            for tail in tails:
                tail.fetching = False
            self._changed.set()

    @staticmethod
    def _add(tail: _Tail, chunk: Chunk) -> None:
        if chunk.next <= tail.position:
            return
        tail.position = chunk.next
        tail.history.append(chunk)
        while sum(kept.size for kept in tail.history) > HISTORY_BYTES_MAX and len(tail.history) > 1:
            tail.history.popleft()
        tail.wake()
