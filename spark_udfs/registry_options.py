"""Which registry, and how to reach it: read from options, from Spark's configuration or from the environment.

A `RegistryOptions` is plain data, so that it travels from the driver to the executors inside a plan; the client is made
where it is needed. The option names are Confluent's client names behind `registry.`. What the settings mean is
`serdes.client`'s business.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from headgate.serdes import RulePolicy
from headgate.serdes.client import BasicAuth, BearerAuth, RegistryClient, RegistrySettings, TlsSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREFIX = "registry."
CONF_PREFIX = "spark.headgate."
"""Before an option's name in Spark's configuration: `spark.headgate.registry.url`."""
ENV_PREFIX = "HEADGATE_"
"""Before an option's name in the environment, in capitals with underscores: `HEADGATE_REGISTRY_URL`."""
METADATA_URL = "headgate.registry.url"
"""In the metadata of a `value` column: the addresses of the registry, which its source was given. Never a secret."""
URL_DEFAULT = "http://127.0.0.1:8081"

TIMEOUT_SECONDS_DEFAULT = 10.0
ATTEMPTS_MAX_DEFAULT = 3
MILLISECONDS_MAX = 3_600_000
"""An hour: nobody means a longer wait for one answer."""
RETRIES_MAX = 100

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
}
OPTION_NAMES = (*_TEXTS, *_NUMBERS)
"""Every option that is understood."""


class OptionError(ValueError):
    """An option that is not known or not fit; the text names it."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Picklable and hashable. Secrets are left out of its `repr`."""

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
    """Rounds over all the addresses, the first included."""
    rules: str = RulePolicy.FAIL.value
    """`fail` or `ignore`: what to do with schemas whose rules would have to run."""

    def __post_init__(self) -> None:
        if self.user_info is not None and self.token is not None:
            raise OptionError("registry.basic.auth.user.info and registry.bearer.auth.token exclude one another")
        if self.user_info is not None and ":" not in self.user_info:
            raise OptionError("registry.basic.auth.user.info is user:password")
        if self.rules not in list(RulePolicy):
            raise OptionError(f"registry.rules is fail or ignore, not {self.rules!r}")
        try:
            self.settings()
        except ValueError as error:
            raise OptionError(f"registry.url: {error}") from None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "RegistryOptions":
        """From `registry.*` among the options; the others are somebody else's. Names are read in any case, as in Spark.

        Raises `OptionError`, naming the option.
        """
        return cls()._with(_ours(options))

    def _with(self, options: Mapping[str, str]) -> "RegistryOptions":
        changes: dict[str, object] = {}
        for name, text in options.items():
            if name == "registry.url":
                changes["urls"] = tuple(url.strip() for url in text.split(",") if url.strip())
            elif name in _TEXTS:
                changes[_TEXTS[name]] = text
            elif name in _NUMBERS:
                attribute, most = _NUMBERS[name]
                number = _whole_number(name, text, most)
                changes[attribute] = number / 1000 if name == "registry.timeout.ms" else number + 1
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
        """The addresses without user names and passwords: for messages and for a column's metadata."""
        return ",".join(_without_credentials(url) for url in self.urls)


def resolve(
    explicit: "RegistryOptions | Mapping[str, str] | str | None" = None,
    df: "DataFrame | None" = None,
    spark: "SparkSession | None" = None,
    *,
    column: str = "value",
) -> RegistryOptions:
    """The registry to ask: what was given, else what the frame's column says, else Spark's configuration, the
    environment, and the default address.

    An address given by itself takes the credentials of the configuration along only where that names no other address:
    a secret does not go to a registry that it was not meant for.
    """
    if isinstance(explicit, RegistryOptions):
        return explicit
    configured = {**_environment(), **_configured(spark if spark is not None else _session_of(df))}
    if isinstance(explicit, Mapping):
        return RegistryOptions()._with(_ours(explicit))
    url = explicit if explicit is not None else _url_of(df, column)
    if url is None:
        return RegistryOptions()._with(configured)
    if configured.get("registry.url", url) != url:
        return RegistryOptions()._with({"registry.url": url})
    return RegistryOptions()._with({**configured, "registry.url": url})


def _ours(options: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, text in options.items():
        name = given.lower()
        if name.startswith(PREFIX):
            if name not in OPTION_NAMES:
                raise OptionError(f"there is no option {given!r}; known are {', '.join(OPTION_NAMES)}")
            found[name] = text
    return found


def _whole_number(name: str, text: str, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not (1 if name.endswith(".ms") else 0) <= number <= most:
        raise OptionError(f"{name} is a whole number up to {most}, not {text!r}")
    return number


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _environment() -> dict[str, str]:
    names = {name: ENV_PREFIX + name.upper().replace(".", "_") for name in OPTION_NAMES}
    return {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}


def _configured(spark: "SparkSession | None") -> dict[str, str]:
    if spark is None:
        return {}
    found = {name: spark.conf.get(CONF_PREFIX + name, None) for name in OPTION_NAMES}
    return {name: text for name, text in found.items() if text}


def _session_of(df: "DataFrame | None") -> "SparkSession | None":
    if df is not None:
        return df.sparkSession
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.getActiveSession()


def _url_of(df: "DataFrame | None", column: str) -> str | None:
    if df is None or column not in df.columns:
        return None
    url = df.schema[column].metadata.get(METADATA_URL)
    return url if isinstance(url, str) else None
