"""In-memory outcome log for requests with an Idempotency-Key. Workers share it and may read stale data."""

import asyncio
import random

from headgate.kafka_client.errors import BrokerUnavailable
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome


class FakeOutcomeLog:
    def __init__(self, chance: random.Random, fault_rate: float) -> None:
        self._random = chance
        self._fault_rate = fault_rate
        self._entries: dict[bytes, Entry] = {}
        self._answers: dict[bytes, bytes] = {}

    async def find(self, key: bytes) -> Entry | None:
        await asyncio.sleep(0)
        if self._happens(0.3):
            return None  # this worker has not read the entry yet
        return self._entries.get(key)

    async def announce(self, key: bytes, intent: Intent) -> Entry:
        await self._write(lambda: self._learn(key, intent))
        return self._entries[key]

    async def conclude(self, key: bytes, outcome: Outcome) -> None:
        await self._write(lambda: self._finish(key, outcome))

    async def answer(self, entry: Entry) -> bytes:
        return self._answers[entry.fingerprint]

    async def close(self) -> None: ...

    async def _write(self, write: "object") -> None:
        assert callable(write)
        await asyncio.sleep(self._random.random() / 1000)
        if self._happens(0.1):
            raise BrokerUnavailable("the journal was not written")
        write()
        if self._happens(0.1):
            raise BrokerUnavailable("the journal was written, and its response lost")
        await asyncio.sleep(0)

    def _learn(self, key: bytes, intent: Intent) -> None:
        known = self._entries.get(key)
        if known is None or (known.intent is not None and intent.is_restart_of(known.intent)):
            self._entries[key] = Entry(0, intent.fingerprint, intent, None)

    def _finish(self, key: bytes, outcome: Outcome) -> None:
        if self._entries[key].outcome_offset is None:
            self._entries[key] = Entry(0, outcome.fingerprint, None, 0)
            self._answers[outcome.fingerprint] = outcome.answer

    def _happens(self, share: float) -> bool:
        return self._random.random() < self._fault_rate * share
