"""A caching client for the HTTP API of a schema registry, for threads and for asyncio."""

from headgate.serdes.client.asynchronous import AsyncRegistryClient
from headgate.serdes.client.errors import RegistryClientError, RegistryUnavailable, RequestRefused, UnknownSchema
from headgate.serdes.client.settings import BasicAuth, BearerAuth, RegistrySettings, TlsSettings
from headgate.serdes.client.sync import RegistryClient

__all__ = [
    "AsyncRegistryClient",
    "BasicAuth",
    "BearerAuth",
    "RegistryClient",
    "RegistryClientError",
    "RegistrySettings",
    "RegistryUnavailable",
    "RequestRefused",
    "TlsSettings",
    "UnknownSchema",
]
