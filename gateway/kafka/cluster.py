"""The connection of one command to a cluster. `kafka_client.admin` sends requests over it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headgate.kafka_client.errors import BrokerUnavailable
from headgate.kafka_client.options import ConnectionOptions, parse_servers
from headgate.kafka_client.properties import load_properties
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.security import check_names, read_security

CLIENT_ID = "headgate"

# Short, because a user waits for the command.
connect_seconds_max = 10.0
request_timeout_ms = 30_000


def connection_options(bootstrap_server: str, kafka_config: str | None) -> ConnectionOptions:
    """`kafka_config` is the path of a properties file. Raises InvalidProperty."""
    servers = tuple(str(address) for address in parse_servers(bootstrap_server))
    properties = load_properties(kafka_config) if kafka_config else {}
    check_names(properties)
    return ConnectionOptions(servers, read_security(properties), CLIENT_ID, request_timeout_ms)


@asynccontextmanager
async def connect(options: ConnectionOptions) -> AsyncIterator[RequestClient]:
    """Raises BrokerUnavailable, NotAuthenticated, InvalidProperty."""
    # Disable the log: aiokafka also raises every logged error, and the command prints it.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    cluster = RequestClient(options)
    try:
        try:
            async with asyncio.timeout(connect_seconds_max):
                await cluster.open()
        except TimeoutError as error:
            unavailable = BrokerUnavailable(f"No Kafka broker responded at {options.address}.")
            unavailable.address = options.address
            unavailable.reason = f"no response within {connect_seconds_max:.0f} s"
            raise unavailable from error
        yield cluster
    finally:
        await cluster.close()
