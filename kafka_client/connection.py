"""Opens connections to a cluster for all packages."""

import asyncio
import contextlib
import time
from typing import Any, Final

from aiokafka import errors as kafka

from headgate.kafka_client.aiokafka_internals import BrokerConnection, MetadataClient, connect, connect_timeout
from headgate.kafka_client.diagnosis import diagnose
from headgate.kafka_client.errors import NotAuthenticated
from headgate.kafka_client.options import ConnectionOptions

CONNECT_MS_MAX: Final = 10_000
"""How long one address may take to respond, as `socket.connection.setup.timeout.ms` of the Java client."""
RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 2.0
CLOSE_SECONDS_MAX: Final = 5.0


async def open_client(options: ConnectionOptions, seconds_max: float = 0.0) -> Any:
    """Returns a connected `MetadataClient`. Retries for `seconds_max`. Raises BrokerUnavailable, NotAuthenticated."""
    deadline = time.monotonic() + seconds_max
    pause = RETRY_SECONDS
    while True:
        make: Any = MetadataClient
        client = make(**options.client_arguments())
        try:
            with connect_timeout(client, CONNECT_MS_MAX):
                await client.bootstrap()
        except (kafka.KafkaError, OSError) as error:
            await close_client(client)
            reason = await diagnose(options, error=error)
            if isinstance(reason, NotAuthenticated) or time.monotonic() >= deadline:
                raise reason from error
        except BaseException:
            await close_client(client)
            raise
        else:
            return client
        await asyncio.sleep(pause)
        pause = min(2 * pause, RETRY_SECONDS_MAX)


async def open_fetch_connection(host: str, port: int, options: ConnectionOptions) -> BrokerConnection:
    """Raises aiokafka's errors and OSError."""
    timeout_ms, security = options.request_timeout_ms, options.security.client_arguments()
    return await connect(host, port, client_id=options.client_id, request_timeout_ms=timeout_ms, **security)


async def close_client(client: Any) -> None:
    """Close all connections. Waits at most `CLOSE_SECONDS_MAX` for buffered data."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS_MAX):
            await client.close()


def advertised_addresses(client: Any) -> list[str]:
    """Returns the broker addresses in the metadata. Clients connect to them after the bootstrap."""
    return sorted(f"{broker.host}:{broker.port}" for broker in client.cluster.brokers())
