"""The way to a first broker: how long each address is tried, and why none of them works. TLS, SASL are aiokafka's."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import collect_hosts, create_conn

from headgate.spark_udfs.source.errors import BrokerUnreachable, NotAuthenticated, SourceError
from headgate.spark_udfs.source.options import ConnectionOptions

FIRST_CONNECTION_SECONDS_MAX = 3.0
"""How long brokers that never answered are tried: a wrong address must not look like a slow job."""
WORKER_CONNECTION_SECONDS_MAX = 20.0
"""The same in a worker. The driver has planned with these brokers a moment ago, or a stream is to write to them once
more: who does not answer now is restarting, more likely than not."""
CONNECT_SECONDS_MAX = 10.0
"""For one address to answer at all, as `socket.connection.setup.timeout.ms` of the Java client: one that swallows what
it is sent must not take the time of a request."""
PROBE_SECONDS_MAX = 3.0
"""For an address that has failed already, to say why."""
PROBES_MAX = 3
"""Addresses that are asked why: of a large cluster's brokers, the others have nothing new to say."""
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 2.0
CLOSE_SECONDS_MAX = 5.0
METADATA_AGE_MS = 300_000
IDLE_MS = 540_000

REFUSED_CREDENTIALS = (
    kafka.AuthenticationFailedError,
    kafka.SaslAuthenticationFailed,
    kafka.IllegalSaslStateError,
    kafka.UnsupportedSaslMechanismError,
)


async def opened(options: ConnectionOptions, seconds_max: float) -> Any:
    """A connected client. Raises `BrokerUnreachable`, `NotAuthenticated`."""
    deadline = time.monotonic() + seconds_max
    pause = RETRY_SECONDS
    make: Any = AIOKafkaClient
    while True:
        client = make(
            bootstrap_servers=list(options.servers),
            client_id=options.client_id,
            metadata_max_age_ms=METADATA_AGE_MS,
            request_timeout_ms=options.request_timeout_ms,
            connections_max_idle_ms=IDLE_MS,
            **options.security.client_arguments(),
        )
        try:
            with connecting(client, options):
                await client.bootstrap()
        except (kafka.KafkaError, OSError):
            await closed(client)
        else:
            return client
        reasons = await attempts(options, options.servers)
        if time.monotonic() > deadline:
            raise _unreachable(options, reasons, "ask")
        await asyncio.sleep(pause)
        pause = min(2 * pause, RETRY_SECONDS_MAX)


@contextlib.contextmanager
def connecting(client: Any, options: ConnectionOptions) -> Iterator[None]:
    """While a client of aiokafka looks for the first broker: it knows one time limit for that and for every request."""
    client._request_timeout_ms = min(options.request_timeout_ms, int(1000 * CONNECT_SECONDS_MAX))
    try:
        yield
    finally:
        client._request_timeout_ms = options.request_timeout_ms


async def explain_unreachable(options: ConnectionOptions, what: str, advertised: Iterable[str] = ()) -> SourceError:
    """Why no connection can be made. Raises `NotAuthenticated` where that is why."""
    reasons = await attempts(options, options.servers)
    return (None if reasons else await misdirected(options, advertised)) or _unreachable(options, reasons, what)


def addresses(client: Any) -> list[str]:
    """Where the brokers say that they are, which is where a client goes once it has asked the first."""
    return sorted(f"{broker.host}:{broker.port}" for broker in client.cluster.brokers())


async def misdirected(options: ConnectionOptions, advertised: Iterable[str]) -> BrokerUnreachable | None:
    """The error, where brokers answer and send their clients to where nobody does."""
    places = list(advertised)
    reasons = await attempts(options, places) if places else []
    if not reasons:
        return None
    return BrokerUnreachable(
        f"The brokers at {options.address} answer, and say that they are at {', '.join(places)}, where none can be "
        f"reached: {'; '.join(reasons)}. Set their advertised.listeners to addresses that this machine (and every "
        "executor) can reach."
    )


def _unreachable(options: ConnectionOptions, reasons: list[str], what: str) -> BrokerUnreachable:
    why = "; ".join(reasons) or "it answers now, and did not a moment ago"
    return BrokerUnreachable(
        f"No broker to {what} can be reached at {options.address}: {why}. Check that bootstrap.servers is the "
        "address of a running broker, that this machine (and every executor) can reach it, and that "
        f"kafka.security.protocol is what it expects there (now {options.security.protocol})."
    )


async def closed(client: Any) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS_MAX):
            await client.close()


async def attempts(options: ConnectionOptions, places: Sequence[str]) -> list[str]:
    """Why addresses do not work, as far as they do not: aiokafka only says that none does. Raises
    `NotAuthenticated`."""
    reasons: list[str] = []
    connect: Any = create_conn
    hosts: Any = collect_hosts
    for host, port, _ in hosts(list(places[:PROBES_MAX])):
        try:
            connection = await connect(
                host,
                port,
                client_id=options.client_id,
                request_timeout_ms=min(options.request_timeout_ms, int(1000 * PROBE_SECONDS_MAX)),
                **options.security.client_arguments(),
            )
        except REFUSED_CREDENTIALS as error:
            raise not_authenticated(options, str(error)) from error
        except ssl.SSLError as error:
            raise NotAuthenticated(
                f"No TLS connection to {host}:{port}: {error}. Check kafka.ssl.ca.location (the authority that signed "
                "the broker's certificate), the host name in bootstrap.servers, and that the port speaks TLS."
            ) from error
        except TimeoutError:
            reasons.append(f"{host}:{port}: no answer")
        except (kafka.KafkaError, OSError) as error:
            reasons.append(f"{host}:{port}: {str(error) or type(error).__name__}")
        else:
            connection.close()
    return reasons


def not_authenticated(options: ConnectionOptions, text: str) -> NotAuthenticated:
    security = options.security
    return NotAuthenticated(
        f"The brokers at {options.address} refuse user {security.username!r} with {security.mechanism}: {text}. Check "
        "kafka.sasl.username, kafka.sasl.password (or kafka.sasl.jaas.config) and kafka.sasl.mechanism."
    )
