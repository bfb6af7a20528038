"""Settings of the registry client: addresses, timeouts, retries and caches. All of them are limited."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from headgate.serdes.rules import RulePolicy


@dataclass(frozen=True, slots=True)
class BasicAuth:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BearerAuth:
    """A token, or a function that returns a fresh token before each request."""

    token: str | Callable[[], str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    verify: bool = True
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    urls: tuple[str, ...] = field(repr=False)
    """Addresses of one registry, for failover. They may contain credentials: `http://user:password@host`."""
    auth: BasicAuth | BearerAuth | None = None
    tls: TlsSettings = TlsSettings()
    context: str | None = None
    """The context of all requests, such as `.lab`. None means the default context."""
    timeout_seconds: float = 10.0
    """Timeout of one attempt, for the connection and for the response."""
    attempts_max: int = 3
    """Rounds over all addresses."""
    backoff_seconds: float = 0.1
    """Backoff before the second round. It doubles with each round, with full jitter."""
    backoff_max_seconds: float = 2.0
    unknown_ttl_seconds: float = 30.0
    """How long an unknown id is cached, so that corrupt records do not cause many requests."""
    unavailable_ttl_seconds: float = 5.0
    """How long the client sends no requests after an outage."""
    latest_ttl_seconds: float = 60.0
    """How long the latest version is cached."""
    schemas_max: int = 1000
    """Cached schemas, by id and by text each. Confluent's clients have the same default."""
    rules: RulePolicy = RulePolicy.FAIL
    """What to do with schemas that have rules. Rules are not executed."""
    answer_bytes_max: int = 16 * 1024 * 1024
    """The registry accepts schemas of up to 1 MiB. A larger response is not from a registry."""

    def __post_init__(self) -> None:
        if not self.urls or not all(url.startswith(("http://", "https://")) for url in self.urls):
            raise ValueError("the registry needs at least one address that starts with http:// or https://")
        if not all(_is_address(url) for url in self.urls):
            # Do not quote the address: if a password contains delimiters, any part may be secret.
            raise ValueError(
                "an address of a registry is http://host:port, with user:password@ before the host if need be; "
                "in these write / as %2F, ? as %3F and # as %23"
            )
        if self.attempts_max < 1 or self.schemas_max < 1 or self.timeout_seconds <= 0:
            raise ValueError("attempts_max, schemas_max and timeout_seconds must be at least 1")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Access the port, because an invalid one raises here.
        has_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_place and "@" not in parts.path + parts.query + parts.fragment
