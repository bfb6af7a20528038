"""Which broker is asked, and which one next when it does not answer."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors as kafka

from headgate.kafka_client import any_broker, request_client
from headgate.kafka_client.errors import BrokerUnavailable, NodeUnavailable
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


class FakeClient:
    """Three brokers. The brokers in `failures` raise an error, or never respond (None). Others are `members`."""

    def __init__(self, failures: dict[int, Exception | None], members: tuple[int, ...] = (1, 2, 3)) -> None:
        self._failures = failures
        self.asked: list[int] = []
        """The brokers that got a request, except for requests of the client itself."""
        self.updates = 0
        self.addresses = {node: ("127.0.0.1", 9000 + node) for node in (1, 2, 3)}
        self._members = members
        brokers = [SimpleNamespace(nodeId=node) for node in (1, 2, 3)]
        known = {node: SimpleNamespace(host=host, port=port) for node, (host, port) in self.addresses.items()}
        self.cluster: Any = SimpleNamespace(brokers=lambda: brokers, broker_metadata=known.get)

    def connected_nodes(self) -> set[int]:
        return set()

    async def force_metadata_update(self) -> None:
        self.updates += 1
        self._failures = {}

    async def send(self, node: int, request: Any) -> Any:
        if request.fields:
            if node in self._failures:
                raise kafka.NodeNotReadyError
            rows = [(member, *self.addresses[member]) for member in self._members]
            return SimpleNamespace(brokers=[SimpleNamespace(node_id=n, host=host, port=port) for n, host, port in rows])
        self.asked.append(node)
        if node in self._failures:
            failure = self._failures[node]
            if failure is None:
                await asyncio.Event().wait()
            assert failure is not None
            raise failure
        return f"answer of {node}"


def ask(client: FakeClient, api: Api = Api.METADATA, node: int | None = None) -> Any:
    async def run() -> Any:
        cluster = RequestClient(ConnectionOptions(("127.0.0.1:9092",)))

        async def connected(instead_of: object = None) -> FakeClient:
            return client

        cluster._connected = connected  # type: ignore[method-assign]  # no network in unit tests
        return await cluster.send(api, {}, node)

    return asyncio.run(run())


@pytest.mark.parametrize("failure", [kafka.NodeNotReadyError(), kafka.KafkaConnectionError(), None])
@pytest.mark.parametrize("up", [1, 2, 3])
def test_one_broker_of_three_suffices_for_a_read(
    failure: Exception | None, up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(any_broker, "NEXT_BROKER_SECONDS", 0.01)
    # The last broker has all the time that is left; a broker that hangs must not be the last one here.
    monkeypatch.setattr(random, "shuffle", lambda nodes: nodes.sort(key=lambda node: node == up))
    assert ask(FakeClient({node: failure for node in (1, 2, 3) if node != up})) == f"answer of {up}"


def test_a_change_that_may_have_arrived_is_not_sent_to_another_broker() -> None:
    client = FakeClient({node: kafka.KafkaConnectionError() for node in (1, 2, 3)})
    with pytest.raises(BrokerUnavailable):
        ask(client, Api.CREATE_TOPICS)
    assert len(client.asked) == 1


@pytest.mark.parametrize("failure", [kafka.NodeNotReadyError(), kafka.KafkaConnectionError()])
def test_a_broker_that_is_named_is_the_only_one_asked(failure: Exception) -> None:
    client = FakeClient({2: failure})
    with pytest.raises(NodeUnavailable, match="Broker 2 does not respond"):
        ask(client, node=2)
    assert set(client.asked) == {2}


def test_a_broker_with_a_new_address_is_asked_there() -> None:
    client = FakeClient({2: kafka.NodeNotReadyError()})
    client.addresses[2] = ("127.0.0.1", 9999)
    assert ask(client, node=2) == "answer of 2"
    assert client.updates == 1


def test_a_broker_outside_the_cluster_is_unavailable() -> None:
    with pytest.raises(NodeUnavailable, match="Broker 2 is not a member"):
        ask(FakeClient({2: kafka.NodeNotReadyError()}, members=(1, 3)), node=2)


def test_a_read_ends_when_the_broker_leaves_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_client, "NODE_CHECK_SECONDS", 0.01)
    with pytest.raises(NodeUnavailable, match="Broker 2 left the cluster"):
        ask(FakeClient({2: None}, members=(1, 3)), node=2)


def test_a_change_that_may_have_arrived_is_not_repeated() -> None:
    client = FakeClient({2: kafka.KafkaConnectionError()})
    with pytest.raises(BrokerUnavailable) as raised:
        ask(client, Api.DELETE_GROUPS, node=2)
    assert not isinstance(raised.value, NodeUnavailable)
    assert client.asked == [2]


def test_no_broker_at_all_is_not_an_unavailable_node() -> None:
    with pytest.raises(BrokerUnavailable) as raised:
        ask(FakeClient(dict.fromkeys((1, 2, 3), kafka.NodeNotReadyError())), node=2)
    assert not isinstance(raised.value, NodeUnavailable)
