"""A connection to a cluster for one command. What is asked over it is `proxy.admin`'s."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode

from headgate.gateway.kafka.addresses import addresses_of, why_unreachable
from headgate.gateway.kafka.errors import ClusterUnreachable, KafkaFault, Refused
from headgate.proxy.admin.cluster import AdminCluster
from headgate.proxy.settings import ProxySettings

CLIENT_ID = "headgate"

# A person waits: a broker that takes longer to let us in is not there.
connect_seconds_max = 10.0
request_timeout_ms = 30_000


@asynccontextmanager
async def connect(bootstrap_server: str) -> AsyncIterator[AdminCluster]:
    """Raises BadAddress, and ClusterUnreachable when nobody answers."""
    addresses = addresses_of(bootstrap_server)
    # What it logs, it also raises, and the command line has its own words for that.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    errors = import_module("aiokafka.errors")
    settings = ProxySettings(bootstrap_servers=bootstrap_server, kafka_request_timeout_ms=request_timeout_ms)
    cluster = AdminCluster(settings, CLIENT_ID)
    try:
        try:
            async with asyncio.timeout(connect_seconds_max):
                await cluster.open()
        except TimeoutError as error:
            raise ClusterUnreachable(bootstrap_server, f"no answer in {connect_seconds_max:.0f} s") from error
        except (errors.KafkaError, OSError) as error:
            raise ClusterUnreachable(bootstrap_server, await why_unreachable(addresses[0])) from error
        yield cluster
    finally:
        await cluster.close()


def fault_of(error: Any, subject: str, bootstrap_server: str) -> KafkaFault:
    """What an error of aiokafka's is here: a refusal where a broker gave a code, else nobody there."""
    errors: Any = import_module("aiokafka.errors")
    code = getattr(error, "errno", None)
    if isinstance(error, errors.BrokerResponseError) and code in set(ErrorCode):
        return Refused(subject, ErrorCode(code), getattr(error, "description", None) or str(error))
    # Some of aiokafka's errors carry no text but that of their class.
    return ClusterUnreachable(bootstrap_server, str(error) or type(error).__name__)
