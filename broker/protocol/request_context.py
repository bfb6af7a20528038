"""The metadata of a request that a handler gets in addition to the body."""

from dataclasses import dataclass

from headgate.broker.protocol.entities import ApiVersionRange


@dataclass(frozen=True, slots=True)
class RequestContext:
    api_version: int
    client_id: str | None
    client_host: str
    connection_id: int
    api_versions: tuple[ApiVersionRange, ...] = ()
    """The APIs that the engine serves."""
