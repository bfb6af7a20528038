"""The cluster, to be asked: connections and routing are aiokafka's, messages are kio's.

Connects on first use, and again when the brokers it knew are gone. Every question ends within the time that the
settings give a Kafka request: a broker that is down is BrokerUnavailable, one that does not answer KafkaRetriable.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from aiokafka import errors as kafka

from headgate.proxy.admin.messages import Api, Question
from headgate.proxy.admin.refusals import Unsettled, check
from headgate.proxy.errors import BrokerUnavailable, KafkaRetriable, LeaderNotFound, ProxyError
from headgate.proxy.kafka.metadata_client import MetadataClient
from headgate.proxy.settings import ProxySettings

CLIENT_ID: Final = "headgate-proxy"

# Coordinators and leaders that are being elected are there within moments; Kafka's own tools wait in the same way.
settling_attempts_max: Final = 16
settling_pause_seconds: Final = 0.25
# How long a broker may take until the next one is asked. The last one has all the time that is left.
other_broker_seconds: Final = 1.0

Result = TypeVar("Result")


class AdminCluster:
    def __init__(self, settings: ProxySettings, client_id: str = CLIENT_ID) -> None:
        self._settings = settings
        self._client_id = client_id
        self._client: Any = None
        """An AIOKafkaClient, which has no types."""
        self._connecting = asyncio.Lock()

    @property
    def request_timeout_ms(self) -> int:
        return self._settings.kafka_request_timeout_ms

    async def ask(self, api: Api, fields: Mapping[str, object], node: int | None = None) -> Any:
        """One node's answer, any node's if none is named. Raises BrokerUnavailable, KafkaRetriable, ApiMissing."""
        try:
            async with asyncio.timeout(self.request_timeout_ms / 1000):
                return await self._ask(Question(api, fields), node)
        except (TimeoutError, kafka.RequestTimedOutError) as error:
            raise KafkaRetriable(
                f"The broker did not answer {api.title} within {self.request_timeout_ms} ms; try again later."
            ) from error
        except (kafka.KafkaError, OSError) as error:
            raise self._unavailable(error) from error

    async def open(self) -> None:
        """Connect now, for who wants to know at once. Raises what aiokafka raises."""
        await self._connected()

    async def coordinator(self, group: str) -> int:
        """The node that keeps a group."""

        async def find() -> int:
            found = await self.ask(Api.FIND_COORDINATOR, {"key": group, "key_type": 0})
            check(found.error_code, found.error_message, f"coordinator of group {group}")
            return int(found.node_id)

        return await settled(find)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, question: Question, node: int | None) -> Any:
        client = await self._connected()
        try:
            return await self._ask_known(client, question, node)
        except (kafka.NodeNotReadyError, kafka.StaleMetadata):
            # Nothing has left. The brokers may have moved since we learnt of them: ask at the bootstrap address again.
            pass
        except kafka.KafkaConnectionError:
            if question.api.changes:
                raise
        client = await self._connected(instead_of=client)
        return await self._ask_known(client, question, node)

    @staticmethod
    async def _ask_known(client: Any, question: Question, node: int | None) -> Any:
        """The answer of the node, or of the first broker that is reachable. Raises what the last one raised."""
        nodes = nodes_to_ask(client) if node is None else [node]
        for chosen in nodes[:-1]:
            try:
                # A request that changes something is not given up: it may have been carried out.
                async with asyncio.timeout(None if question.api.changes else other_broker_seconds):
                    return await client.send(chosen, question)
            except kafka.NodeNotReadyError:
                continue
            except (kafka.KafkaConnectionError, kafka.RequestTimedOutError, TimeoutError):
                if question.api.changes:
                    raise
        last = nodes[-1]
        if client.cluster.broker_metadata(last) is None:
            await client.force_metadata_update()
        return await client.send(last, question)

    async def _connected(self, instead_of: Any = None) -> Any:
        async with self._connecting:
            if self._client is not None and self._client is not instead_of:
                return self._client
            if self._client is not None:
                await self.close()
            client: Any = MetadataClient(
                bootstrap_servers=self._settings.bootstrap_servers,
                client_id=self._client_id,
                request_timeout_ms=self.request_timeout_ms,
            )
            try:
                await client.bootstrap()
            except BaseException:
                await client.close()
                raise
            self._client = client
            return client

    def _unavailable(self, error: BaseException) -> ProxyError:
        reason = str(error) or type(error).__name__
        return BrokerUnavailable(f"No broker answers at {self._settings.bootstrap_servers}: {reason}. Is it running?")


def nodes_to_ask(client: Any) -> list[int]:
    """All brokers in random order, those with an open connection first."""
    nodes = [int(broker.nodeId) for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    connected = {key[0] for key, connection in client._conns.items() if connection.connected()}
    return sorted(nodes, key=lambda node: node not in connected) or [int(client.get_random_node())]


async def settled(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Ask again while the cluster is still sorting itself out; its last word counts."""
    for _ in range(settling_attempts_max - 1):
        try:
            return await ask()
        except (Unsettled, LeaderNotFound):
            await asyncio.sleep(settling_pause_seconds)
    return await ask()
