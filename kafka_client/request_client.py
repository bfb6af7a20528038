"""Sends requests to a given broker, or to any broker that responds.

Connects on first use, and re-bootstraps if the known brokers are unreachable. Every request ends within
`request_timeout_ms`. An unreachable broker raises BrokerUnavailable. A missing response raises RetriableError.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import errors as kafka

from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.connection import open_client
from headgate.kafka_client.errors import RetriableError
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.requests import Api, Request

NEXT_BROKER_SECONDS: Final = 1.0
"""How long to wait for a broker before sending the request to the next one. The last one gets the remaining time."""


class RequestClient:
    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._client: Any = None
        """A `MetadataClient`, which has no type hints."""
        self._connecting = asyncio.Lock()

    @property
    def request_timeout_ms(self) -> int:
        return self._options.request_timeout_ms

    async def open(self) -> None:
        """Connect now instead of on first use. Raises BrokerUnavailable, NotAuthenticated, InvalidProperty."""
        await self._connected()

    async def send(self, api: Api, fields: Mapping[str, object], node: int | None = None) -> Any:
        """Returns the response of broker `node`, or of any broker if `node` is None. Raises KafkaClientError."""
        try:
            async with asyncio.timeout(self.request_timeout_ms / 1000):
                return await self._send(Request(api, fields), node)
        except (TimeoutError, kafka.RequestTimedOutError) as error:
            raise RetriableError(
                f"The broker did not respond to {api.title} within {self.request_timeout_ms} ms. Try again later."
            ) from error
        except (kafka.KafkaError, OSError) as error:
            raise client_error(error) from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _send(self, request: Request, node: int | None) -> Any:
        client = await self._connected()
        try:
            return await self._send_to_known(client, request, node)
        except (kafka.NodeNotReadyError, kafka.StaleMetadata):
            # No request was sent. The brokers may have new addresses: re-bootstrap.
            pass
        except kafka.KafkaConnectionError:
            if request.api.changes:
                raise
        client = await self._connected(instead_of=client)
        return await self._send_to_known(client, request, node)

    @staticmethod
    async def _send_to_known(client: Any, request: Request, node: int | None) -> Any:
        """Returns the response of the node, or of the first broker that responds. Raises the error of the last one."""
        nodes = nodes_to_ask(client) if node is None else [node]
        for chosen in nodes[:-1]:
            try:
                # Never abandon a request that changes state, because the broker may have processed it.
                async with asyncio.timeout(None if request.api.changes else NEXT_BROKER_SECONDS):
                    return await client.send(chosen, request)
            except kafka.NodeNotReadyError:
                continue
            except (kafka.KafkaConnectionError, kafka.RequestTimedOutError, TimeoutError):
                if request.api.changes:
                    raise
        last = nodes[-1]
        if client.cluster.broker_metadata(last) is None:
            await client.force_metadata_update()
        return await client.send(last, request)

    async def _connected(self, instead_of: Any = None) -> Any:
        async with self._connecting:
            if self._client is not None and self._client is not instead_of:
                return self._client
            if self._client is not None:
                await self.close()
            self._client = await open_client(self._options)
            return self._client


def nodes_to_ask(client: Any) -> list[int]:
    """Returns all brokers in random order. Brokers with an open connection are first."""
    nodes = [int(broker.nodeId) for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    connected = client.connected_nodes()
    return sorted(nodes, key=lambda node: node not in connected) or [int(client.get_random_node())]
