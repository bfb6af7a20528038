"""A client of the registry's HTTP API, with memory: for threads and for an event loop."""

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
