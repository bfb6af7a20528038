"""Sends requests to a given broker, or to any broker that responds.

Connects on first use, and re-bootstraps if the known brokers are unreachable. Every request ends within
`request_timeout_ms`. Raises BrokerUnavailable if no broker is reachable, NodeUnavailable if only the given broker is
not, and RetriableError if the response is missing.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import errors as kafka

from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.any_broker import send_to_any
from headgate.kafka_client.connection import open_client
from headgate.kafka_client.errors import NodeUnavailable, RetriableError
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.requests import Api, Request

NODE_CHECK_SECONDS: Final = 1.0
"""How often to check whether a broker that has not responded yet is still a member of the cluster."""
NODE_ATTEMPTS: Final = 2
_BROKERS: Final = Request(Api.METADATA, {"topics": [], "allow_auto_topic_creation": False})


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

    async def _send_to_known(self, client: Any, request: Request, node: int | None) -> Any:
        if node is None:
            return await send_to_any(client, lambda _: request, changes=request.api.changes)
        for attempt in range(NODE_ATTEMPTS):
            try:
                return await self._send_to_node(client, request, node)
            except (kafka.NodeNotReadyError, kafka.StaleMetadata):
                pass  # No request was sent.
            except kafka.KafkaConnectionError:
                if request.api.changes:
                    raise
            if attempt == 0:
                await self._update_address(client, node)
        raise NodeUnavailable(f"Broker {node} does not respond. Check that it is running.")

    async def _update_address(self, client: Any, node: int) -> None:
        """Ask another broker for the address of the node. Raises aiokafka's errors if no broker responds."""
        brokers = (await send_to_any(client, lambda _: _BROKERS)).brokers
        address = next(((broker.host, broker.port) for broker in brokers if broker.node_id == node), None)
        known = client.cluster.broker_metadata(node)
        if address is None:
            raise NodeUnavailable(f"Broker {node} is not a member of the cluster at the moment.")
        if known is None or address != (known.host, known.port):
            await client.force_metadata_update()

    async def _send_to_node(self, client: Any, request: Request, node: int) -> Any:
        """Returns the response of one broker. Stops waiting for a read when the broker leaves the cluster."""
        if request.api.changes:
            return await client.send(node, request)
        sending = asyncio.ensure_future(client.send(node, request))
        try:
            while True:
                done, _ = await asyncio.wait((sending,), timeout=NODE_CHECK_SECONDS)
                if done:
                    return sending.result()
                brokers = (await send_to_any(client, lambda _: _BROKERS)).brokers
                if all(broker.node_id != node for broker in brokers):
                    raise NodeUnavailable(f"Broker {node} left the cluster before it responded.")
        finally:
            sending.cancel()

    async def _connected(self, instead_of: Any = None) -> Any:
        async with self._connecting:
            if self._client is not None and self._client is not instead_of:
                return self._client
            if self._client is not None:
                await self.close()
            self._client = await open_client(self._options)
            return self._client
