"""When the sender stops retrying, and where it places records: timestamps, partitions, sizes."""

import time
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import PartitionNotFound, RecordTooLarge, TopicNotFound
from headgate.kafka_client.producer import dispatcher, producer
from headgate.kafka_client.producer.dispatcher import identities_max, unknown_topic_attempts_max
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.records import OutgoingRecord
from headgate.proxy.errors import ProxyError
from headgate.proxy.producers.sender import Sender
from tests.unit.proxy.produce.fake_link import FakeLink
from tests.unit.proxy.produce.sending import record, run, sent


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "retry_pause_seconds", 0.001)
    monkeypatch.setattr(dispatcher, "leader_pause_seconds", 0.001)
    monkeypatch.setattr(dispatcher, "retry_pause_max_seconds", 0.001)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ErrorCode.unknown_topic_or_partition, unknown_topic_attempts_max + 1),
        (ErrorCode.out_of_order_sequence_number, identities_max),
        (ErrorCode.message_too_large, 1),
    ],
)
def test_a_batch_is_given_up_after_a_limited_number_of_attempts(error: ErrorCode, attempts: int) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        for attempt in range(attempts):
            await sent(link, attempt + 1)
            link.refuse(error)
        with pytest.raises(ProxyError):
            await ticket.delivered()
        assert len(link.sent) == attempts
        assert sender.pending_bytes == 0

    run(scenario)


def test_a_leader_election_may_take_more_attempts_than_a_missing_topic() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        (ticket,) = await sender.place("t", [record(b"1")])
        for attempt in range(3 * unknown_topic_attempts_max):
            await sent(link, attempt + 1)
            link.refuse(ErrorCode.not_leader_or_follower)
        await sent(link, 3 * unknown_topic_attempts_max + 1)
        link.place(4)
        assert (await ticket.delivered()).offset == 4
        assert len({(each.producer_id, each.sequence) for each in link.sent}) == 1

    run(scenario)


@pytest.mark.parametrize(("partition_count", "expected"), [(1, PartitionNotFound), (None, TopicNotFound)])
def test_records_of_a_deleted_partition_fail_while_they_wait_for_a_leader(
    partition_count: int | None, expected: type[Exception]
) -> None:
    class Deleted(FakeLink):
        is_deleted = False

        def known_partitions(self, topic: str) -> tuple[int, ...] | None:
            if self.is_deleted and partition_count is None:
                return None
            return super().known_partitions(topic)

    async def scenario(link: FakeLink, sender: Sender) -> None:
        assert isinstance(link, Deleted)
        link.leader_id = None
        (ticket,) = await sender.place("t", [record(b"1", partition=1)])
        link.is_deleted, link.partition_count = True, partition_count or 0
        with pytest.raises(expected):
            await ticket.delivered()
        assert link.sent == []
        # A topic that is new may be unknown for some updates.
        assert link.refreshes == (1 if partition_count else unknown_topic_attempts_max + 1)

    run(scenario, Deleted())


@pytest.mark.parametrize("count", [1, 1000, 1001])
def test_records_get_the_current_time_unless_they_have_a_timestamp(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        before = int(time.time() * 1000)
        own = OutgoingRecord(None, b"2", 0, timestamp_ms=5)
        tickets = await sender.place("t", [*[record(b"1")] * (count - 1), own])
        (built,) = sender.build("t", [(1, [record(b"3"), own])])
        after = time.time() * 1000
        assert [ticket.timestamp_ms for ticket in (tickets[-1], built[1])] == [5, 5]
        assert all(before <= ticket.timestamp_ms <= after for ticket in (*tickets[:-1], built[0]))
        sender.discard([built[0].batch], ProxyError())

    run(scenario)


@pytest.mark.parametrize("how", ["place", "place_one"])
def test_the_partition_is_the_given_one_or_that_of_the_key_or_the_next_one(how: str) -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        link.partition_count = 3
        partitions = (0, 1, 2)

        async def put(partition: int | None, key: bytes | None) -> int:
            one = record(b"v", partition, key)
            if how == "place_one":
                return sender.place_one("t", one, partitions, 0).partition
            (ticket,) = await sender.place("t", [one])
            return ticket.partition

        assert await put(2, b"key") == 2
        # While a batch is open, records without a key join it.
        assert await put(None, None) == 2
        for number in range(5):
            key = b"%d" % number
            assert await put(None, key) == partition_of(key, partitions)
        with pytest.raises(PartitionNotFound):
            await put(3, None)

    run(scenario)


def test_records_without_a_key_take_turns() -> None:
    async def scenario(link: FakeLink, sender: Sender) -> None:
        link.partition_count = 3
        for turn in range(6):
            (ticket,) = await sender.place("t", [record(b"v", None)])
            assert ticket.partition == turn % 3
            await sent(link, turn + 1)
            link.place(turn, turn % 3)
            await ticket.delivered()

    run(scenario)


def test_a_large_request_without_keys_stays_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "records_at_once_max", 10)

    async def scenario(link: FakeLink, sender: Sender) -> None:
        link.partition_count = 3
        tickets = await sender.place("t", [record(b"v", None) for _ in range(5000)])
        assert {ticket.partition for ticket in tickets} == {tickets[0].partition}

    run(scenario)


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ({}, 32),
        ({"key": b"123"}, 35),
        ({"value": b"12345"}, 37),
        ({"headers": [("name", b"12"), ("x", None)]}, 32 + 16 + 2 + 10 + 4 + 10),
    ],
)
def test_the_size_of_a_record_is_limited(parts: dict[str, Any], size: int) -> None:
    one = OutgoingRecord(**{"key": None, "value": None, "partition": 0, **parts})
    assert one.size() == size

    async def scenario(link: FakeLink, sender: Sender) -> None:
        sender.check_sizes([])
        sender.check_sizes([one])
        assert len(await sender.place("t", [one])) == 1
        sender.place_one("t", one, (0,), 0)
        larger = OutgoingRecord(one.key, (one.value or b"") + b"x", 0, None, one.headers)
        too_large = f"A record of {size + 1} bytes is over the limit of {size}"
        with pytest.raises(RecordTooLarge, match=too_large):
            sender.check_sizes([one, larger])
        with pytest.raises(RecordTooLarge, match=too_large):
            await sender.place("t", [one, larger])
        with pytest.raises(RecordTooLarge, match=too_large):
            sender.place_one("t", larger, (0,), 0)
        with pytest.raises(RecordTooLarge, match=too_large):
            sender.build("t", [(0, [one]), (1, [larger])])

    run(scenario, producer_batch_bytes_max=size)
