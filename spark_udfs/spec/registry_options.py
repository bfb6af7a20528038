"""Address of the schema registry and the options of its client.

`RegistryOptions` is plain data: it travels from the driver to the executors with the query plan, and each process
creates its own client. Option names are Confluent's client names with the prefix `registry.`. `serdes.client` documents
the settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit, urlunsplit

from headgate.serdes import RulePolicy
from headgate.serdes.client import BasicAuth, BearerAuth, RegistryClient, RegistrySettings, TlsSettings

PREFIX = "registry."
METADATA_URL = "headgate.registry.url"
"""Key in the metadata of a `value` column: the registry addresses of its data source. Contains no credentials."""
URL_DEFAULT = "http://127.0.0.1:8081"

TIMEOUT_SECONDS_DEFAULT = 10.0
ATTEMPTS_MAX_DEFAULT = 3
MILLISECONDS_MAX = 3_600_000
"""One hour. A longer timeout for one request is a mistake."""
RETRIES_MAX = 100
WAIT_SECONDS_MAX_DEFAULT = 300.0
"""Longer than a restart or a deployment of a registry, and shorter than the ten minutes after which a broker closes the
idle connection of a task that waits."""

_TEXTS = {
    "registry.url": "urls",
    "registry.basic.auth.user.info": "user_info",
    "registry.bearer.auth.token": "token",
    "registry.ssl.ca.location": "ca_file",
    "registry.ssl.certificate.location": "certificate_file",
    "registry.ssl.key.location": "key_file",
    "registry.ssl.key.password": "key_password",
    "registry.context": "context",
    "registry.rules": "rules",
}
_NUMBERS = {
    "registry.timeout.ms": ("timeout_seconds", MILLISECONDS_MAX),
    "registry.retries": ("attempts_max", RETRIES_MAX),
    "registry.wait.ms": ("wait_seconds_max", MILLISECONDS_MAX),
}
OPTION_NAMES = (*_TEXTS, *_NUMBERS)
"""All supported options."""


class OptionError(ValueError):
    """Unknown option or invalid value. The message contains the name of the option."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Picklable and hashable. `repr` does not contain credentials."""

    urls: tuple[str, ...] = field(default=(URL_DEFAULT,), repr=False)
    user_info: str | None = field(default=None, repr=False)
    """`user:password`."""
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    context: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT
    attempts_max: int = ATTEMPTS_MAX_DEFAULT
    """Attempts, each over all addresses, including the first."""
    wait_seconds_max: float = WAIT_SECONDS_MAX_DEFAULT
    """How long an executor waits for a registry that does not respond (`OnRegistryDown.WAIT`)."""
    rules: str = RulePolicy.FAIL.value
    """`fail` or `ignore`: how to treat schemas with rules, which are not executed."""

    def __post_init__(self) -> None:
        if self.user_info is not None and self.token is not None:
            raise OptionError("registry.basic.auth.user.info and registry.bearer.auth.token are mutually exclusive")
        if self.user_info is not None and ":" not in self.user_info:
            raise OptionError("registry.basic.auth.user.info must be user:password")
        if self.rules not in list(RulePolicy):
            raise OptionError(f"registry.rules must be fail or ignore, not {self.rules!r}")
        try:
            self.settings()
        except ValueError as error:
            raise OptionError(f"registry.url: {error}") from None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "RegistryOptions":
        """Read the `registry.*` options and ignore all others. Upper and lower case are equal, as in Spark.

        Raises `OptionError`.
        """
        return cls().with_options(_registry_options(options))

    def with_options(self, options: Mapping[str, str]) -> "RegistryOptions":
        """A copy with some options changed; `options` contains lower-case names from `OPTION_NAMES` only."""
        changes: dict[str, object] = {}
        for name, text in options.items():
            if name == "registry.url":
                changes["urls"] = tuple(url.strip() for url in text.split(",") if url.strip())
            elif name in _TEXTS:
                changes[_TEXTS[name]] = text
            elif name in _NUMBERS:
                attribute, most = _NUMBERS[name]
                number = _whole_number(name, text, most)
                changes[attribute] = number / 1000 if name.endswith(".ms") else number + 1
        return replace(self, **changes)  # type: ignore[arg-type]  # the table names the fields, each with its own type

    def settings(self) -> RegistrySettings:
        auth: BasicAuth | BearerAuth | None = None
        if self.user_info is not None:
            auth = BasicAuth(*self.user_info.split(":", 1))
        elif self.token is not None:
            auth = BearerAuth(self.token)
        tls = TlsSettings(True, self.ca_file, self.certificate_file, self.key_file, self.key_password)
        return RegistrySettings(
            self.urls,
            auth,
            tls,
            self.context,
            timeout_seconds=self.timeout_seconds,
            attempts_max=self.attempts_max,
            rules=RulePolicy(self.rules),
        )

    def client(self) -> RegistryClient:
        return RegistryClient(self.settings())

    @property
    def addresses(self) -> str:
        """The addresses without user names and passwords, for messages and column metadata."""
        return ",".join(_without_credentials(url) for url in self.urls)


def _registry_options(options: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, text in options.items():
        name = given.lower()
        if name.startswith(PREFIX):
            if name not in OPTION_NAMES:
                raise OptionError(f"unknown option {given!r}; supported are {', '.join(OPTION_NAMES)}")
            found[name] = text
    return found


def _whole_number(name: str, text: str, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not (1 if name.endswith(".ms") else 0) <= number <= most:
        raise OptionError(f"{name} must be an integer up to {most}, not {text!r}")
    return number


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
