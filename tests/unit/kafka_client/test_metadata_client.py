"""Metadata updates never create a topic, and a change of topics in the middle of one does not stall the client."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.metadata import MetadataRequest_v5

from headgate.kafka_client import aiokafka_internals
from headgate.kafka_client.aiokafka_internals import MetadataClient, adopt_client
from headgate.kafka_client.errors import TopicNotFound
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.connection import ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions

CONNECTION = ConnectionOptions(("127.0.0.1:9092",), request_timeout_ms=2000)
FOR_EVER_MS = 10_000_000


class FakeConnection:
    """A broker with one partition for each of its topics. Creates a topic only if the request allows that."""

    def __init__(self) -> None:
        self.topics = {"a", "b"}
        self.requests: list[tuple[list[str] | None, bool]] = []
        self.before_answer: Callable[[], None] = lambda: None
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    async def send(self, request: Any) -> Any:
        struct = request.build(MetadataRequest_v5)
        names, creates = struct.topics, struct.allow_auto_topic_creation
        self.requests.append((names, creates))
        await asyncio.sleep(0)
        self.before_answer()
        if creates:
            self.topics |= set(names or ())
        found = []
        for name in self.topics if names is None else names:
            partitions: list[Any] = [(0, 0, 1, [1], [1], [])] if name in self.topics else []
            found.append((0 if name in self.topics else 3, name, False, partitions))
        return SimpleNamespace(API_VERSION=5, brokers=[(1, "host", 1, None)], controller_id=1, topics=found)


def made(connection: FakeConnection, max_age_ms: int) -> Any:
    client: Any = MetadataClient(metadata_max_age_ms=max_age_ms)

    async def get_connection(node: object, **_: object) -> FakeConnection:
        return connection

    async def send(node: object, request: Any) -> Any:
        return await connection.send(request)

    client._get_conn, client.send = get_connection, send
    client.get_random_node = lambda: 1
    broker = SimpleNamespace(API_VERSION=5, brokers=[(1, "host", 1, None)], controller_id=1, topics=[])
    client.cluster.update_metadata(broker)
    client._sync_task = asyncio.get_running_loop().create_task(client._md_synchronizer())
    return client


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 20)

    asyncio.run(bounded())


def test_a_change_of_topics_inside_a_periodic_update_repeats_it_at_once() -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        client = made(connection, max_age_ms=5)
        client._topics = {"a", "b"}
        is_changed = asyncio.Event()

        def change(_: object) -> None:
            if not is_changed.is_set():
                is_changed.set()
                client._metadata_max_age_ms = FOR_EVER_MS
                client.set_topics(["a"])

        client.cluster.add_listener(change)
        await is_changed.wait()
        await client.force_metadata_update()
        assert connection.requests[-1][0] == ["a"]
        await client._maybe_wait_metadata()
        await client.close()

    run(scenario)


@pytest.mark.parametrize("is_answered", [True, False])
def test_bootstrap_addresses_are_asked_again_if_no_known_broker_responds(
    is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        client = made(connection, FOR_EVER_MS)
        client.cluster.update_metadata(
            SimpleNamespace(API_VERSION=5, brokers=[(1, "old", 1, None)], controller_id=1, topics=[])
        )
        connected: list[tuple[str, int]] = []

        async def unreachable(node: object, **_: object) -> None:
            return None

        async def connect(host: str, port: int, **_: object) -> FakeConnection:
            connected.append((host, port))
            if not is_answered:
                raise ConnectionRefusedError
            return connection

        client._get_conn = unreachable
        client._bootstrap_servers = "bootstrap:9092"
        monkeypatch.setattr(aiokafka_internals, "connect", connect)
        assert await client.force_metadata_update() is is_answered
        assert set(connected) == {("bootstrap", 9092)}
        assert client.cluster.broker_metadata(1).host == ("host" if is_answered else "old")
        assert connection.is_closed is is_answered
        await client.close()

    run(scenario)


def test_a_topic_that_is_added_during_an_update_is_known_when_its_future_is_done() -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        client = made(connection, FOR_EVER_MS)
        client._topics = {"a"}
        added: list[Any] = []

        def add() -> None:
            if not added:
                added.append(client.add_topic("b"))

        connection.before_answer = add
        await client.force_metadata_update()
        await added[0]
        assert client.cluster.partitions_for_topic("b") == {0}
        await client.close()

    run(scenario)


def test_no_update_of_a_client_or_of_a_consumer_that_adopted_it_may_create_a_topic() -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        client = made(connection, FOR_EVER_MS)
        await client.add_topic("missing")
        await client.fetch_all_metadata()
        await client.close()
        assert [creates for _, creates in connection.requests] == [False] * len(connection.requests)
        assert connection.topics == {"a", "b"}
        make: Any = AIOKafkaConsumer
        consumer = make()
        adopt_client(consumer)
        assert consumer._client._metadata_update.__func__ is MetadataClient._metadata_update
        await consumer.stop()

    run(scenario)


@pytest.mark.parametrize("auto_create", [True, False])
def test_a_produce_creates_a_missing_topic_with_one_request_if_it_may(auto_create: bool) -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        link = ProducerConnection(CONNECTION, ProducerOptions(auto_create_topics=auto_create))
        link._client = made(connection, FOR_EVER_MS)
        if auto_create:
            assert await link.partitions("new") == (0,)
        else:
            with pytest.raises(TopicNotFound):
                await link.partitions("new")
        assert [request for request in connection.requests if request[1]] == [(["new"], True)] * auto_create
        connection.topics.discard("new")
        await link.refresh()
        assert "new" not in connection.topics, "a refresh brought the deleted topic back"
        await link.close()

    run(scenario)


def test_a_topic_that_was_idle_does_not_hold_up_the_next_produce(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        link = ProducerConnection(CONNECTION, ProducerOptions())
        client = link._client = made(connection, max_age_ms=5)
        is_idle = asyncio.Event()

        def updated(cluster: object) -> None:
            link._updated(cluster)
            if is_idle.is_set() or link._used:
                return
            is_idle.set()
            client._metadata_max_age_ms = FOR_EVER_MS

        await link.partitions("a")
        client.cluster.add_listener(updated)
        monkeypatch.setattr("headgate.kafka_client.producer.connection.topic_idle_seconds", -1.0)
        await is_idle.wait()
        monkeypatch.setattr("headgate.kafka_client.producer.connection.topic_idle_seconds", 300.0)
        assert await link.partitions("b") == (0,)
        await link.close()

    run(scenario)
