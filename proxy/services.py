"""What a running proxy holds: made once, handed to every route."""

from dataclasses import dataclass

import httpx

from proxy.consumers.instances import ConsumerInstances
from proxy.consumers.ownership import Ownership
from proxy.kafka.identity import ClusterIdentity
from proxy.peers import open_peers
from proxy.producers.sender import Sender
from proxy.reading.cluster import Cluster
from proxy.reading.payloads import Payloads
from proxy.schemas import SchemaWriters
from proxy.settings import ProxySettings
from serdes import AsyncRegistryClient, RegistrySettings


@dataclass(frozen=True, slots=True)
class Services:
    settings: ProxySettings
    registry: AsyncRegistryClient
    sender: Sender
    schemas: SchemaWriters
    identity: ClusterIdentity
    cluster: Cluster
    payloads: Payloads
    ownership: Ownership
    peers: httpx.AsyncClient
    consumers: ConsumerInstances

    async def close(self) -> None:
        await self.consumers.close()
        await self.peers.aclose()
        await self.cluster.close()
        await self.sender.close()
        await self.registry.close()


def open_services(settings: ProxySettings) -> Services:
    """Connects to nobody yet: the proxy starts, and answers, while brokers or registry are down."""
    registry = AsyncRegistryClient(RegistrySettings(urls=(settings.schema_registry_url,)))
    ownership = Ownership.of(settings)
    cluster = Cluster(settings)
    return Services(
        settings,
        registry,
        Sender(settings),
        SchemaWriters(registry),
        ClusterIdentity(settings),
        cluster,
        Payloads(registry),
        ownership,
        open_peers(),
        ConsumerInstances(settings, ownership, cluster),
    )
