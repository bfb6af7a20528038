"""What a running proxy holds: made once, handed to every route."""

from dataclasses import dataclass

from proxy.kafka.identity import ClusterIdentity
from proxy.producers.sender import Sender
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

    async def close(self) -> None:
        await self.sender.close()
        await self.registry.close()


def open_services(settings: ProxySettings) -> Services:
    """Connects to nobody yet: the proxy starts, and answers, while brokers or registry are down."""
    registry = AsyncRegistryClient(RegistrySettings(urls=(settings.schema_registry_url,)))
    return Services(settings, registry, Sender(settings), SchemaWriters(registry), ClusterIdentity(settings))
