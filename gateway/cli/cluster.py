"""Runs a coroutine of a command with a connection to the cluster."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headgate.kafka_client.request_client import RequestClient

T = TypeVar("T")


def with_cluster(bootstrap_server: str, kafka_config: str | None, work: "Callable[[RequestClient], Awaitable[T]]") -> T:
    """Connect, run `work`, disconnect. Raises KafkaClientError."""
    import asyncio

    from headgate.gateway.kafka.cluster import connect, connection_options

    async def run() -> T:
        async with connect(connection_options(bootstrap_server, kafka_config)) as cluster:
            return await work(cluster)

    return asyncio.run(run())
