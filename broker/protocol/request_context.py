"""Who asks: what a handler may know of the connection behind a request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    api_version: int
    client_id: str | None
    client_host: str
    connection_id: int
