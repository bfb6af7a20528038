"""Which numbers a request with an Idempotency-Key goes out under, and which answer counts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from aiokafka import errors as kafka

from proxy.errors import BrokerUnavailable, KafkaBadRequest, Unprocessable
from proxy.producers.idempotency import OnceOnly
from proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog
from proxy.producers.records import OutgoingRecord, Ticket, settled
from proxy.producers.sender import Sender
from proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink


class FakeLog:
    """The log without Kafka: what was said, in order; the first intent for a key counts."""

    def __init__(self) -> None:
        self.intents: dict[bytes, Intent] = {}
        self.outcomes: dict[bytes, Outcome] = {}
        self.before: Callable[[bytes, Intent], None] = lambda key, intent: None
        self.is_down = False

    async def find(self, key: bytes) -> Entry | None:
        if key in self.outcomes:
            return Entry(0, self.outcomes[key].fingerprint, None, 0)
        if key in self.intents:
            return Entry(0, self.intents[key].fingerprint, self.intents[key], None)
        return None

    async def announce(self, key: bytes, intent: Intent) -> Entry:
        self.before(key, intent)
        self.intents.setdefault(key, intent)
        entry = await self.find(key)
        assert entry is not None
        return entry

    async def conclude(self, key: bytes, outcome: Outcome) -> None:
        if self.is_down:
            raise BrokerUnavailable("down")
        self.outcomes[key] = outcome

    async def answer(self, entry: Entry) -> bytes:
        return next(outcome.answer for outcome in self.outcomes.values() if outcome.fingerprint == entry.fingerprint)

    async def close(self) -> None: ...


class World:
    def __init__(self) -> None:
        self.link = FakeLink()
        self.log = FakeLog()
        self.once = self.worker()

    def worker(self) -> OnceOnly:
        log: Any = self.log
        link: Any = self.link
        return OnceOnly(Sender(ProxySettings(), link), log)

    async def ask(self, key: str, value: bytes, worker: OnceOnly | None = None) -> bytes:
        async def prepare() -> Sequence[OutgoingRecord]:
            return [OutgoingRecord(None, value, 0)]

        async def conclude(tickets: Sequence[Ticket]) -> tuple[bytes, bool]:
            await settled(tickets)
            error = tickets[0].batch.error
            if error is not None:
                raise error
            return b"%d" % tickets[0].outcome().offset, True

        return (await (worker or self.once).answer(key, "v2", "t", value, prepare, conclude)).body

    async def sent(self, count: int) -> None:
        while len(self.link.sent) < count:  # noqa: ASYNC110  # the sender under test tells nobody
            await asyncio.sleep(0.001)


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def started() -> None:
        await scenario(World())

    asyncio.run(asyncio.wait_for(started(), 10))


def test_the_numbers_of_a_finished_request_serve_the_next_one() -> None:
    async def scenario(world: World) -> None:
        for number in range(3):
            asking = asyncio.create_task(world.ask(f"key-{number}", b"v"))
            await world.sent(number + 1)
            world.link.place(number)
            assert await asking == b"%d" % number
        ids = {batch.producer_id for batch in world.link.sent}
        assert len(ids) == 1
        assert [batch.sequence for batch in world.link.sent] == [0, 1, 2]

    run(scenario)


def test_a_request_that_was_not_finished_goes_out_under_its_first_numbers() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        world.link.refuse(kafka.PolicyViolationError)
        with pytest.raises(KafkaBadRequest):
            await asking
        other = asyncio.create_task(world.ask("other", b"w"))
        await world.sent(2)
        world.link.place(0)
        await other
        again = asyncio.create_task(world.ask("key", b"v", world.worker()))
        await world.sent(3)
        world.link.place(1)
        assert await again == b"1"
        first, between, last = world.link.sent
        assert first == last
        assert between.producer_id != first.producer_id, "numbers of a request in doubt belong to it alone"

    run(scenario)


def test_of_two_workers_the_first_in_the_log_gives_the_numbers() -> None:
    async def scenario(world: World) -> None:
        def other_first(key: bytes, intent: Intent) -> None:
            world.log.intents[key] = Intent(intent.fingerprint, 77, 0, intent.rows)

        world.log.before = other_first
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        world.link.place(4)
        assert await asking == b"4"
        assert world.link.sent[0].producer_id == 77

    run(scenario)


def test_an_outcome_that_could_not_be_noted_keeps_the_numbers_with_the_request() -> None:
    async def scenario(world: World) -> None:
        world.log.is_down = True
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        world.link.place(0)
        assert await asking == b"0"
        other = asyncio.create_task(world.ask("other", b"v"))
        await world.sent(2)
        world.link.place(1)
        await other
        assert world.link.sent[0].producer_id != world.link.sent[1].producer_id

    run(scenario)


def test_another_body_is_refused_while_the_first_is_on_its_way() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        with pytest.raises(Unprocessable):
            await world.ask("key", b"other")
        again = asyncio.create_task(world.ask("key", b"v"))
        world.link.place(0)
        assert await asking == await again == b"0"
        assert len(world.link.sent) == 1

    run(scenario)


def _log(**settings: int) -> OutcomeLog:
    sender: Any = None
    return OutcomeLog(ProxySettings(**settings), sender)  # type: ignore[arg-type]


def _said(entry: Intent | Outcome) -> bytes:
    return msgspec.msgpack.encode(entry)


INTENT = Intent(b"f", 1, 0, [(0, 0, [0])])
LATER = Intent(b"f", 2, 0, [(0, 0, [0])])


def test_the_log_keeps_the_first_intent_until_its_outcome_and_forgets_after_the_window() -> None:
    log = _log(idempotency_window_ms=1000)
    log._learn(b"k", _said(INTENT), 0, 100)
    log._learn(b"k", _said(LATER), 1, 200)
    assert log._entries[b"k"].intent == INTENT
    log._learn(b"k", _said(Outcome(b"f", b"answer")), 2, 300)
    log._learn(b"k", _said(Outcome(b"f", b"again")), 3, 400)
    assert log._entries[b"k"].outcome_offset == 2
    log._learn(b"k", _said(LATER), 4, 1101)
    assert log._entries[b"k"].intent == LATER, "the window has passed: the key is free again"


def test_the_log_is_bounded_and_passes_over_what_is_not_its_own() -> None:
    log = _log(idempotency_keys_max=10)
    for number in range(100):
        log._learn(b"%d" % number, _said(INTENT), number, 0)
    assert len(log._entries) == 10
    for garbage in (None, b"", b"\xc1", b"\x80", _said(INTENT)[:-1]):
        log._learn(b"k", garbage, 0, 0)
    log._learn(None, _said(INTENT), 0, 0)
    assert len(log._entries) == 10
