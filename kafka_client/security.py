"""TLS and SASL settings from the properties of Kafka's clients.

Accepts the names of the Java client (`sasl.jaas.config`, `ssl.truststore.location` with PEM files) and of librdkafka
(`sasl.username`, `ssl.ca.location`). A `Security` is plain data that can be pickled. Files are read when a connection
is opened, so that renewed certificates are used without a restart.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.jaas import JaasConfig, parse_jaas
from headgate.kafka_client.oauth import OAuthSettings, TokenProvider

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

SECURITY_PROPERTIES: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.token",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions",
    "sasl.login.callback.handler.class",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.endpoint.identification.algorithm",
)


@dataclass(frozen=True, slots=True)
class Security:
    """Can be pickled and hashed. Its `repr` contains no secrets."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuthSettings | None = None
    ca_file: str | None = None
    ca_text: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    is_host_checked: bool = True
    prefix: str = ""
    """Precedes the names of properties in error messages. Spark's options start with `kafka.`."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def client_arguments(self) -> dict[str, Any]:
        """Keyword arguments for aiokafka's clients. Raises InvalidProperty if a file cannot be read."""
        arguments: dict[str, Any] = {"security_protocol": self.protocol}
        if self.uses_sasl:
            arguments["sasl_mechanism"] = self.mechanism
            if self.oauth is not None:
                arguments["sasl_oauth_token_provider"] = TokenProvider(self.oauth)
            else:
                arguments["sasl_plain_username"] = self.username
                arguments["sasl_plain_password"] = self.password
        if self.uses_tls:
            arguments["ssl_context"] = self._context()
        return arguments

    def _context(self) -> ssl.SSLContext:
        source = self.ca_file or "the certificates"
        try:
            context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_text)
            context.check_hostname = self.is_host_checked
            if self.certificate_file is not None:
                source = self.certificate_file
                # Without a password argument, OpenSSL would prompt for it on the terminal.
                context.load_cert_chain(self.certificate_file, self.key_file, self.key_password or "")
        except (OSError, ValueError) as error:
            problem = f"{source} cannot be used: {error}. It must be a PEM file on this machine"
            raise InvalidProperty(f"{self.prefix}ssl.*", problem) from error
        return context


def check_names(names: Iterable[str]) -> None:
    """Reject security properties that this client does not support. Raises InvalidProperty.

    Other unknown properties are harmless: a `client.properties` file may be shared with Java clients.
    """
    for name in names:
        if name.startswith(("security.", "sasl.", "ssl.")) and name not in SECURITY_PROPERTIES:
            raise InvalidProperty(name, "this client does not support the property")


def read_security(properties: Mapping[str, str], prefix: str = "") -> Security:
    """Read the properties whose names start with `prefix`. Ignores all other properties. Raises InvalidProperty."""
    return _Reader(properties, prefix).security()


class _Reader:
    def __init__(self, properties: Mapping[str, str], prefix: str) -> None:
        self._prefix = prefix
        self._given = {name: properties[prefix + name] for name in SECURITY_PROPERTIES if prefix + name in properties}
        self._protocol = self._given.get("security.protocol", "PLAINTEXT").strip().upper()

    def security(self) -> Security:
        if self._protocol not in PROTOCOLS:
            choices = ", ".join(PROTOCOLS)
            raise self._invalid("security.protocol", f"must be one of {choices}, not {self._protocol[:60]!r}")
        return Security(self._protocol, **self._sasl(), **self._tls(), prefix=self._prefix)

    def _invalid(self, name: str, problem: str) -> InvalidProperty:
        return InvalidProperty(self._prefix + name, problem)

    def _first(self, *names: str) -> str | None:
        return next((self._given[name] for name in names if name in self._given), None)

    def _check_unused(self, start: str, protocols: str) -> None:
        for name in self._given:
            if name.startswith(start):
                required = f"requires {self._prefix}security.protocol {protocols}, not {self._protocol}"
                raise self._invalid(name, required)

    def _sasl(self) -> dict[str, Any]:
        if not self._protocol.startswith("SASL"):
            self._check_unused("sasl.", "SASL_SSL or SASL_PLAINTEXT")
            return {}
        jaas = JaasConfig()
        if "sasl.jaas.config" in self._given:
            jaas = parse_jaas(self._given["sasl.jaas.config"], self._prefix)
        mechanism = self._first("sasl.mechanism", "sasl.mechanisms")
        if mechanism is None and len(jaas.mechanisms) == 1:
            mechanism = jaas.mechanisms[0]
        choices = ", ".join(MECHANISMS)
        if mechanism is None:
            raise self._invalid("sasl.mechanism", f"required with {self._protocol}: one of {choices}")
        mechanism = mechanism.strip().upper()
        if mechanism not in MECHANISMS:
            raise self._invalid("sasl.mechanism", f"must be one of {choices}, not {mechanism[:60]!r}")
        if jaas.mechanisms and mechanism not in jaas.mechanisms:
            raise self._invalid("sasl.jaas.config", f"the login module is not for {mechanism}")
        if mechanism == "OAUTHBEARER":
            return {"mechanism": mechanism, "oauth": self._oauth(jaas)}
        username = self._given.get("sasl.username", jaas.options.get("username"))
        password = self._given.get("sasl.password", jaas.options.get("password"))
        if username is None or password is None:
            missing = "sasl.username" if username is None else "sasl.password"
            instead = f"{self._prefix}sasl.jaas.config with username and password"
            raise self._invalid(missing, f"required for {mechanism} (or {instead})")
        return {"mechanism": mechanism, "username": username, "password": password}

    def _oauth(self, jaas: JaasConfig) -> OAuthSettings:
        extensions = self._given.get("sasl.oauthbearer.extensions", "")
        settings = OAuthSettings(
            token=self._given.get("sasl.oauthbearer.token"),
            token_endpoint_url=self._given.get("sasl.oauthbearer.token.endpoint.url"),
            client_id=self._first("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id")
            or jaas.options.get("clientId"),
            client_secret=self._first(
                "sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"
            )
            or jaas.options.get("clientSecret"),
            scope=self._given.get("sasl.oauthbearer.scope", jaas.options.get("scope")),
            ca_file=self._first("ssl.ca.location", "ssl.truststore.location"),
            extensions=tuple(
                (name.strip(), value.strip())
                for name, equals, value in (pair.partition("=") for pair in extensions.split(","))
                if equals
            ),
        )
        if settings.token is None:
            for name, value in (
                ("sasl.oauthbearer.token.endpoint.url", settings.token_endpoint_url),
                ("sasl.oauthbearer.client.id", settings.client_id),
                ("sasl.oauthbearer.client.secret", settings.client_secret),
            ):
                if not value:
                    raise self._invalid(name, f"required for OAUTHBEARER without {self._prefix}sasl.oauthbearer.token")
            assert settings.token_endpoint_url is not None
            if not settings.token_endpoint_url.startswith(("https://", "http://")):
                raise self._invalid("sasl.oauthbearer.token.endpoint.url", "must start with https:// or http://")
        return settings

    def _tls(self) -> dict[str, Any]:
        if not self._protocol.endswith("SSL"):
            self._check_unused("ssl.", "SSL or SASL_SSL")
            return {}
        for store in ("truststore", "keystore"):
            kind = self._given.get(f"ssl.{store}.type", "JKS").strip().upper()
            if f"ssl.{store}.location" in self._given and kind != "PEM":
                setting = f"{self._prefix}ssl.{store}.type"
                problem = f"{kind} stores are not supported; export it as PEM and set {setting} to PEM"
                raise self._invalid(f"ssl.{store}.location", problem)
        certificate = self._first("ssl.certificate.location", "ssl.keystore.location")
        if "ssl.key.location" in self._given and certificate is None:
            raise self._invalid("ssl.key.location", f"requires {self._prefix}ssl.certificate.location")
        algorithm = self._given.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
        if algorithm not in ("https", "none", ""):
            problem = f"must be https or none, not {algorithm[:60]!r}"
            raise self._invalid("ssl.endpoint.identification.algorithm", problem)
        return {
            "ca_file": self._first("ssl.ca.location", "ssl.truststore.location"),
            "ca_text": self._first("ssl.ca.pem", "ssl.truststore.certificates"),
            "certificate_file": certificate,
            "key_file": self._given.get("ssl.key.location"),
            "key_password": self._given.get("ssl.key.password"),
            "is_host_checked": algorithm == "https",
        }
