"""The producer of a write task: its start, its window of unacknowledged batches, and its errors."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from headgate.kafka_client import errors as client
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.records import Batch
from headgate.spark_udfs.source import producing
from headgate.spark_udfs.source.errors import (
    BrokerRefused,
    BrokerUnreachable,
    NotAuthenticated,
    NotAuthorized,
    SourceError,
    TopicMissing,
)
from headgate.spark_udfs.source.options import write_options
from headgate.spark_udfs.source.producing import BATCHES_UNDER_WAY_MAX, OpenBatch, TopicProducer
from tests.unit.spark_udfs.source.test_cluster import FakeClock

OPTIONS = {"bootstrap.servers": "a:1", "kafka.max.request.size": "1000", "kafka.delivery.timeout.ms": "5000"}


class FakeProducer:
    """Stands for the producer and its connection."""

    def __init__(self, *arguments: Any) -> None:
        self.options: ProducerOptions = arguments[1]
        self.failures: list[Exception] = []
        self.batches: list[Any] = []
        self.reconnections = 0
        self.is_closed = False

    async def open(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    async def partitions(self, _topic: str) -> tuple[int, ...]:
        await self.open()
        return (0, 1)

    def enqueue(self, topic: str, partition: int, builder: Any, count: int) -> Any:
        batch = Batch(topic, partition, builder, deadline=0.0)
        batch.count = count
        self.batches.append(batch)
        return batch

    def settle(self, index: int, error: Exception | None = None) -> None:
        self.batches[index].settle(error)

    def advertised(self) -> list[str]:
        return ["one:9092"]

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(producing, "time", clock)
    return clock


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> Callable[..., FakeProducer]:
    """Runs a scenario with a producer and its fake."""

    async def diagnose(_options: Any, advertised: list[str], error: Exception) -> Exception:
        return client.BrokerUnavailable(f"No broker at {advertised} responds: {error}")

    def run(scenario: Callable[[TopicProducer, FakeProducer], Awaitable[None]], **more: str) -> FakeProducer:
        made: list[FakeProducer] = []

        def producer(*arguments: Any) -> FakeProducer:
            made.append(FakeProducer(*arguments))
            return made[-1]

        class Link(SimpleNamespace):
            async def close(self) -> None:
                made[0].reconnections += 1

        monkeypatch.setattr(producing, "ProducerConnection", lambda *_: Link(advertised=lambda: ["one:9092"]))
        monkeypatch.setattr(producing, "Producer", producer)
        monkeypatch.setattr(producing, "diagnose", diagnose)

        async def started() -> None:
            monkeypatch.setattr(asyncio, "sleep", clock.sleep)
            await scenario(TopicProducer(write_options({**OPTIONS, **more})), made[0])

        asyncio.run(started())
        return made[0]

    return run


def test_a_batch_accepts_its_first_record_and_more_while_they_fit() -> None:
    batch = OpenBatch(ProducerOptions(batch_bytes_max=200))

    def append(size: int) -> bool:
        return batch.append(timestamp=1, key=None, value=b"x" * size, headers=[("h", b"1")])

    assert append(500)
    assert not append(1)
    assert batch.count == 1
    batch = OpenBatch(ProducerOptions(batch_bytes_max=200))
    assert [append(40) for _ in range(4)] == [True, True, False, False]
    assert batch.count == 2


def test_the_options_of_the_write_are_those_of_the_producer(run: Any) -> None:
    async def scenario(producer: TopicProducer, _fake: FakeProducer) -> None:
        await producer.start()
        assert await producer.partitions("orders") == [0, 1]

    options = run(scenario).options
    assert (options.batch_bytes_max, options.delivery_timeout_ms, options.compression) == (1000, 5000, "none")
    assert options.close_timeout_ms == 0
    assert run(scenario, **{"kafka.compression.type": "zstd"}).options.compression == "zstd"


@pytest.mark.parametrize("error", [client.BrokerUnavailable("down"), client.RetriableError("busy")])
@pytest.mark.parametrize("step", ["start", "partitions"])
def test_a_temporary_error_is_retried_on_new_connections(
    run: Any, clock: FakeClock, step: str, error: Exception
) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        fake.failures = [error] * 3
        await (producer.start() if step == "start" else producer.partitions("orders"))

    assert run(scenario).reconnections == 3
    assert clock.pauses == ([0.1, 0.2, 0.4] if step == "start" else [0.1] * 3)


@pytest.mark.parametrize(("delivery_ms", "seconds"), [("5000", 5), ("90000", 20)])
def test_a_start_is_retried_until_the_delivery_timeout_but_not_longer_than_a_restart_takes(
    run: Any, clock: FakeClock, delivery_ms: str, seconds: int
) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        fake.failures = [client.BrokerUnavailable("down")] * 1000
        with pytest.raises(BrokerUnreachable, match=r"No broker at \['one:9092'\] responds: down"):
            await producer.start()

    run(scenario, **{"kafka.delivery.timeout.ms": delivery_ms})
    assert seconds - 2 < clock.seconds - 100 <= seconds


def test_partitions_are_requested_until_the_delivery_timeout(run: Any, clock: FakeClock) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        fake.failures = [client.BrokerUnavailable("down")] * 1000
        with pytest.raises(BrokerUnreachable):
            await producer.partitions("orders")

    run(scenario)
    assert 5 <= clock.seconds - 100 < 5.2


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (client.TopicNotFound("orders"), TopicMissing, "Topic orders is not in the cluster at a:1, and the brokers do"),
        (client.NotAuthorized("denied"), NotAuthorized, "denied"),
        (client.NotAuthenticated("wrong password"), NotAuthenticated, "wrong password"),
    ],
)
def test_a_permanent_error_is_not_retried(
    run: Any, clock: FakeClock, error: Exception, expected: type[SourceError], text: str
) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        fake.failures = [error, error]
        with pytest.raises(expected, match=text):
            await producer.partitions("orders")
        with pytest.raises(expected):
            await producer.start()

    run(scenario)
    assert clock.pauses == []


def test_a_task_waits_while_too_many_batches_are_unacknowledged(run: Any) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        async def send() -> None:
            await producer.send(producer.batch(), "orders", 1)

        for _ in range(BATCHES_UNDER_WAY_MAX):
            await asyncio.wait_for(send(), 5)
        waiting = asyncio.ensure_future(send())
        fake.settle(1)
        for _ in range(5):
            await asyncio.wait((waiting,), timeout=0)
        assert not waiting.done()
        fake.settle(0)
        await asyncio.wait_for(waiting, 5)
        finished = asyncio.ensure_future(producer.finish())
        for index in range(2, len(fake.batches)):
            assert not fake.is_closed
            fake.settle(index)
        await asyncio.wait_for(finished, 5)
        assert fake.is_closed

    assert len(run(scenario).batches) == BATCHES_UNDER_WAY_MAX + 1


def test_an_abandoned_task_ends_at_once(run: Any) -> None:
    async def scenario(producer: TopicProducer, _fake: FakeProducer) -> None:
        await producer.send(producer.batch(), "orders", 1)
        await asyncio.wait_for(producer.abandon(), 5)
        await asyncio.wait_for(producer.finish(), 5)

    assert run(scenario).is_closed


def rejected(code: ErrorCode) -> Exception:
    error = client.InvalidRequest("no")
    error.kafka_code = code
    return error


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (client.NotAuthorized("denied"), NotAuthorized, "may not write to topic orders: denied"),
        (client.BrokerUnavailable("down"), BrokerUnreachable, r"0 records for orders-1 were not acknowledged .* a:1"),
        (client.RetriableError("busy"), BrokerUnreachable, "within 5000 ms"),
        (rejected(ErrorCode.message_too_large), BrokerRefused, r"too large. Lower kafka.max.request.size \(now 1000\)"),
        (rejected(ErrorCode.invalid_timestamp), BrokerRefused, "rejected because of the column timestamp"),
        (rejected(ErrorCode.invalid_record), BrokerRefused, "0 records for orders-1 were rejected: no"),
    ],
)
def test_a_rejected_batch_fails_the_task(run: Any, error: Exception, expected: type[SourceError], text: str) -> None:
    async def scenario(producer: TopicProducer, fake: FakeProducer) -> None:
        await producer.send(producer.batch(), "orders", 1)
        fake.settle(0, error)
        with pytest.raises(expected, match=text):
            await asyncio.wait_for(producer.finish(), 5)

    run(scenario)
