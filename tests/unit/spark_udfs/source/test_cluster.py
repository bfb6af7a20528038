"""The cluster of the data source: metadata, offsets and fetches, their retries and their errors."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from aiokafka import errors as kafka
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataResponse_v5
from aiokafka.structs import TopicPartition

from headgate.kafka_client import errors as client_errors
from headgate.kafka_client.fetch import LATEST, Isolation
from headgate.spark_udfs.source import cluster as module
from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.errors import (
    BrokerRefused,
    BrokerUnreachable,
    NotAuthorized,
    SourceError,
    TopicMissing,
)
from headgate.spark_udfs.source.options import read_options
from headgate.spark_udfs.source.receive_buffer import Block

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
OPTIONS = read_options(
    {"bootstrap.servers": "a:1", "subscribe": "orders", "kafka.default.api.timeout.ms": "5000"}, is_streaming=False
)
Result = TypeVar("Result")


class FakeClock:
    """Replaces the clock and the pauses of the module: a pause ends at once and advances the clock."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds


@dataclass
class Topic:
    partitions: dict[int, int] = field(default_factory=lambda: {0: 1, 1: 2})
    """The leader of each partition."""
    id: str | None = None
    is_internal: bool = False
    error: int = 0


class FakeClient:
    """A client of brokers 1 and 2. It answers metadata and offset requests from tables."""

    def __init__(self, brokers: "FakeBrokers") -> None:
        self.brokers = brokers
        make: Any = ClusterMetadata
        self.cluster = make()
        self.cluster.update_metadata(brokers.metadata({}))
        self.is_closed = False
        self._request_timeout_ms = 40_000

    async def send(self, node: int, request: Any) -> Any:
        self.brokers.requests.append((node, request))
        failure = self.brokers.failures.pop(0) if self.brokers.failures else None
        if failure is not None:
            raise failure
        return self.brokers.response(request)

    async def close(self) -> None:
        self.is_closed = True


class FakeConnection:
    def __init__(self, brokers: "FakeBrokers", address: str) -> None:
        self.brokers = brokers
        self.address = address
        self.is_open = True

    async def fetch(self, _request: Any, _block: Block) -> Any:
        self.brokers.fetches.append(self.address)
        response = self.brokers.responses.pop(0)
        if isinstance(response, BaseException):
            raise response
        return response

    def end(self) -> None:
        self.is_open = False


@dataclass
class FakeBrokers:
    topics: dict[str, Topic] = field(default_factory=lambda: {"orders": Topic()})
    failures: list[Exception | None] = field(default_factory=list)
    """Errors of the next metadata and offset requests."""
    responses: list[Any] = field(default_factory=list)
    """Responses to the next fetches."""
    requests: list[tuple[int, Any]] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    clients: list[FakeClient] = field(default_factory=list)
    connections: list[FakeConnection] = field(default_factory=list)
    patience: list[float] = field(default_factory=list)
    refused: list[Exception] = field(default_factory=list)
    """Errors of the next connections."""

    async def open_client(self, _options: Any, seconds_max: float) -> FakeClient:
        self.patience.append(seconds_max)
        self.clients.append(FakeClient(self))
        return self.clients[-1]

    async def open_connection(self, host: str, port: int, _options: Any) -> FakeConnection:
        if self.refused:
            raise self.refused.pop(0)
        self.connections.append(FakeConnection(self, f"{host}:{port}"))
        return self.connections[-1]

    @staticmethod
    def metadata(topics: dict[str, Topic]) -> Any:
        rows: list[Any] = [
            (
                each.error,
                name,
                each.is_internal,
                [(0, number, leader, [], [], []) for number, leader in each.partitions.items()],
            )
            for name, each in topics.items()
        ]
        return MetadataResponse_v5(0, [(1, "one", 9092, None), (2, "two", 9092, None)], None, 1, rows)

    def response(self, request: Any) -> Any:
        if isinstance(request, list):
            wanted = set(self.topics) if request[0] is None else set(request[0])
            return {name: topic for name, topic in self.topics.items() if name in wanted}
        return SimpleNamespace(
            topics=[(topic, [(number, 0, -1, 10 + number) for number, _ in rows]) for topic, rows in request._topics]
        )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    return clock


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> FakeBrokers:
    brokers = FakeBrokers()

    def read(topics: dict[str, Topic]) -> tuple[Any, dict[str, str]]:
        return brokers.metadata(topics), {name: topic.id for name, topic in topics.items() if topic.id}

    async def diagnose(_options: Any, advertised: list[str], error: Exception) -> Exception:
        return client_errors.BrokerUnavailable(f"No broker at {', '.join(advertised)} responds: {error!r}.")

    monkeypatch.setattr(module, "open_client", brokers.open_client)
    monkeypatch.setattr(module, "open_fetch_connection", brokers.open_connection)
    monkeypatch.setattr(module, "metadata_request", lambda topics: [topics])
    monkeypatch.setattr(module, "read_metadata", read)
    monkeypatch.setattr(module, "diagnose", diagnose)
    return brokers


def run(use: Callable[[Cluster], Awaitable[Result]], cluster: Cluster | None = None) -> Result:
    async def used() -> Result:
        return await use(cluster or Cluster(OPTIONS.connection))

    return asyncio.run(used())


def fetched(code: int = 0, records: bytes = b"records", version: int = 7, topic: str = "orders") -> Any:
    rows: list[Any] = [(topic, [(0, code, 9, 9, 0, [], records)])]
    return SimpleNamespace(API_VERSION=version, error_code=0, topics=rows)


def fetch(cluster: Cluster, at: TopicPartition = A, block: Block | None = None) -> Awaitable[Any]:
    return cluster.fetch(at, 3, block=block or Block(), bytes_max=100, wait_ms=1, isolation=Isolation.READ_COMMITTED)


def test_partitions_of_the_selected_topics_are_listed(brokers: FakeBrokers, clock: FakeClock) -> None:
    brokers.topics |= {"other": Topic(), "__internal": Topic({0: 1}, is_internal=True)}
    assert run(lambda cluster: cluster.partitions(OPTIONS.selection)) == [A, B]
    assert [request for _, request in brokers.requests] == [[["orders"]]]
    pattern = read_options({"bootstrap.servers": "a:1", "subscribePattern": ".*"}, is_streaming=False).selection
    found = run(lambda cluster: cluster.partitions(pattern))
    assert {at.topic for at in found} == {"orders", "other"}
    assert clock.pauses == []


def test_a_new_topic_is_requested_again_for_a_second(brokers: FakeBrokers, clock: FakeClock) -> None:
    brokers.topics.clear()
    with pytest.raises(TopicMissing):
        run(lambda cluster: cluster.partitions(OPTIONS.selection))
    assert clock.pauses == [0.25] * 5
    assert run(lambda cluster: cluster.partitions(OPTIONS.selection, may_miss=True)) == []


def test_topic_ids_are_those_of_the_last_metadata(brokers: FakeBrokers) -> None:
    brokers.topics = {"orders": Topic(id="x"), "other": Topic(id="y")}
    other = TopicPartition("other", 0)

    async def use(cluster: Cluster) -> list[dict[str, str]]:
        await cluster.partitions(OPTIONS.selection)
        found = [cluster.topic_ids([A, other])]
        await cluster.partitions(
            read_options({"bootstrap.servers": "a:1", "subscribe": "other"}, is_streaming=False).selection
        )
        found.append(cluster.topic_ids([A, other]))
        brokers.topics["orders"].id = None
        await cluster.partitions(OPTIONS.selection)
        return [*found, cluster.topic_ids([A, other])]

    assert run(use) == [{"orders": "x"}, {"orders": "x", "other": "y"}, {"other": "y"}]


def test_offsets_come_from_the_leader_of_each_partition(brokers: FakeBrokers) -> None:
    assert run(lambda cluster: cluster.edges([A, B], LATEST, Isolation.READ_COMMITTED)) == {A: 10, B: 11}
    assert [node for node, request in brokers.requests if not isinstance(request, list)] == [1, 2]
    brokers.requests.clear()
    assert run(lambda cluster: cluster.offsets({}, Isolation.READ_COMMITTED)) == {}
    assert brokers.requests == []


def test_a_temporary_error_is_retried_with_backoff_and_a_new_connection(brokers: FakeBrokers, clock: FakeClock) -> None:
    brokers.failures = [None, kafka.NotLeaderForPartitionError(), None, kafka.NotLeaderForPartitionError()]
    assert run(lambda cluster: cluster.offsets({A: LATEST}, Isolation.READ_COMMITTED)) == {A: 10}
    assert clock.pauses == [0.1, 0.2]
    assert [client.is_closed for client in brokers.clients] == [True, True, False]


def test_the_next_broker_is_asked_for_metadata_if_one_fails(brokers: FakeBrokers, clock: FakeClock) -> None:
    brokers.failures = [kafka.RequestTimedOutError()]
    assert run(lambda cluster: cluster.partitions(OPTIONS.selection)) == [A, B]
    assert sorted(node for node, _ in brokers.requests) == [1, 2]
    assert clock.pauses == []


@pytest.mark.parametrize(
    ("error", "expected", "text", "seconds"),
    [
        (kafka.TopicAuthorizationFailedError("orders"), NotAuthorized, "deny this user access to .*orders", 0),
        (kafka.ClusterAuthorizationFailedError(), NotAuthorized, "The ACLs of a:1 deny", 0),
        (kafka.UnknownTopicOrPartitionError("orders-0"), TopicMissing, "does not exist in the cluster at a:1", 1),
        (kafka.InvalidTopicError("orders"), BrokerRefused, "InvalidTopic", 0),
        (kafka.LeaderNotAvailableError("orders-0"), SourceError, "LeaderNotAvailable", 5),
        (client_errors.NotAuthorized("no"), NotAuthorized, "no", 0),
    ],
)
def test_an_error_that_does_not_pass_is_explained(
    brokers: FakeBrokers, clock: FakeClock, error: Exception, expected: type[SourceError], text: str, seconds: int
) -> None:
    brokers.failures = [None, error] * 40
    with pytest.raises(expected, match=text):
        run(lambda cluster: cluster.offsets({A: LATEST}, Isolation.READ_COMMITTED))
    assert seconds <= clock.seconds - 100 < seconds + 2.1
    assert bool(clock.pauses) == bool(seconds)


@pytest.mark.parametrize(
    ("has_answered", "first_max", "expected"),
    [(False, None, 3.0), (False, 20.0, 5.0), (False, 4.0, 4.0), (True, None, 5.0)],
)
def test_brokers_that_never_responded_get_less_time(
    brokers: FakeBrokers, clock: FakeClock, has_answered: bool, first_max: float | None, expected: float
) -> None:
    async def use(cluster: Cluster) -> None:
        if has_answered:
            await cluster.partitions(OPTIONS.selection)
            await cluster.close()
        brokers.failures = [OSError("down")] * 100
        clock.seconds = 100.0
        with pytest.raises(
            BrokerUnreachable, match=r"one:9092, two:9092 responds.*Requested were the list of topics; the last"
        ):
            await cluster.partitions(OPTIONS.selection)

    run(use, Cluster(OPTIONS.connection, first_max))
    assert brokers.patience[-1] == expected
    assert expected <= clock.seconds - 100 < expected + 2.1


def test_an_unauthorized_topic_is_reported(brokers: FakeBrokers) -> None:
    brokers.topics["orders"].error = kafka.TopicAuthorizationFailedError.errno
    with pytest.raises(NotAuthorized, match=r"deny this user access to .*orders"):
        run(lambda cluster: cluster.partitions(OPTIONS.selection))
    # A pattern skips topics that the user may not read.
    pattern = read_options({"bootstrap.servers": "a:1", "subscribePattern": ".*"}, is_streaming=False).selection
    brokers.topics["other"] = Topic({0: 1})
    assert run(lambda cluster: cluster.partitions(pattern)) == [TopicPartition("other", 0)]


@pytest.mark.parametrize(("leaders", "expected"), [({}, TopicMissing), ({0: -1}, BrokerRefused), ({0: 2}, None)])
def test_a_partition_needs_a_leader(
    brokers: FakeBrokers, clock: FakeClock, leaders: dict[int, int], expected: type[SourceError] | None
) -> None:
    brokers.topics["orders"].partitions = leaders
    if expected is None:
        brokers.responses = [fetched()]
        assert run(fetch).batches == b"records"
        assert brokers.fetches == ["two:9092"]
    else:
        with pytest.raises(expected):
            run(fetch)


def test_connections_for_fetches_are_reused_until_they_close(brokers: FakeBrokers) -> None:
    brokers.responses = [fetched() for _ in range(4)]

    async def use(cluster: Cluster) -> None:
        await fetch(cluster)
        await fetch(cluster)
        assert len(brokers.connections) == 1
        brokers.connections[0].is_open = False
        await fetch(cluster)
        assert len(brokers.connections) == 2
        await cluster.close()
        assert not brokers.connections[1].is_open
        assert brokers.clients[0].is_closed
        await fetch(cluster)
        await cluster.close()
        await cluster.close()

    run(use)
    assert (len(brokers.connections), len(brokers.clients)) == (3, 2)


def test_a_fetch_is_retried_on_a_new_connection(brokers: FakeBrokers, clock: FakeClock) -> None:
    block = Block()
    memory = block.room(10)
    brokers.refused = [OSError("refused")]
    brokers.responses = [TimeoutError(), kafka.KafkaConnectionError("closed"), fetched(6), fetched(topic=""), fetched()]
    brokers.responses[3].topics = []
    assert run(lambda cluster: fetch(cluster, block=block)).batches == b"records"
    assert len(clock.pauses) == 5
    # A late response may still write to the memory of a failed fetch.
    assert block.room(10).obj is not memory.obj


@pytest.mark.parametrize("version", [6, 7])
def test_the_error_of_the_whole_response_is_checked(brokers: FakeBrokers, clock: FakeClock, version: int) -> None:
    failed = fetched(version=version)
    failed.error_code = kafka.TopicAuthorizationFailedError.errno
    brokers.responses = [failed]
    if version == 6:
        # Older responses have no such field.
        del failed.error_code
        assert run(fetch).batches == b"records"
    else:
        with pytest.raises(NotAuthorized):
            run(fetch)


def test_an_offset_out_of_range_is_a_result(brokers: FakeBrokers) -> None:
    brokers.responses = [fetched(kafka.OffsetOutOfRangeError.errno)]
    assert run(fetch).is_out_of_range


@pytest.mark.parametrize("size", [0, 1, 10])
def test_memory_is_reused_until_it_is_left(size: int) -> None:
    block = Block()
    first = block.room(10)
    assert len(block.room(size)) == size
    assert block.room(10).obj is first.obj
    assert len(block.room(11)) == 11
