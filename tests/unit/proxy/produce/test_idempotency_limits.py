"""Requests with an Idempotency-Key: keys, repeated responses, leases, windows and sizes at their limits."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerError, BrokerUnavailable, PartitionNotFound
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket, settled
from headgate.proxy.errors import BadRequest, ConversionFailed, ProxyError, Unprocessable
from headgate.proxy.producers import idempotency, outcome_log
from headgate.proxy.producers.idempotency import Answered, _by_partition, _Lease, key_characters_max, parse_key
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.test_once_only import World, run

INTENT = Intent(b"f", 1, 0, [(0, 0, [0]), (1, 7, [1, 2])])


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (b"a", "a"),
        (b"  a b ", "a b"),
        (b"\xe4", "ä"),
        (b"x" * key_characters_max, "x" * key_characters_max),
        (b"x" * (key_characters_max + 1), None),
        (b"", None),
        (b"   ", None),
        (b"a\x00b", None),
        (b"a\x7f", None),
    ],
)
def test_a_key_has_a_limited_number_of_printable_characters(header: bytes, key: str | None) -> None:
    if key is None:
        with pytest.raises(BadRequest, match="1 to 255 printable"):
            parse_key(header)
    else:
        assert parse_key(header) == key


class Asking:
    """One kind of request: its records, and whether its response is final."""

    def __init__(self, records: Sequence[OutgoingRecord | ProxyError], *, body: bytes = b"body", final: bool = True):
        self.records = records
        self.body = body
        self.final = final
        self.placed: Sequence[Ticket | ProxyError] = ()

    async def prepare(self) -> Sequence[OutgoingRecord | ProxyError]:
        return self.records

    async def conclude(self, placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
        self.placed = placed
        await settled([ticket for ticket in placed if isinstance(ticket, Ticket)])
        return self.body, self.final

    async def answer(self, world: World, key: str = "key", route: str = "v2", request: bytes = b"r") -> Answered:
        return await world.once.answer(key, route, "t", request, self.prepare, self.conclude)


def test_a_finished_request_is_answered_again_and_not_sent_again() -> None:
    async def scenario(world: World) -> None:
        asking = Asking([OutgoingRecord(None, b"v", 0)])
        first = asyncio.create_task(asking.answer(world))
        await world.sent(1)
        world.link.place(0)
        assert await first == Answered(b"body", False)
        assert await asking.answer(world) == Answered(b"body", True)
        assert len(world.link.sent) == 1
        with pytest.raises(Unprocessable):
            await asking.answer(world, request=b"other")
        # Another route has its own keys.
        other = asyncio.create_task(asking.answer(world, route="v3", request=b"other"))
        await world.sent(2)
        world.link.place(1)
        assert await other == Answered(b"body", False)

    run(scenario)


@pytest.mark.parametrize(("size", "final", "is_stored"), [(10, True, True), (11, True, False), (10, False, False)])
def test_only_a_final_response_of_limited_size_is_stored(
    monkeypatch: pytest.MonkeyPatch, size: int, final: bool, is_stored: bool
) -> None:
    monkeypatch.setattr(idempotency, "answer_bytes_max", 10)

    async def scenario(world: World) -> None:
        asking = Asking([OutgoingRecord(None, b"v", 0)], body=b"x" * size, final=final)
        first = asyncio.create_task(asking.answer(world))
        await world.sent(1)
        world.link.place(0)
        assert await first == Answered(b"x" * size, False)
        assert bool(world.log.outcomes) is is_stored
        # The numbers of a request without a stored outcome belong to it.
        assert len(world.once._free) == (1 if is_stored else 0)

    run(scenario)


def test_a_request_without_valid_records_is_answered_without_the_journal() -> None:
    async def scenario(world: World) -> None:
        refused = ConversionFailed("no")
        asking = Asking([refused, refused])
        assert await asking.answer(world) == Answered(b"body", False)
        assert asking.placed == [refused, refused]
        assert (world.log.intents, world.log.outcomes, world.link.sent) == ({}, {}, [])

    run(scenario)


@pytest.mark.parametrize(("own_id", "released"), [(False, 1), (True, 0)])
def test_a_lease_is_free_again_if_another_intent_with_another_id_won(own_id: bool, released: int) -> None:
    async def scenario(world: World) -> None:
        def other_first(key: bytes, intent: Intent) -> None:
            producer_id = intent.producer_id if own_id else 77
            world.log.intents[key] = Intent(intent.fingerprint, producer_id, 5, intent.rows)

        world.log.before = other_first
        asking = asyncio.create_task(Asking([OutgoingRecord(None, b"v", 0)]).answer(world))
        await world.sent(1)
        assert len(world.once._free) == released
        world.link.place(0)
        await asking

    run(scenario)


def test_another_body_that_won_the_key_is_refused() -> None:
    async def scenario(world: World) -> None:
        def other_first(key: bytes, intent: Intent) -> None:
            world.log.intents[key] = Intent(b"other", 77, 0, intent.rows)

        world.log.before = other_first
        with pytest.raises(Unprocessable):
            await Asking([OutgoingRecord(None, b"v", 0)]).answer(world)
        assert world.link.sent == []
        assert world.sender.pending_bytes == 0

    run(scenario)


@pytest.mark.parametrize(
    ("row", "error"), [((0, 0, [1]), BrokerError), ((0, 0, [-1]), BrokerError), ((9, 0, [0]), PartitionNotFound)]
)
def test_a_journal_entry_that_does_not_match_the_request_is_not_sent(row: Any, error: type[ProxyError]) -> None:
    async def scenario(world: World) -> None:
        def other_first(key: bytes, intent: Intent) -> None:
            world.log.intents[key] = Intent(intent.fingerprint, 77, 0, [row])

        world.log.before = other_first
        with pytest.raises(error):
            await Asking([OutgoingRecord(None, b"v", 0)]).answer(world)
        assert world.link.sent == []
        assert world.sender.pending_bytes == 0

    run(scenario)


def test_a_restart_that_cannot_be_journaled_leaves_the_error_of_the_broker() -> None:
    async def scenario(world: World) -> None:
        def fail_later(key: bytes, intent: Intent) -> None:
            if intent.attempt:
                raise BrokerUnavailable("down")

        world.log.before = fail_later
        asking = Asking([OutgoingRecord(None, b"v", 0)], final=False)
        task = asyncio.create_task(asking.answer(world))
        await world.sent(1)
        world.link.refuse(ErrorCode.out_of_order_sequence_number)
        assert await task == Answered(b"body", False)
        (ticket,) = asking.placed
        assert isinstance(ticket, Ticket)
        with pytest.raises(ProxyError, match="OUT_OF_ORDER"):
            ticket.outcome()

    run(scenario)


def test_sequence_numbers_continue_and_wrap_around() -> None:
    lease = _Lease(ProducerIdentity(3, 1))
    first = lease.intent(b"f", "t", {0: [0, 1], 4: [2]})
    assert first == Intent(b"f", 3, 1, [(0, 0, [0, 1]), (4, 0, [2])])
    lease.advance("t", first)
    assert lease.intent(b"f", "t", {0: [0], 4: [1], 5: [2]}).rows == [(0, 2, [0]), (4, 1, [1]), (5, 0, [2])]
    assert lease.intent(b"f", "other", {0: [0]}).rows == [(0, 0, [0])]
    lease.advance("t", Intent(b"f", 3, 1, [(0, 2**31 - 1, [0, 1])]))
    assert lease.sequences["t", 0] == 1


@pytest.mark.parametrize(("partitions", "is_kept"), [(2, True), (3, False)])
def test_a_lease_of_many_partitions_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, partitions: int, is_kept: bool
) -> None:
    monkeypatch.setattr(idempotency, "lease_partitions_max", 2)

    async def scenario(world: World) -> None:
        lease = _Lease(ProducerIdentity(3, 1), {("t", number): 0 for number in range(partitions)})
        world.once._release(lease)
        assert world.once._free == ([lease] if is_kept else [])

    run(scenario)


def test_records_are_grouped_by_partition() -> None:
    records: list[OutgoingRecord | ProxyError] = [
        OutgoingRecord(None, b"v", 2),
        OutgoingRecord(b"key", b"v"),
        ConversionFailed("no"),
        OutgoingRecord(None, b"v"),
        OutgoingRecord(b"key", b"v", 2),
        OutgoingRecord(None, b"v"),
    ]
    partitions = (0, 1, 2, 3, 4)
    found = _by_partition(records, bytes([8, 1]), partitions)
    of_key = partition_of(b"key", partitions)
    assert of_key not in (2, 3)
    # Records without a key go to one partition, which depends on the request.
    assert found == {2: [0, 4], of_key: [1], 3: [3, 5]}
    with pytest.raises(PartitionNotFound):
        _by_partition([OutgoingRecord(None, b"v", 5)], bytes(2), partitions)


def new_log(**settings: Any) -> OutcomeLog:
    sender: Any = None
    return OutcomeLog(ProxySettings(**settings), sender)


def learn(log: OutcomeLog, key: bytes, said: Intent | Outcome, offset: int, at_ms: int) -> None:
    log._learn(key, msgspec.msgpack.encode(said), offset, at_ms)


@pytest.mark.parametrize(("at_ms", "is_known"), [(1100, True), (1101, False)])
def test_an_entry_takes_effect_until_the_end_of_its_window(at_ms: int, is_known: bool) -> None:
    log = new_log(idempotency_window_ms=1000)
    learn(log, b"k", INTENT, 0, 100)
    learn(log, b"k", Intent(b"f", 2, 0, [(0, 0, [0])]), 1, at_ms)
    entry = log._entries[b"k"]
    assert entry.intent is not None
    assert (entry.at_ms, entry.intent.producer_id) == ((100, 1) if is_known else (at_ms, 2))
    learn(log, b"other", INTENT, 2, at_ms)
    assert list(log._entries) == [b"k", b"other"]


@pytest.mark.parametrize(("at_ms", "is_kept"), [(1100, True), (1101, False)])
def test_old_entries_are_evicted(at_ms: int, is_kept: bool) -> None:
    log = new_log(idempotency_window_ms=1000)
    learn(log, b"old", INTENT, 0, 100)
    learn(log, b"new", INTENT, 1, at_ms)
    assert list(log._entries) == ([b"old", b"new"] if is_kept else [b"new"])


def test_an_expired_key_that_is_used_again_is_the_newest() -> None:
    log = new_log(idempotency_window_ms=1000, idempotency_keys_max=2)
    learn(log, b"a", INTENT, 0, 100)
    learn(log, b"b", INTENT, 1, 1000)
    learn(log, b"a", INTENT, 2, 1101)
    assert list(log._entries) == [b"b", b"a"]
    learn(log, b"c", INTENT, 3, 1102)
    assert list(log._entries) == [b"a", b"c"]


def test_an_outcome_and_a_restart_keep_the_time_of_the_first_intent() -> None:
    log = new_log()
    learn(log, b"k", INTENT, 0, 100)
    restart = INTENT.restarted([1], ProducerIdentity(5, 2))
    learn(log, b"k", restart, 1, 200)
    assert log._entries[b"k"] == Entry(100, b"f", restart, None)
    learn(log, b"k", Outcome(b"f", b"answer"), 2, 300)
    assert log._entries[b"k"] == Entry(100, b"f", None, 2)
    # An outcome without an intent has its own time.
    learn(log, b"alone", Outcome(b"f", b"answer"), 3, 400)
    assert log._entries[b"alone"] == Entry(400, b"f", None, 3)


def test_a_restart_moves_only_the_lost_partitions() -> None:
    restart = INTENT.restarted([1], ProducerIdentity(5, 2))
    assert restart == Intent(b"f", 1, 0, [(0, 0, [0]), (1, 0, [1, 2])], 1, {1: (5, 2)})
    assert (restart.producer_of(0), restart.producer_of(1)) == ((1, 0), (5, 2))
    assert restart.is_restart_of(INTENT)
    assert not INTENT.is_restart_of(INTENT)
    assert not INTENT.is_restart_of(restart)
    assert not restart.restarted([0], ProducerIdentity(6, 0)).is_restart_of(INTENT)
    for other in (
        Intent(b"g", 1, 0, INTENT.rows, 1),
        Intent(b"f", 1, 0, [(0, 0, [0]), (2, 7, [1, 2])], 1),
        Intent(b"f", 1, 0, [(0, 0, [0]), (1, 7, [1])], 1),
    ):
        assert not other.is_restart_of(INTENT)


def test_responses_in_memory_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_log, "answers_bytes_max", 10)
    log = new_log()
    log._keep(0, b"12345")
    log._keep(0, b"1234")
    log._keep(1, b"123456")
    assert (list(log._answers), log._answers_bytes) == ([0, 1], 10)
    log._keep(2, b"1")
    assert (list(log._answers), log._answers_bytes) == ([1, 2], 7)
    log._keep(3, b"x" * 11)
    assert (list(log._answers), log._answers_bytes) == ([], 0)


def test_the_name_of_a_key_includes_its_route_and_topic() -> None:
    async def scenario(world: World) -> None:
        asking = asyncio.create_task(Asking([OutgoingRecord(None, b"v", 0)]).answer(world, "key", "v2", b"r"))
        await world.sent(1)
        assert list(world.log.intents) == [hashlib.sha256(b"v2\0t\0key").digest()[:16]]
        assert [intent.fingerprint for intent in world.log.intents.values()] == [hashlib.sha256(b"r").digest()[:16]]
        world.link.place(0)
        await asking

    run(scenario)


@pytest.mark.parametrize("is_own", [True, False])
def test_only_a_restart_of_another_worker_may_have_been_sent_before(is_own: bool) -> None:
    async def scenario(world: World) -> None:
        def restarted(key: bytes, intent: Intent) -> None:
            if intent.attempt == 1 and not is_own:
                world.log.intents[key] = Intent(
                    intent.fingerprint, intent.producer_id, intent.epoch, intent.rows, 1, {0: (77, 0)}
                )

        world.log.before = restarted
        asking = Asking([OutgoingRecord(None, b"v", 0)], final=False)
        task = asyncio.create_task(asking.answer(world))
        await world.sent(1)
        world.link.refuse(ErrorCode.out_of_order_sequence_number)
        await world.sent(2)
        assert (world.link.sent[1].producer_id == 77) is not is_own
        world.link.refuse(ErrorCode.invalid_producer_epoch)
        if is_own:
            # No broker has the batch, so another producer id writes it once.
            await world.sent(3)
            world.link.place(4)
        await task
        (ticket,) = asking.placed
        assert isinstance(ticket, Ticket)
        if is_own:
            assert ticket.outcome().offset == 4
        else:
            with pytest.raises(ProxyError, match="may have been written"):
                ticket.outcome()

    run(scenario)
