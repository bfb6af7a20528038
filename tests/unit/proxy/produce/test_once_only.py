"""Requests with an Idempotency-Key: their producer ids and sequence numbers, and the response that clients get."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, InvalidRequest, RecordTooLarge, RetriableError
from headgate.kafka_client.producer.connection import Placed
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket, settled
from headgate.proxy.errors import ConversionFailed, InvalidPayload, ProxyError, Unprocessable
from headgate.proxy.producers import idempotency
from headgate.proxy.producers.idempotency import OnceOnly, restarts_max
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink


class FakeLog:
    """In-memory outcome log. The first intent for a key wins, unless a later one is its restart."""

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
        known = self.intents.setdefault(key, intent)
        if intent.is_restart_of(known):
            self.intents[key] = intent
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
        link: Any = self.link
        self.sender = Sender(ProxySettings(), link)
        self.once = self.worker(self.sender)

    def worker(self, sender: Sender | None = None) -> OnceOnly:
        log: Any = self.log
        link: Any = self.link
        return OnceOnly(sender or Sender(ProxySettings(), link), log)

    async def ask(
        self, key: str, value: bytes, worker: OnceOnly | None = None, partitions: Sequence[int] = (0,)
    ) -> bytes:
        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            return [OutgoingRecord(None, value, partition) for partition in partitions]

        async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            tickets = [ticket for ticket in placed if isinstance(ticket, Ticket)]
            await settled(tickets)
            error = next((ticket.batch.error for ticket in tickets if ticket.batch.error is not None), None)
            if error is not None:
                raise error
            return b" ".join(b"%d" % ticket.outcome().offset for ticket in tickets), True

        return (await (worker or self.once).answer(key, "v2", "t", value, prepare, conclude)).body

    async def sent(self, count: int) -> None:
        while len(self.link.sent) < count:  # noqa: ASYNC110  # the sender has no event for this
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
        world.link.refuse(ErrorCode.policy_violation)
        with pytest.raises(InvalidRequest):
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


def test_a_key_whose_sequence_a_broker_lost_starts_again_under_a_new_producer_id_that_is_journaled_first() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        world.link.refuse(ErrorCode.out_of_order_sequence_number)
        await world.sent(2)
        first, second = world.link.sent
        assert first.producer_id != second.producer_id
        (intent,) = world.log.intents.values()
        assert intent.attempt == 1
        assert intent.producer_of(0)[0] == second.producer_id
        world.link.lose(kafka.KafkaConnectionError("gone"))
        asking.cancel()
        again = asyncio.create_task(world.ask("key", b"v", world.worker()))
        await world.sent(3)
        world.link.place(8)
        assert await again == b"8"
        assert world.link.sent[2] == second, "a retry uses the numbers of the last attempt"

    run(scenario)


def test_only_the_partition_that_lost_its_sequence_starts_again() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v", partitions=(0, 1)))
        await world.sent(2)
        lost = Placed(ErrorCode.unknown_producer_id, -1, None)
        world.link.answers[-1].set_result({("t", 0): Placed(None, 5, None), ("t", 1): lost})
        await world.sent(3)
        assert [batch.partition for batch in world.link.sent] == [0, 1, 1]
        world.link.place(9, partition=1)
        assert await asking == b"5 9"
        (intent,) = world.log.intents.values()
        assert intent.producer_of(0) == (world.link.sent[0].producer_id, 0)
        assert intent.producer_of(1) == (world.link.sent[2].producer_id, 0)
        assert world.once._free == [], "numbers that a broker rejected serve no other request"

    run(scenario)


def test_a_lost_sequence_of_a_request_that_another_worker_finished_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        (name, intent) = next(iter(world.log.intents.items()))
        # The log contains the other worker's outcome. Its lease has advanced, so the broker has forgotten the batch.
        world.log.outcomes[name] = Outcome(intent.fingerprint, b"its answer")
        world.link.refuse(ErrorCode.out_of_order_sequence_number)
        assert await asking == b"its answer"
        assert len(world.link.sent) == 1

    run(scenario)


def test_a_broker_that_rejects_every_producer_id_is_given_up() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        for number in range(restarts_max + 1):
            await world.sent(number + 1)
            world.link.refuse(ErrorCode.out_of_order_sequence_number)
        with pytest.raises(RetriableError, match="OUT_OF_ORDER"):
            await asking
        assert len({batch.producer_id for batch in world.link.sent}) == restarts_max + 1
        assert world.sender.pending_bytes == 0

    run(scenario)


def test_a_request_that_is_too_large_for_one_partition_is_refused_before_anything_is_journaled_or_sent() -> None:
    async def scenario(world: World) -> None:
        for number in range(100):
            with pytest.raises(RecordTooLarge):
                await world.ask(f"key-{number}", b"x" * 600_000, partitions=(0, 1, 1))
        assert world.log.intents == {}
        assert world.link.sent == []
        assert world.sender.pending_bytes == 0

    run(scenario)


def test_a_journal_that_fails_leaves_nothing_pending_and_its_numbers_unused() -> None:
    async def scenario(world: World) -> None:
        def fail(key: bytes, intent: Intent) -> None:
            raise BrokerUnavailable("down")

        world.log.before = fail
        with pytest.raises(BrokerUnavailable):
            await world.ask("key", b"v")
        assert world.sender.pending_bytes == 0
        assert world.once._free == [], "the intent may be in the journal"
        assert world.link.sent == []

    run(scenario)


def test_a_request_that_is_cancelled_neither_frees_its_numbers_nor_stays_pending() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(1)
        asking.cancel()
        other = asyncio.create_task(world.ask("other", b"w"))
        world.link.place(0)
        await world.sent(2)
        world.link.place(1)
        assert await other == b"1"
        assert world.link.sent[0].producer_id != world.link.sent[1].producer_id
        assert world.sender.pending_bytes == 0
        again = asyncio.create_task(world.ask("key", b"v"))
        await world.sent(3)
        assert world.link.sent[2] == world.link.sent[0]
        world.link.place(0)
        assert await again == b"0"

    run(scenario)


def test_a_lease_is_not_freed_while_the_request_that_another_worker_restarted_uses_its_numbers() -> None:
    async def scenario(world: World) -> None:
        def restarted(key: bytes, intent: Intent) -> None:
            world.log.intents[key] = intent.restarted([1], ProducerIdentity(77, 0))

        world.log.before = restarted
        asking = asyncio.create_task(world.ask("key", b"v", partitions=(0, 1)))
        await world.sent(2)
        assert {batch.partition: batch.producer_id for batch in world.link.sent} == {0: 100, 1: 77}
        world.link.answers[-1].set_result({("t", 0): Placed(None, 0, None), ("t", 1): Placed(None, 0, None)})
        await asking
        assert world.once._free == []

    run(scenario)


def test_free_producer_ids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "leases_free_max", 1)

    async def scenario(world: World) -> None:
        asking = [asyncio.create_task(world.ask(f"key-{number}", b"v")) for number in range(3)]
        for number in range(3):
            await world.sent(number + 1)
            world.link.place(number)
        assert sorted(await asyncio.gather(*asking)) == [b"0", b"1", b"2"]
        assert len(world.once._free) == 1
        assert {batch.sequence for batch in world.link.sent} == {0}

    run(scenario)


def test_a_record_that_was_not_understood_at_first_is_not_sent_with_a_retry() -> None:
    async def scenario(world: World) -> None:
        bad: ProxyError = ConversionFailed("not yet")
        good = [OutgoingRecord(None, value, 0) for value in (b"a", b"b")]

        async def ask(records: Sequence[OutgoingRecord | ProxyError]) -> list[Ticket | ProxyError]:
            found: list[Ticket | ProxyError] = []

            async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
                return records

            async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
                found.extend(placed)
                return b"", False

            await world.once.answer("key", "v3", "t", b"", prepare, conclude)
            return found

        asking = asyncio.create_task(ask([bad, good[1]]))
        await world.sent(1)
        world.link.refuse(ErrorCode.policy_violation)
        await asking
        again = asyncio.create_task(ask(good))
        await world.sent(2)
        world.link.place(0)
        first, second = await again
        assert isinstance(first, InvalidPayload)
        assert isinstance(second, Ticket)
        assert [batch.values for batch in world.link.sent] == [(b"b",), (b"b",)]
        with pytest.raises(ConversionFailed):
            await ask([good[0], bad])

    run(scenario)
