"""How to reach a registry, and how long to try and to remember. Every wait and every cache has a bound."""

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
    """A token, or a function that is asked for one before each request, so that it can be renewed."""

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
    """Addresses of one registry; the next is tried when one fails. May hold credentials: `http://user:password@host`."""
    auth: BasicAuth | BearerAuth | None = None
    tls: TlsSettings = TlsSettings()
    context: str | None = None
    """A context other than the default one, such as `.lab`: every request goes to it."""
    timeout_seconds: float = 10.0
    """For one attempt, to connect and to answer."""
    attempts_max: int = 3
    """Rounds over all addresses."""
    backoff_seconds: float = 0.1
    """Before the second round; doubled for each further one, and drawn at random below that."""
    backoff_max_seconds: float = 2.0
    unknown_ttl_seconds: float = 30.0
    """How long an id that the registry did not know is not asked for again: a topic of garbage must not become load."""
    unavailable_ttl_seconds: float = 5.0
    """How long a registry that could not be reached is left alone, whatever is asked for."""
    latest_ttl_seconds: float = 60.0
    """How long "the latest version" is taken from memory."""
    schemas_max: int = 1000
    """Schemas remembered, by id and by text each. Confluent's clients keep as many."""
    rules: RulePolicy = RulePolicy.FAIL
    """What to do with schemas whose rules would have to run: rules are not executed."""
    answer_bytes_max: int = 16 * 1024 * 1024
    """The registry itself takes no larger schema than 1 MiB; what is longer is not a registry's answer."""

    def __post_init__(self) -> None:
        if not self.urls or not all(url.startswith(("http://", "https://")) for url in self.urls):
            raise ValueError("a registry needs at least one address that begins with http:// or https://")
        if not all(_is_address(url) for url in self.urls):
            # Not quoted: where a password holds what ends a host's name, no part of the address is sure to be public.
            raise ValueError(
                "an address of a registry is http://host:port, with user:password@ before the host if need be; "
                "in these write / as %2F, ? as %3F and # as %23"
            )
        if self.attempts_max < 1 or self.schemas_max < 1 or self.timeout_seconds <= 0:
            raise ValueError("attempts_max, schemas_max and timeout_seconds are at least 1")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Read, so that it is looked at: a port that is none raises.
        has_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_place and "@" not in parts.path + parts.query + parts.fragment
