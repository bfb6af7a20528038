"""Which broker is asked, and which one next when it does not answer."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors as kafka

from headgate.kafka_client import request_client
from headgate.kafka_client.errors import BrokerUnavailable
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


class FakeClient:
    """Three brokers, some of which fail in the way told."""

    def __init__(self, failures: dict[int, Exception | None]) -> None:
        self._failures = failures
        self.asked: list[int] = []
        brokers = [SimpleNamespace(nodeId=node) for node in (1, 2, 3)]
        self.cluster: Any = SimpleNamespace(brokers=lambda: brokers, broker_metadata=lambda node: node)

    def connected_nodes(self) -> set[int]:
        return set()

    async def send(self, node: int, question: object) -> str:
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
    monkeypatch.setattr(request_client, "NEXT_BROKER_SECONDS", 0.01)
    # The last broker has all the time that is left; a broker that hangs must not be the last one here.
    monkeypatch.setattr(random, "shuffle", lambda nodes: nodes.sort(key=lambda node: node == up))
    assert ask(FakeClient({node: failure for node in (1, 2, 3) if node != up})) == f"answer of {up}"


def test_a_change_that_may_have_arrived_is_not_sent_to_another_broker() -> None:
    client = FakeClient({node: kafka.KafkaConnectionError() for node in (1, 2, 3)})
    with pytest.raises(BrokerUnavailable):
        ask(client, Api.CREATE_TOPICS)
    assert len(client.asked) == 1


def test_a_broker_that_is_named_is_the_only_one_asked() -> None:
    client = FakeClient({2: kafka.NodeNotReadyError()})
    with pytest.raises(BrokerUnavailable):
        ask(client, node=2)
    assert set(client.asked) == {2}
