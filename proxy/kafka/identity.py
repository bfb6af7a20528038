"""The cluster's id: what v3 paths begin with. Asked for once, since a cluster keeps its id."""

import asyncio
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient

from proxy.errors import ResourceNotFound
from proxy.kafka.faults import proxy_error
from proxy.settings import ProxySettings


class ClusterIdentity:
    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._known: str | None = None
        self._asking = asyncio.Lock()

    async def cluster_id(self) -> str:
        """Raises BrokerUnavailable."""
        if self._known is None:
            async with self._asking:
                if self._known is None:
                    self._known = await self._ask()
        return self._known

    async def check(self, cluster_id: str) -> None:
        """Raises ResourceNotFound when the path names another cluster."""
        if cluster_id != await self.cluster_id():
            raise ResourceNotFound(f"Cluster {cluster_id} cannot be found.")

    async def _ask(self) -> str:
        make: Any = AIOKafkaAdminClient
        admin = make(
            bootstrap_servers=self._settings.bootstrap_servers,
            request_timeout_ms=self._settings.kafka_request_timeout_ms,
        )
        try:
            await admin.start()
            described = await admin.describe_cluster()
        except Exception as error:
            raise proxy_error(error) from error
        finally:
            await admin.close()
        return str(described["cluster_id"])
