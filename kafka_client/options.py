"""Options of a connection to a cluster, and the syntax of `bootstrap.servers`."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.security import Security

DEFAULT_PORT: Final = 9092
PORT_MAX: Final = 65535

_ADDRESS: Final = re.compile(r"(?:\[(?P<bracketed>[0-9a-fA-F:.%]+)\]|(?P<host>[^\s:\[\]/,]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Can be pickled and hashed. Equal options can share a connection."""

    servers: tuple[str, ...]
    security: Security = field(default_factory=Security)
    client_id: str = "headgate"
    request_timeout_ms: int = 30_000
    metadata_max_age_ms: int = 300_000
    api_timeout_ms: int = 60_000
    """How long an operation is retried, as `default.api.timeout.ms` of the Java client."""

    @property
    def address(self) -> str:
        return ",".join(self.servers)

    def client_arguments(self) -> dict[str, Any]:
        """Keyword arguments that all clients of aiokafka accept. Raises InvalidProperty."""
        return {
            "bootstrap_servers": list(self.servers),
            "client_id": self.client_id,
            "request_timeout_ms": self.request_timeout_ms,
            "metadata_max_age_ms": self.metadata_max_age_ms,
            **self.security.client_arguments(),
        }


def parse_servers(text: str) -> tuple[Address, ...]:
    """Return at least one address. The default port is 9092. Raises InvalidProperty."""
    found = []
    for part in text.split(","):
        match = _ADDRESS.fullmatch(part.strip())
        port = int(match["port"] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port <= PORT_MAX:
            raise InvalidProperty("bootstrap.servers", f"{text!r} is not HOST:PORT[,HOST:PORT...]")
        found.append(Address(match["bracketed"] or match["host"], port))
    return tuple(found)
