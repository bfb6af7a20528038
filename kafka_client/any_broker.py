"""Sends a request to any broker. If a broker does not respond, the next one gets the request."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from aiokafka import errors as kafka

NEXT_BROKER_SECONDS: Final = 1.0
"""How long to wait for a broker before sending the request to the next one. The last one gets the remaining time."""


async def send_to_any(client: Any, request_for: Callable[[int], Any], *, changes: bool = False) -> Any:
    """Returns the response of the first broker that responds. Raises the error of the last one.

    `request_for` returns the request for a broker. Set `changes` if the request must not be processed twice.
    """
    nodes = nodes_to_ask(client)
    for node in nodes[:-1]:
        try:
            # Never abandon a request that changes state, because the broker may have processed it.
            async with asyncio.timeout(None if changes else NEXT_BROKER_SECONDS):
                return await client.send(node, request_for(node))
        except kafka.NodeNotReadyError:
            continue
        except (kafka.KafkaConnectionError, kafka.RequestTimedOutError, TimeoutError):
            if changes:
                raise
    return await client.send(nodes[-1], request_for(nodes[-1]))


def nodes_to_ask(client: Any) -> list[int]:
    """Returns all brokers in random order. Brokers with an open connection are first."""
    nodes = [int(broker.nodeId) for broker in client.cluster.brokers()]
    random.SystemRandom().shuffle(nodes)
    connected = client.connected_nodes()
    return sorted(nodes, key=lambda node: node not in connected) or [int(client.get_random_node())]
