"""The topic of requests with an Idempotency-Key: workers write to it, read to its end, and create it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, InvalidRequest, TopicNotFound
from headgate.proxy.errors import ProxyError
from headgate.proxy.producers import outcome_log
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog, _is_plausible
from headgate.proxy.settings import ProxySettings

SECONDS = 20
INTENT = Intent(b"f", 1, 0, [(0, 0, [0])])
OTHER = Intent(b"f", 2, 0, [(0, 0, [0])])
OUTCOME = Outcome(b"f", b"answer")


class FakeTopic:
    """The partition of the topic, its producer and its consumers."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.written = asyncio.Event()
        self.now_ms = int(time.time() * 1000)
        self.first_offset = 0
        self.consumers: list[FakeConsumer] = []
        self.placed: list[tuple[str, bool]] = []
        self.is_missing = False

    def write(self, key: bytes, value: bytes) -> int:
        offset = self.first_offset + len(self.records)
        self.records.append(SimpleNamespace(key=key, value=value, offset=offset, timestamp=self.now_ms))
        self.written.set()
        return offset

    async def place(self, topic: str, records: list[Any], *, is_limited: bool) -> list[Any]:
        self.placed.append((topic, is_limited))
        (record,) = records
        assert record.partition == 0
        offset = self.write(record.key, record.value)

        async def delivered() -> Any:
            return SimpleNamespace(offset=offset)

        return [SimpleNamespace(delivered=delivered)]

    async def partitions(self, _topic: str) -> list[int]:
        if self.is_missing:
            raise TopicNotFound
        return [0]

    def consumer(self, *_arguments: Any, **_options: Any) -> "FakeConsumer":
        self.consumers.append(FakeConsumer(self))
        return self.consumers[-1]


class FakeConsumer:
    def __init__(self, topic: FakeTopic) -> None:
        self.topic = topic
        self.at = 0
        self.is_stopped = False
        self.failure: Exception | None = None
        self.silent = False

    async def start(self) -> None:
        pass

    def assign(self, _partitions: list[Any]) -> None:
        pass

    async def seek_to_beginning(self, _partition: Any) -> None:
        self.at = self.topic.first_offset

    def seek(self, _partition: Any, offset: int) -> None:
        self.at = offset

    async def position(self, _partition: Any) -> int:
        return self.at

    async def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return {partitions[0]: self.topic.first_offset + len(self.topic.records)}

    async def getmany(self, partition: Any, *, timeout_ms: int, max_records: int) -> dict[Any, list[Any]]:
        while not (found := self._found()) or self.silent:
            if self.failure is not None:
                raise self.failure
            self.topic.written.clear()
            await self.topic.written.wait()
        taken = found[:max_records]
        self.at += len(taken)
        return {partition: taken}

    async def getone(self, _partition: Any) -> Any:
        return self._found()[0]

    def _found(self) -> list[Any]:
        return [record for record in self.topic.records if record.offset >= self.at]

    async def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    async def present(_client: Any, topics: list[str], *, missing_ok: bool) -> list[Any]:
        assert (topics, missing_ok) == ([ProxySettings().idempotency_topic], True)
        return [object()]

    def run(scenario: Callable[[FakeTopic, OutcomeLog], Awaitable[None]], **settings: int) -> None:
        async def started() -> None:
            topic: Any = FakeTopic()
            monkeypatch.setattr(outcome_log, "BoundedConsumer", topic.consumer)
            monkeypatch.setattr(outcome_log, "find_topics", present)
            log = OutcomeLog(ProxySettings(**settings), topic)  # type: ignore[arg-type]
            await scenario(topic, log)
            await log.close()
            await log.close()
            assert all(consumer.is_stopped for consumer in topic.consumers)

        asyncio.run(asyncio.wait_for(started(), SECONDS))

    return run


def said(entry: Intent | Outcome) -> bytes:
    return msgspec.msgpack.encode(entry)


def test_a_worker_reads_its_own_entries_before_it_continues(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        assert await log.find(b"k") is None
        assert await log.announce(b"k", INTENT) == Entry(topic.now_ms, b"f", INTENT, None)
        await log.conclude(b"k", OUTCOME)
        found = await log.find(b"k")
        assert found == Entry(topic.now_ms, b"f", None, 1)
        assert await log.answer(found) == b"answer"
        assert len(topic.consumers) == 1
        # The records of an admitted request wait for these records.
        assert topic.placed == [(ProxySettings().idempotency_topic, False)] * 2

    run(scenario)


def test_the_first_intent_of_two_workers_takes_effect(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        topic.write(b"k", said(OTHER))
        assert (await log.announce(b"k", INTENT)).intent == OTHER

    run(scenario)


def test_a_worker_reads_the_entries_before_its_start(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        topic.first_offset = 70
        for number in range(1200):
            topic.write(b"%d" % number, said(INTENT))
        topic.write(b"k", said(OUTCOME))
        found = await log.find(b"k")
        assert found is not None
        assert found.outcome_offset == 1270

    run(scenario)


def test_an_entry_is_forgotten_after_the_window(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        topic.now_ms -= 60_000
        topic.write(b"old", said(INTENT))
        topic.now_ms += 30_000
        topic.write(b"new", said(INTENT))
        assert await log.find(b"old") is None
        assert await log.find(b"new") is not None

    run(scenario, idempotency_window_ms=50_000)


def test_a_response_that_left_the_memory_is_read_from_the_topic(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_log, "answers_bytes_max", 10)

    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        for key, answer in ((b"a", b"first"), (b"b", b"second"), (b"c", b"four")):
            await log.conclude(key, Outcome(b"f", answer))
        entries = [await log.find(key) for key in (b"a", b"b", b"c")]
        answers = [await log.answer(entry) for entry in entries if entry is not None]
        assert answers == [b"first", b"second", b"four"]
        # Ten bytes hold the last two responses.
        assert len(topic.consumers) == 2
        topic.records[0].value = said(INTENT)
        with pytest.raises(BrokerUnavailable, match="no longer there"):
            await log.answer(Entry(0, b"f", None, 0))
        topic.records[0].value = b"\xc1"
        with pytest.raises(ProxyError):
            await log.answer(Entry(0, b"f", None, 0))
        del topic.records[0]
        with pytest.raises(BrokerUnavailable, match="no longer there"):
            await log.answer(Entry(0, b"f", None, 0))

    run(scenario)


def test_a_reader_that_fails_starts_again_from_the_beginning(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        await log.announce(b"k", INTENT)
        first = topic.consumers[0]
        first.failure = OSError("gone")
        topic.written.set()
        while not log._tail or not log._tail.done():  # noqa: ASYNC110  # the log has no event for this
            await asyncio.sleep(0)
        topic.records.clear()
        assert await log.find(b"k") is None
        assert first.is_stopped
        assert len(topic.consumers) == 2

    run(scenario)


def test_a_log_that_cannot_be_read_to_its_end_is_unavailable(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_log, "catch_up_seconds", 0.02)

    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        await log.find(b"k")
        topic.consumers[0].silent = True
        with pytest.raises(BrokerUnavailable, match="cannot be read just now"):
            await log.announce(b"k", INTENT)

    run(scenario)


def test_an_intent_that_the_log_does_not_keep_is_an_error(run: Any) -> None:
    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        # Another clock: the entry is older than the window.
        topic.now_ms -= 10_000_000
        with pytest.raises(BrokerUnavailable, match="was lost while it was read"):
            await log.announce(b"k", INTENT)

    run(scenario, idempotency_window_ms=50_000)


@pytest.mark.parametrize(
    ("brokers", "window_ms", "replicas", "segment_ms"),
    [(1, 400_000, 1, "100000"), (3, 100_000, 3, "60000"), (5, 240_004, 3, "60001")],
)
def test_a_missing_topic_is_created(
    run: Any, monkeypatch: pytest.MonkeyPatch, brokers: int, window_ms: int, replicas: int, segment_ms: str
) -> None:
    created: list[Any] = []
    failures: list[Exception] = []

    async def none(*_arguments: Any, **_options: Any) -> list[Any]:
        return []

    async def cluster(_client: Any) -> Any:
        return SimpleNamespace(brokers=[None] * brokers)

    async def create(_client: Any, wanted: Any, *, validate_only: bool) -> None:
        assert not validate_only
        created.append(wanted)
        if failures:
            raise failures.pop()

    async def scenario(topic: FakeTopic, log: OutcomeLog) -> None:
        monkeypatch.setattr(outcome_log, "find_topics", none)
        monkeypatch.setattr(outcome_log, "describe_cluster", cluster)
        monkeypatch.setattr(outcome_log, "create_topic", create)
        denied = InvalidRequest("no")
        failures.append(denied)
        with pytest.raises(ProxyError):
            await log.find(b"k")
        topic.is_missing = True
        with pytest.raises(BrokerUnavailable, match="could not be made"):
            await log.find(b"k")
        topic.is_missing = False
        # Another worker was faster.
        denied.kafka_code = ErrorCode.topic_already_exists
        failures.append(denied)
        assert await log.find(b"k") is None

    run(scenario, idempotency_window_ms=window_ms)
    assert {(topic.partitions, topic.replication_factor) for topic in created} == {(1, replicas)}
    assert created[0].configs == {
        "cleanup.policy": "delete",
        "retention.ms": str(window_ms),
        "segment.ms": segment_ms,
    }


@pytest.mark.parametrize(
    ("key", "entry", "expected"),
    [
        (b"k" * 16, INTENT, True),
        (b"k" * 17, INTENT, False),
        (b"k", Outcome(b"f" * 16, b"answer"), True),
        (b"k", Outcome(b"f" * 17, b"answer"), False),
        (b"k", Intent(b"f" * 17, 1, 0, []), False),
        (b"k", Intent(b"f", 2**63 - 1, 2**15 - 1, [(2**31 - 1, 2**31 - 1, [0, 5]), (0, 0, [1])]), True),
        (b"k", Intent(b"f", 2**63, 0, []), False),
        (b"k", Intent(b"f", -1, 0, []), False),
        (b"k", Intent(b"f", 0, -1, []), False),
        (b"k", Intent(b"f", 0, 2**15, []), False),
        (b"k", Intent(b"f", 0, 0, [], moved={0: (-1, 0)}), False),
        (b"k", Intent(b"f", 0, 0, [], moved={0: (0, 2**15)}), False),
        (b"k", Intent(b"f", 0, 0, [(0, 0, [0]), (0, 1, [1])]), False),
        (b"k", Intent(b"f", 0, 0, [(-1, 0, [0])]), False),
        (b"k", Intent(b"f", 0, 0, [(2**31, 0, [0])]), False),
        (b"k", Intent(b"f", 0, 0, [(0, 2**31, [0])]), False),
        (b"k", Intent(b"f", 0, 0, [(0, 0, [0]), (1, 0, [0])]), False),
        (b"k", Intent(b"f", 0, 0, [(0, 0, [0, 0])]), False),
        (b"k", Intent(b"f", 0, 0, [(0, 0, [-1])]), False),
    ],
)
def test_entries_that_no_worker_writes_are_ignored(key: bytes, entry: Intent | Outcome, expected: bool) -> None:
    assert _is_plausible(key, entry) == expected
