"""Explains why a client cannot connect to a cluster. aiokafka only reports that it reached no broker.

After a failure, `diagnose` connects to a few addresses again and classifies the failure:

| client | listener | symptom |
|---|---|---|
| plaintext | TLS | the broker closes the connection, but accepts a TLS handshake |
| plaintext | SASL | the broker answers ApiVersions, then closes the connection |
| TLS | plaintext | the TLS handshake fails without a certificate, or never ends |
| SASL | without SASL | ILLEGAL_SASL_STATE |
| TLS | other authority, other host name | the certificate verification fails |
| TLS | requires a client certificate | the broker closes the connection after the handshake |
"""

import asyncio
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aiokafka import errors as kafka
from aiokafka.conn import create_conn
from aiokafka.protocol.metadata import MetadataRequest

from headgate.kafka_client.errors import BrokerUnavailable, NotAuthenticated
from headgate.kafka_client.options import Address, ConnectionOptions, parse_servers

PROBE_SECONDS_MAX: Final = 3.0
"""Timeout of one attempt. The address has already failed once."""
PROBES_MAX: Final = 3
"""Maximum number of addresses to probe. The other brokers of a large cluster usually fail in the same way."""

Described = TypeVar("Described", BrokerUnavailable, NotAuthenticated)

REJECTED_CREDENTIALS: Final = (
    kafka.AuthenticationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.IllegalSaslStateError,
    kafka.UnsupportedSaslMechanismError,
)

_CLOSED: Final = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class Finding:
    """The reason why one address does not work."""

    address: Address
    reason: str
    advice: str = ""
    is_authentication: bool = False
    """True if TLS or SASL rejected one side. A retry does not help."""


async def diagnose(
    options: ConnectionOptions, advertised: Iterable[str] = (), error: BaseException | None = None
) -> BrokerUnavailable | NotAuthenticated:
    """Returns the error to raise after a connection failure. `advertised` contains the addresses in the metadata."""
    findings = await probe(options, options.servers)
    if not findings and (places := list(advertised)) and (findings := await probe(options, places)):
        reasons = "; ".join(f"{each.address}: {each.reason}" for each in findings)
        return _described(
            BrokerUnavailable(
                f"The brokers at {options.address} respond, but their advertised addresses {', '.join(places)} cannot "
                f"be reached: {reasons}. Set their advertised.listeners to addresses that this machine can reach."
            ),
            options,
            reasons,
            "set advertised.listeners of the brokers to addresses that this machine can reach",
        )
    for finding in findings:
        if finding.is_authentication:
            text = f"Authentication at {finding.address} failed: {finding.reason}. {finding.advice}."
            return _described(NotAuthenticated(text), options, finding.reason, finding.advice)
    reasons = "; ".join(f"{each.address}: {each.reason}" for each in findings)
    if not findings:
        reasons = (str(error) or type(error).__name__) if error is not None else "the connection failed a moment ago"
    elif len(options.servers) == 1:
        reasons = findings[0].reason
    advice = next((each.advice for each in findings if each.advice), "")
    usual = (
        "Check that bootstrap.servers is right, that the broker is running, and that "
        f"{options.security.prefix}security.protocol matches the listener (now {options.security.protocol})"
    )
    text = f"No Kafka broker responded at {options.address}: {reasons}. {advice or usual}."
    return _described(BrokerUnavailable(text), options, reasons, advice)


def _described(error: Described, options: ConnectionOptions, reason: str, advice: str) -> Described:
    error.address, error.reason, error.advice = options.address, reason, advice
    return error


async def probe(options: ConnectionOptions, servers: Iterable[str]) -> list[Finding]:
    """Returns the addresses that do not work. Returns an empty list as soon as one address works."""
    addresses = parse_servers(",".join(servers))[:PROBES_MAX]
    findings = await asyncio.gather(*(_probe(options, address) for address in addresses))
    return [] if None in findings else [finding for finding in findings if finding is not None]


async def _probe(options: ConnectionOptions, address: Address) -> Finding | None:
    security = options.security
    connect: Any = create_conn
    try:
        connection = await connect(
            address.host,
            address.port,
            client_id=options.client_id,
            request_timeout_ms=min(options.request_timeout_ms, int(1000 * PROBE_SECONDS_MAX)),
            **security.client_arguments(),
        )
    except REJECTED_CREDENTIALS as error:
        return _credentials(options, address, error)
    except ssl.SSLCertVerificationError as error:
        return _certificate(options, address, error)
    except ssl.SSLError as error:
        return _without_tls(options, address, f"the TLS handshake failed ({error.reason or error})")
    except TimeoutError:
        return await _silent(options, address)
    except (kafka.KafkaError, OSError) as error:
        return await _closed(options, address, error)
    try:
        metadata = await connection.send(MetadataRequest([]))
        if security.oauth is not None and not metadata.brokers:
            return _credentials(options, address, kafka.SaslAuthenticationFailed("it is not valid"))
    except (kafka.KafkaError, OSError):
        if security.uses_sasl:
            return Finding(address, "the broker closed the connection after the authentication")
        protocol = "SASL_SSL" if security.uses_tls else "SASL_PLAINTEXT"
        advice = f"Set {security.prefix}security.protocol to {protocol}, and the SASL properties"
        return Finding(address, "the listener requires SASL, but this client does not use it", advice)
    finally:
        connection.close()
    return None


def _credentials(options: ConnectionOptions, address: Address, error: Exception) -> Finding:
    security, prefix = options.security, options.security.prefix
    if isinstance(error, kafka.IllegalSaslStateError):
        protocol = "SSL" if security.uses_tls else "PLAINTEXT"
        advice = f"Set {prefix}security.protocol to {protocol}"
        return Finding(address, "the listener does not use SASL", advice, is_authentication=True)
    if isinstance(error, kafka.UnsupportedSaslMechanismError):
        advice = f"Set {prefix}sasl.mechanism to a mechanism that the broker enables"
        return Finding(address, str(error), advice, is_authentication=True)
    if security.oauth is not None:
        advice = f"Check the {prefix}sasl.oauthbearer properties"
        return Finding(address, f"the broker rejects the OAUTHBEARER token: {error}", advice, is_authentication=True)
    advice = (
        f"Check {prefix}sasl.username, {prefix}sasl.password (or {prefix}sasl.jaas.config) and {prefix}sasl.mechanism"
    )
    reason = f"the broker rejects user {security.username!r} with {security.mechanism}: {error}"
    return Finding(address, reason, advice, is_authentication=True)


def _certificate(options: ConnectionOptions, address: Address, error: ssl.SSLCertVerificationError) -> Finding:
    prefix = options.security.prefix
    reason = f"the broker's certificate is not accepted: {error.verify_message}"
    if "ostname" in error.verify_message or "IP address mismatch" in error.verify_message:
        advice = (
            f"Use a host name that the certificate contains in {prefix}bootstrap.servers, or set "
            f"{prefix}ssl.endpoint.identification.algorithm to none"
        )
    else:
        advice = f"Set {prefix}ssl.ca.location to the authority that signed the broker's certificate"
    return Finding(address, reason, advice, is_authentication=True)


async def _silent(options: ConnectionOptions, address: Address) -> Finding:
    if options.security.uses_tls and not await _accepts_tls(address):
        return _without_tls(options, address, "no response to the TLS handshake")
    if not options.security.uses_tls and await _accepts_tls(address):
        return _requires_tls(options, address)
    return Finding(address, "no response")


async def _closed(options: ConnectionOptions, address: Address, error: Exception) -> Finding:
    """Explains a connection that was refused, or closed before the handshake was complete."""
    security = options.security
    if isinstance(error, OSError) and not isinstance(error, _CLOSED):
        # asyncio's text repeats the address. The numbers of name resolution errors are negative.
        has_number = error.errno is not None and error.errno > 0
        return Finding(address, os.strerror(error.errno or 0) if has_number else error.strerror or str(error))
    if security.uses_tls and not await _accepts_tls(address):
        return _without_tls(options, address, "the server closed the connection during the TLS handshake")
    if security.uses_tls:
        advice = (
            f"The broker may require a client certificate: set {security.prefix}ssl.certificate.location and "
            f"{security.prefix}ssl.key.location"
        )
        if security.certificate_file is not None:
            advice = f"Check that the broker trusts the authority of {security.certificate_file}"
        return Finding(address, "the broker closed the connection after the TLS handshake", advice)
    if await _accepts_tls(address):
        return _requires_tls(options, address)
    return Finding(address, "the server does not respond as a Kafka broker")


def _without_tls(options: ConnectionOptions, address: Address, reason: str) -> Finding:
    protocol = "SASL_PLAINTEXT" if options.security.uses_sasl else "PLAINTEXT"
    advice = f"The listener may not use TLS: try {options.security.prefix}security.protocol {protocol}"
    return Finding(address, reason, advice)


def _requires_tls(options: ConnectionOptions, address: Address) -> Finding:
    protocol = "SASL_SSL" if options.security.uses_sasl else "SSL or SASL_SSL"
    advice = f"Set {options.security.prefix}security.protocol to {protocol}"
    return Finding(address, "the listener uses TLS, but this client does not", advice)


async def _accepts_tls(address: Address) -> bool:
    """True if the server takes part in a TLS handshake. Verifies nothing and sends no credentials."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    except ssl.SSLError as error:
        # An alert is a TLS message. Any other response is not TLS.
        return "ALERT" in (error.reason or "")
    except (TimeoutError, OSError):
        return False
    writer.close()
    return True
