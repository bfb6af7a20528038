"""TLS and SASL: Kafka's option names to what aiokafka's client takes.

Understood are the names of the Java client (`kafka.sasl.jaas.config`, `kafka.ssl.truststore.location` in PEM) and those
of librdkafka (`kafka.sasl.username`, `kafka.ssl.ca.location`). A `Security` is plain data that travels to the
executors; files are read where the connection is made, so they must be there on every machine.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.spark_udfs.source.errors import BadOption

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

OPTIONS = (
    "kafka.security.protocol",
    "kafka.sasl.mechanism",
    "kafka.sasl.mechanisms",
    "kafka.sasl.username",
    "kafka.sasl.password",
    "kafka.sasl.jaas.config",
    "kafka.ssl.ca.location",
    "kafka.ssl.certificate.location",
    "kafka.ssl.key.location",
    "kafka.ssl.key.password",
    "kafka.ssl.truststore.location",
    "kafka.ssl.truststore.type",
    "kafka.ssl.truststore.certificates",
    "kafka.ssl.keystore.location",
    "kafka.ssl.keystore.type",
    "kafka.ssl.endpoint.identification.algorithm",
)

_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*?);?\s*\Z", re.S)
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""")
_JAAS_MODULES = {"PlainLoginModule": ("PLAIN",), "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512")}


@dataclass(frozen=True, slots=True)
class Security:
    """Picklable and hashable. Secrets are left out of its `repr`."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    ca_text: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    is_host_checked: bool = True

    def client_arguments(self) -> dict[str, Any]:
        """Of aiokafka's clients. Raises `BadOption` where a file cannot be read."""
        arguments: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            arguments["sasl_mechanism"] = self.mechanism
            arguments["sasl_plain_username"] = self.username
            arguments["sasl_plain_password"] = self.password
        if self.protocol.endswith("SSL"):
            arguments["ssl_context"] = self._context()
        return arguments

    def _context(self) -> ssl.SSLContext:
        named = self.ca_file or "the certificates"
        try:
            context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_text)
            context.check_hostname = self.is_host_checked
            if self.certificate_file is not None:
                named = self.certificate_file
                context.load_cert_chain(self.certificate_file, self.key_file, self.key_password or "")
        except (OSError, ValueError) as error:
            problem = f"{named} cannot be used: {error}. It must be a PEM file that is there on this machine"
            raise BadOption("kafka.ssl.*", problem) from error
        return context


def read_security(options: Mapping[str, str]) -> Security:
    """From the options by lower-case name; those that are not about security are not looked at."""
    protocol = options.get("kafka.security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise BadOption("kafka.security.protocol", f"it must be one of {', '.join(PROTOCOLS)}, not {protocol[:60]!r}")
    mechanism, username, password = _sasl(options, protocol)
    tls = _tls(options, protocol)
    return Security(protocol, mechanism, username, password, *tls, is_host_checked=_is_host_checked(options))


def _sasl(options: Mapping[str, str], protocol: str) -> tuple[str | None, str | None, str | None]:
    given = [name for name in options if name.startswith("kafka.sasl.")]
    if not protocol.startswith("SASL"):
        if given:
            raise BadOption(given[0], f"it needs kafka.security.protocol SASL_SSL or SASL_PLAINTEXT, not {protocol}")
        return None, None, None
    module, name, password = _jaas(options.get("kafka.sasl.jaas.config"))
    mechanism = options.get("kafka.sasl.mechanism", options.get("kafka.sasl.mechanisms"))
    if mechanism is None and module is not None and len(module) == 1:
        mechanism = module[0]
    if mechanism is None:
        raise BadOption("kafka.sasl.mechanism", f"it is needed with {protocol}: one of {', '.join(MECHANISMS)}")
    mechanism = mechanism.strip().upper()
    if mechanism not in MECHANISMS:
        raise BadOption("kafka.sasl.mechanism", f"it must be one of {', '.join(MECHANISMS)}, not {mechanism[:60]!r}")
    if module is not None and mechanism not in module:
        raise BadOption("kafka.sasl.jaas.config", f"its login module is not for {mechanism}")
    name = options.get("kafka.sasl.username", name)
    password = options.get("kafka.sasl.password", password)
    if name is None or password is None:
        missing = "kafka.sasl.username" if name is None else "kafka.sasl.password"
        raise BadOption(missing, f"it is needed for {mechanism} (or kafka.sasl.jaas.config with username and password)")
    return mechanism, name, password


def _jaas(text: str | None) -> tuple[tuple[str, ...] | None, str | None, str | None]:
    """The mechanisms that the login module is for, the user and the password."""
    if text is None:
        return None, None, None
    found = _JAAS.match(text)
    module = found["module"].rpartition(".")[2] if found else ""
    if found is None or module not in _JAAS_MODULES:
        problem = 'it must name PlainLoginModule or ScramLoginModule, then: required username="..." password="...";'
        raise BadOption("kafka.sasl.jaas.config", problem)
    values: dict[str, str] = {}
    for name, double, single, bare in _JAAS_OPTION.findall(found["rest"]):
        values[name] = re.sub(r"\\(.)", r"\1", double or single) if double or single else bare
    return _JAAS_MODULES[module], values.get("username"), values.get("password")


def _tls(
    options: Mapping[str, str], protocol: str
) -> tuple[str | None, str | None, str | None, str | None, str | None]:
    """The authorities' file and text, the certificate, the key and its password."""
    given = [name for name in options if name.startswith("kafka.ssl.")]
    if not protocol.endswith("SSL"):
        if given:
            raise BadOption(given[0], f"it needs kafka.security.protocol SSL or SASL_SSL, not {protocol}")
        return None, None, None, None, None
    for store in ("truststore", "keystore"):
        kind = options.get(f"kafka.ssl.{store}.type", "JKS").strip().upper()
        location = f"kafka.ssl.{store}.location"
        if location in options and kind != "PEM":
            problem = f"a store of type {kind} is Java's own; export it as PEM and set kafka.ssl.{store}.type to PEM"
            raise BadOption(location, problem)
    certificate = options.get("kafka.ssl.certificate.location", options.get("kafka.ssl.keystore.location"))
    key = options.get("kafka.ssl.key.location")
    if key is not None and certificate is None:
        raise BadOption("kafka.ssl.key.location", "it needs kafka.ssl.certificate.location")
    return (
        options.get("kafka.ssl.ca.location", options.get("kafka.ssl.truststore.location")),
        options.get("kafka.ssl.truststore.certificates"),
        certificate,
        key,
        options.get("kafka.ssl.key.password"),
    )


def _is_host_checked(options: Mapping[str, str]) -> bool:
    algorithm = options.get("kafka.ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "none", ""):
        raise BadOption(
            "kafka.ssl.endpoint.identification.algorithm", f"it must be https or none, not {algorithm[:60]!r}"
        )
    return algorithm == "https"
