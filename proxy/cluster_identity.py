"""Cached cluster id for v3 paths. Requests the id again if a path contains another id."""

import asyncio
import time
from typing import Final

from headgate.kafka_client.admin.topics import describe_cluster
from headgate.kafka_client.errors import ResourceNotFound
from headgate.kafka_client.request_client import RequestClient
from headgate.proxy.settings import ProxySettings

# Minimum time between two requests for the cluster id.
recheck_seconds: Final = 1.0


class ClusterIdentity:
    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._known: str | None = None
        self._asked_at = 0.0
        self._asking = asyncio.Lock()

    async def cluster_id(self) -> str:
        """Raises BrokerUnavailable, RetriableError."""
        if self._known is None:
            async with self._asking:
                if self._known is None:
                    await self._update()
        assert self._known is not None
        return self._known

    async def check(self, cluster_id: str) -> None:
        """Raises ResourceNotFound if the path contains another cluster id."""
        if cluster_id == await self.cluster_id():
            return
        # Another cluster may have replaced the brokers at this address.
        async with self._asking:
            if cluster_id != self._known and time.monotonic() - self._asked_at > recheck_seconds:
                await self._update()
        if cluster_id != self._known:
            raise ResourceNotFound(f"Cluster {cluster_id} cannot be found.")

    async def _update(self) -> None:
        self._known = await self._ask()
        self._asked_at = time.monotonic()

    async def _ask(self) -> str:
        # Use a new client: it connects to the bootstrap addresses, which may now belong to another cluster.
        cluster = RequestClient(self._settings.connection)
        try:
            return (await describe_cluster(cluster)).cluster_id
        finally:
            await cluster.close()
