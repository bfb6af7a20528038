"""Runs a coroutine of a command with a connection to the cluster."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headgate.proxy.admin.cluster import AdminCluster

T = TypeVar("T")


def with_cluster(bootstrap_server: str, work: "Callable[[AdminCluster], Awaitable[T]]") -> T:
    """Connect, run `work`, disconnect. Raises KafkaFault, ProxyError."""
    import asyncio

    from headgate.gateway.kafka.cluster import connect

    async def run() -> T:
        async with connect(bootstrap_server) as cluster:
            return await work(cluster)

    return asyncio.run(run())
