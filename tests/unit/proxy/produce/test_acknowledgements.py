"""Model test: every acknowledged record is stored exactly once, despite faults of the network and the brokers.

Many clients write random records through two workers, with and without an Idempotency-Key. Meanwhile requests are lost,
delayed and rejected, and workers are replaced. A seed replays a failure.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from headgate.kafka_client.producer import dispatcher
from headgate.kafka_client.producer.records import OutgoingRecord, Ticket, settled
from headgate.proxy.errors import ProxyError, ShuttingDown
from headgate.proxy.producers.idempotency import OnceOnly
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_broker import FakeBroker
from tests.unit.proxy.produce.fake_outcome_log import FakeOutcomeLog

PARTITIONS = 3
ATTEMPTS_MAX = 1000
REPLACED_WORKERS = 5
IN_DOUBT = "may have been written"


class Worker:
    def __init__(self, broker: FakeBroker, log: FakeOutcomeLog) -> None:
        link: Any = broker.connected()
        outcome_log: Any = log
        settings = ProxySettings(produce_timeout_ms=25, kafka_request_timeout_ms=25, shutdown_graceful_ms=0)
        self.sender = Sender(settings, link)
        self.once = OnceOnly(self.sender, outcome_log)


class History:
    """The results that clients received, by record value."""

    def __init__(self) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.refused: set[bytes] = set()
        self.in_doubt: set[bytes] = set()

    def note(self, values: Sequence[bytes], tickets: Sequence[Ticket]) -> None:
        for value, ticket in zip(values, tickets, strict=True):
            error = ticket.batch.error
            if error is None:
                outcome = ticket.outcome()
                self.acknowledged[value] = (outcome.partition, outcome.offset)
            elif IN_DOUBT in str(error):
                self.in_doubt.add(value)
            else:
                self.refused.add(value)

    def check(self, broker: FakeBroker) -> None:
        stored = Counter(value for partition in broker.partitions_of_t for value in partition.values)
        assert {value: stored[value] for value in self.acknowledged if stored[value] != 1} == {}
        assert {value: times for value, times in stored.items() if times > 1} == {}
        assert {value for value in self.refused if stored[value]} == set(), "a record was called not written"
        offsets = [place for place in self.acknowledged.values() if place[1] >= 0]
        assert len(set(offsets)) == len(offsets)
        for value, (partition, offset) in self.acknowledged.items():
            assert offset < 0 or broker.partitions_of_t[partition].values[offset] == value


class Run:
    def __init__(self, seed: int, fault_rate: float) -> None:
        self.random = random.Random(seed)
        self.broker = FakeBroker(seed, PARTITIONS, fault_rate)
        self.log = FakeOutcomeLog(self.random, fault_rate)
        self.workers = [Worker(self.broker, self.log) for _ in range(2)]
        self.history = History()

    async def unkeyed(self, client: int) -> None:
        for number in range(6):
            values = [b"u-%d-%d-%d" % (client, number, index) for index in range(self.random.randint(1, 3))]
            partition = self.random.randrange(PARTITIONS)
            records = [OutgoingRecord(None, value, partition) for value in values]
            try:
                tickets = await self.random.choice(self.workers).sender.place("t", records)
            except ShuttingDown:
                self.history.refused.update(values)
                continue
            await settled(tickets)
            self.history.note(values, tickets)

    async def keyed(self, client: int) -> None:
        for number in range(3):
            values = [b"k-%d-%d-%d" % (client, number, index) for index in range(self.random.randint(1, 4))]
            chosen = [self.random.randrange(PARTITIONS) for _ in values]
            records = [OutgoingRecord(None, value, place) for value, place in zip(values, chosen, strict=True)]
            for _ in range(ATTEMPTS_MAX):
                if await self.post(f"{client}-{number}", values, records):
                    break
            else:
                raise AssertionError("a key never recovered")

    async def post(self, key: str, values: Sequence[bytes], records: Sequence[OutgoingRecord]) -> bool:
        placed: list[Ticket] = []

        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            return records

        async def conclude(tickets: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            placed[:] = [ticket for ticket in tickets if isinstance(ticket, Ticket)]
            return key.encode(), all(ticket.batch.error is None for ticket in placed)

        work = self.random.choice(self.workers).once.answer(key, "v2", "t", b"", prepare, conclude)
        try:
            # Some clients disconnect during the request and retry it.
            async with asyncio.timeout(0.005 if self.random.random() < 0.2 else None):
                answered = await work
        except (ProxyError, TimeoutError):
            return False
        if answered.is_repeated:
            # The first response was lost, but the records are acknowledged.
            self.history.acknowledged.update(
                {value: (-1, -1) for value in values if value not in self.history.acknowledged}
            )
            return True
        stored = [(value, ticket) for value, ticket in zip(values, placed, strict=True) if ticket.batch.error is None]
        self.history.note([value for value, _ in stored], [ticket for _, ticket in stored])
        return len(stored) == len(values)

    async def replace_workers(self) -> None:
        for _ in range(REPLACED_WORKERS):
            await asyncio.sleep(self.random.random() / 20)
            index = self.random.randrange(len(self.workers))
            old, self.workers[index] = self.workers[index], Worker(self.broker, self.log)
            await old.sender.close()

    async def run(self) -> None:
        replacing = asyncio.create_task(self.replace_workers())
        await asyncio.gather(
            *(self.unkeyed(client) for client in range(6)), *(self.keyed(client) for client in range(8))
        )
        replacing.cancel()
        await asyncio.wait((replacing,))
        for worker in self.workers:
            await worker.sender.close()
        await asyncio.gather(*self.broker.late)
        self.history.check(self.broker)
        assert [worker.sender.pending_bytes for worker in self.workers] == [0, 0]


@pytest.mark.parametrize("seed", range(8))
def test_every_acknowledged_record_is_stored_once_at_its_own_offset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "retry_pause_seconds", 0.0005)
    monkeypatch.setattr(dispatcher, "retry_pause_max_seconds", 0.004)

    async def run() -> None:
        await Run(seed, (0.0, 0.2, 0.4, 0.7)[seed % 4]).run()

    asyncio.run(asyncio.wait_for(run(), 60))
