"""The connection of a producer: topics, producer ids, produce requests, and brokers that are unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, KafkaClientError, NotAuthorized, TopicNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer import connection
from headgate.kafka_client.producer.connection import Placed, ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.records import ProducerIdentity

OPTIONS = ConnectionOptions(("127.0.0.1:9092",), request_timeout_ms=30_000)
UNKNOWN = kafka.UnknownTopicOrPartitionError.errno


class FakeClient:
    """A client of one broker. It answers requests from tables."""

    def __init__(self) -> None:
        self.partitions: dict[str, set[int]] = {}
        self.leaders: dict[int, int] = {}
        self.requests: list[Any] = []
        self.topic_codes: list[int | None] = []
        """Error codes of the next metadata requests. The last one repeats."""
        self.configs: list[tuple[str, str]] = []
        self.responses: list[Any] = []
        self.appears_after = 0
        """Number of metadata updates until an added topic has partitions."""
        self.updates = 0
        self.topics: list[str] = []
        self.is_closed = False
        self.cluster = SimpleNamespace(
            partitions_for_topic=self.partitions.get,
            leader_for_partition=lambda at: self.leaders.get(at.partition),
            add_listener=lambda listener: setattr(self, "listener", listener),
            brokers=lambda: [
                SimpleNamespace(nodeId=2, host="two", port=2),
                SimpleNamespace(nodeId=1, host="one", port=1),
            ],
        )
        self.listener: Any = None

        self.down: dict[int, Exception] = {}
        """Errors of brokers that do not respond."""

    def connected_nodes(self) -> set[int]:
        return set()

    async def send(self, node: int, request: Any) -> Any:
        if node in self.down:
            raise self.down[node]
        self.requests.append(request)
        name = type(request).__name__
        if name.startswith("DescribeConfigs"):
            return SimpleNamespace(resources=[(0, "", 4, str(node), [(*config, False) for config in self.configs])])
        if name.startswith("Metadata"):
            code = self.topic_codes.pop(0) if len(self.topic_codes) > 1 else self.topic_codes[0]
            return SimpleNamespace(topics=[] if code is None else [(code, "t", False, [])])
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    async def add_topic(self, topic: str) -> None:
        if topic not in self.topics:
            self.topics.append(topic)
            await self.force_metadata_update()

    async def force_metadata_update(self) -> None:
        self.updates += 1
        if len(self.down) == len(self.cluster.brokers()):
            self.down = {}  # The bootstrap address returns the new addresses of the brokers.
        if self.updates > self.appears_after:
            for topic in self.topics:
                self.partitions[topic] = {1, 0}

    def set_topics(self, topics: list[str]) -> None:
        assert topics != self.topics, "an unnecessary update"
        self.topics = topics

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient()

    async def opened(_options: Any) -> FakeClient:
        return fake

    async def sleep(_seconds: float) -> None:
        pass

    monkeypatch.setattr(connection, "open_client", opened)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return fake


def run(use: Callable[[ProducerConnection], Awaitable[Any]], **options: Any) -> Any:
    async def used() -> Any:
        return await use(ProducerConnection(OPTIONS, ProducerOptions(**options)))

    return asyncio.run(used())


@pytest.mark.parametrize(
    ("codes", "configs", "may_create", "expected"),
    [
        ([0], [], False, None),
        ([kafka.LeaderNotAvailableError.errno], [], False, None),
        ([UNKNOWN], [("auto.create.topics.enable", "true")], True, None),
        ([UNKNOWN], [("auto.create.topics.enable", "true")], False, TopicNotFound),
        ([UNKNOWN], [("auto.create.topics.enable", "false")], True, TopicNotFound),
        ([UNKNOWN], [("other", "false")], True, None),
        ([None], [("auto.create.topics.enable", "false")], True, TopicNotFound),
        ([kafka.TopicAuthorizationFailedError.errno], [], True, NotAuthorized),
        ([kafka.InvalidTopicError.errno], [], True, TopicNotFound),
    ],
)
def test_a_topic_must_exist_or_be_creatable(
    client: FakeClient, codes: list[Any], configs: list[Any], may_create: bool, expected: Any
) -> None:
    client.topic_codes, client.configs = codes, configs

    async def use(link: ProducerConnection) -> None:
        if expected is None:
            await link.check_topic("t")
        else:
            with pytest.raises(expected):
                await link.check_topic("t")

    run(use, auto_create_topics=may_create)
    assert not any(getattr(request, "_allow_auto_topic_creation", False) for request in client.requests)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 250, "ü", "a\n"])
def test_an_invalid_topic_name_is_never_sent(client: FakeClient, name: str) -> None:
    async def use(link: ProducerConnection) -> None:
        for check in (link.check_topic, link.partitions):
            with pytest.raises(TopicNotFound):
                await check(name)

    run(use)
    assert client.requests == []


@pytest.mark.parametrize("name", ["...", "x" * 249, "a.b_c-D9"])
def test_a_valid_topic_name_is_looked_up(client: FakeClient, name: str) -> None:
    client.topic_codes = [0]
    assert run(lambda link: link.partitions(name)) == (0, 1)


@pytest.mark.parametrize("appears_after", [0, 1, 4, 5])
def test_a_new_topic_is_awaited_until_it_has_partitions(client: FakeClient, appears_after: int) -> None:
    # The second request creates the topic. The brokers know it from the fifth request on.
    client.topic_codes, client.appears_after = [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 0], appears_after
    assert run(lambda link: link.partitions("t")) == (0, 1)
    assert client.updates == appears_after + 1
    creating = [request._allow_auto_topic_creation for request in client.requests]
    assert creating[:2] == [False, True]
    assert not any(creating[2:])


def test_a_topic_that_never_appears_is_not_found(client: FakeClient) -> None:
    client.topic_codes = [UNKNOWN]

    async def use(link: ProducerConnection) -> None:
        client.appears_after = 1000
        with pytest.raises(TopicNotFound):
            await link.partitions("t")

    run(use)
    assert len(client.requests) < 20


def test_known_partitions_need_no_request(client: FakeClient) -> None:
    async def use(link: ProducerConnection) -> None:
        assert link.known_partitions("t") is None
        assert link.leader("t", 0) is None
        assert link.advertised() == []
        await link.refresh()
        client.topic_codes = [0]
        assert await link.partitions("t") == (0, 1)
        client.requests.clear()
        assert await link.partitions("t") == link.known_partitions("t") == (0, 1)
        await link.check_topic("t")
        assert client.requests == []
        assert link.known_partitions("other") is None
        client.partitions["empty"] = set()
        assert link.known_partitions("empty") is None
        client.leaders = {0: 3, 1: -1}
        assert [link.leader("t", partition) for partition in range(3)] == [3, None, None]
        assert link.advertised() == ["one:1", "two:2"]
        await link.close()
        assert client.is_closed
        assert link.leader("t", 0) is None

    run(use)


def test_topics_without_a_produce_leave_the_metadata(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.topic_codes = [0]
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: clock.now))

    async def use(link: ProducerConnection) -> None:
        await link.partitions("a")
        await link.partitions("b")
        client.listener(None)
        clock.now += 300
        client.listener(None)
        assert client.topics == ["a", "b"]
        link.known_partitions("b")
        clock.now += 1
        client.listener(None)
        assert client.topics == ["b"]
        assert link.known_partitions("b") == (0, 1)
        await link.close()
        client.listener(None)
        clock.now += 1000
        client.listener(None)
        assert client.topics == ["b"]

    run(use)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0], None),
        ([kafka.GroupLoadInProgressError.errno] * 3 + [0], None),
        ([kafka.ClusterAuthorizationFailedError.errno], NotAuthorized),
        # Two brokers, before and after an update of the metadata.
        ([kafka.KafkaConnectionError("gone")] * 4, BrokerUnavailable),
    ],
)
def test_a_producer_id_is_requested_until_the_broker_has_one(
    client: FakeClient, codes: list[Any], expected: type[Exception] | None
) -> None:
    client.responses = [
        code
        if isinstance(code, Exception)
        else SimpleNamespace(error_code=code, producer_id=40 + len(codes), producer_epoch=2)
        for code in codes
    ]
    if expected is None:
        assert run(lambda link: link.new_identity()) == ProducerIdentity(40 + len(codes), 2)
    else:
        with pytest.raises(expected):
            run(lambda link: link.new_identity())
    assert client.responses == []
    # Kafka's clients send -1 as the transaction timeout of a producer without transactions.
    assert {(each._transactional_id, each._transaction_timeout_ms) for each in client.requests} == {(None, -1)}


def test_a_producer_id_is_not_awaited_longer_than_a_request(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 30.0, 30.1])
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    busy = SimpleNamespace(error_code=kafka.GroupLoadInProgressError.errno, producer_id=1, producer_epoch=0)
    client.responses = [busy] * 3

    async def use(link: ProducerConnection) -> None:
        with pytest.raises(KafkaClientError):
            await link.new_identity()

    run(use)
    assert len(client.responses) == 1


def batch(topic: str, partition: int) -> Any:
    return SimpleNamespace(topic=topic, partition=partition, buffer=b"%s-%d" % (topic.encode(), partition))


def test_batches_are_sent_by_topic_and_responses_are_matched_by_partition(client: FakeClient) -> None:
    rows = [("a", [(0, 0, 5, -1, 9), (1, 0, 6, 0), (2, 10, -1, -1)]), ("b", [(0, 0, 8, 1), (0, 0, 9, 1), (1, 0, 4, 7)])]

    async def use(link: ProducerConnection) -> Any:
        client.topic_codes = [0]
        await link.partitions("t")
        client.responses = [SimpleNamespace(topics=rows)]
        return await link.produce(7, [batch("a", 0), batch("b", 0), batch("a", 1)])

    # A partition that occurs twice has no certain result.
    assert run(use) == {
        ("a", 0): Placed(None, 5, None),
        ("a", 1): Placed(None, 6, 0),
        ("a", 2): Placed(ErrorCode.message_too_large, -1, None),
        ("b", 1): Placed(None, 4, 7),
    }
    request = client.requests[-1]
    assert request._topics == [("a", [(0, b"a-0"), (1, b"a-1")]), ("b", [(0, b"b-0")])]
    assert request._required_acks == -1


def test_without_acknowledgements_there_is_no_response(client: FakeClient) -> None:
    async def use(link: ProducerConnection) -> Any:
        client.topic_codes = [0]
        await link.partitions("t")
        client.responses = [None]
        return await link.produce(7, [batch("a", 3)])

    assert run(use, acks=0) == {("a", 3): Placed(None, -1, None)}


def test_callers_fail_at_once_while_the_brokers_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []
    clock = SimpleNamespace(now=1000.0)

    async def refused(_options: Any) -> None:
        attempts.append(1)
        raise OSError("refused")

    monkeypatch.setattr(connection, "open_client", refused)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: clock.now))

    async def use(link: ProducerConnection) -> list[int]:
        found = []
        for seconds in (0.0, 0.25, 0.25, 0.25):
            clock.now += seconds
            with pytest.raises(BrokerUnavailable):
                await link.new_identity()
            found.append(len(attempts))
        return found

    assert run(use) == [1, 1, 2, 2]


@pytest.mark.parametrize("error", [kafka.NodeNotReadyError(), kafka.KafkaConnectionError(), TimeoutError()])
@pytest.mark.parametrize("down", [[1], [2]])
def test_requests_to_any_broker_do_not_depend_on_one_of_them(
    client: FakeClient, error: Exception, down: list[int]
) -> None:
    client.down = dict.fromkeys(down, error)
    client.topic_codes = [UNKNOWN]
    client.configs = [("auto.create.topics.enable", "true")]
    client.responses = [SimpleNamespace(error_code=0, producer_id=5, producer_epoch=1)]

    async def use(link: ProducerConnection) -> Any:
        await link.check_topic("t")
        return await link.new_identity()

    assert run(use) == ProducerIdentity(5, 1)


@pytest.mark.parametrize("error", [kafka.NodeNotReadyError(), kafka.KafkaConnectionError()])
def test_the_metadata_is_updated_if_no_known_broker_is_reachable(client: FakeClient, error: Exception) -> None:
    client.down = {1: error, 2: error}
    client.topic_codes = [0]
    run(lambda link: link.check_topic("t"))
    assert client.updates == 1
