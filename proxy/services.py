"""Services of a running proxy, shared by all routes."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import httpx

from headgate.kafka_client.request_client import RequestClient
from headgate.proxy.cluster_identity import ClusterIdentity
from headgate.proxy.consumers.group_stream import GroupStreams
from headgate.proxy.consumers.instances import ConsumerInstances
from headgate.proxy.consumers.ownership import Ownership
from headgate.proxy.peers import open_peers
from headgate.proxy.producers.idempotency import OnceOnly
from headgate.proxy.producers.outcome_log import OutcomeLog
from headgate.proxy.producers.report_buffer import ReportMemory
from headgate.proxy.producers.sender import Sender
from headgate.proxy.reading.cluster import Cluster
from headgate.proxy.reading.payloads import Payloads
from headgate.proxy.reading.stream import Readers
from headgate.proxy.schemas import SchemaEncoders
from headgate.proxy.settings import ProxySettings, UnknownSetting
from headgate.serdes import AsyncRegistryClient, RegistrySettings, RulePolicy

DEAD_LETTER_SCANS_MAX: Final = 4
"""Concurrent requests for dead letters. Each reads a topic."""


@dataclass(frozen=True, slots=True)
class Services:
    settings: ProxySettings
    registry: AsyncRegistryClient
    sender: Sender
    schemas: SchemaEncoders
    identity: ClusterIdentity
    cluster: Cluster
    payloads: Payloads
    readers: Readers
    ownership: Ownership
    peers: httpx.AsyncClient
    consumers: ConsumerInstances
    group_streams: GroupStreams
    admin: RequestClient
    once: OnceOnly
    reports: ReportMemory
    scans: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(DEAD_LETTER_SCANS_MAX))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the stop signal. Streams then end with a last message, and requests in flight finish."""

    def begin_stop(self) -> None:
        self.stopping.set()
        self.readers.stop()

    async def close(self) -> None:
        await self.readers.close()
        await self.group_streams.close()
        await self.consumers.close()
        await self.peers.aclose()
        await self.admin.close()
        await self.cluster.close()
        await self.once.close()
        await self.sender.close()
        await self.registry.close()


def open_services(settings: ProxySettings) -> Services:
    """Does not connect to brokers or registry yet, so that the proxy starts without them.

    Raises UnknownSetting.
    """
    try:
        registry_settings = RegistrySettings(urls=(settings.schema_registry_url,), rules=RulePolicy(settings.rules))
    except ValueError as error:
        raise UnknownSetting(f"schema.registry.url: {error}") from error
    registry = AsyncRegistryClient(registry_settings)
    ownership = Ownership.of(settings)
    cluster = Cluster(settings)
    sender = Sender(settings)
    payloads = Payloads(registry)
    readers = Readers(cluster, payloads, sender, settings.read_streams_max, settings.streams_bytes_max)
    return Services(
        settings,
        registry,
        sender,
        SchemaEncoders(registry, subject_checked=settings.schema_id_subject_check),
        ClusterIdentity(settings),
        cluster,
        payloads,
        readers,
        ownership,
        open_peers(),
        ConsumerInstances(settings, ownership, cluster),
        GroupStreams(settings, ownership, readers),
        RequestClient(settings.connection),
        OnceOnly(sender, OutcomeLog(settings, sender)),
        ReportMemory(settings.produce_reports_bytes_max),
    )
