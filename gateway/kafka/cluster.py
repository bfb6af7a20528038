"""A cluster that can be asked: connections and routing are aiokafka's, messages are kio's."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode

from gateway.kafka.addresses import addresses_of, why_unreachable
from gateway.kafka.errors import ClusterUnreachable, KafkaFault, Refused, check
from gateway.kafka.messages import Api, KioRequest

CLIENT_ID = "headgate"

# A person waits: a broker that takes longer to let us in is not there.
connect_seconds_max = 10.0
request_timeout_ms = 30_000

# A coordinator that is being elected answers within moments; Kafka's own tools retry in the same way.
coordinator_attempts_max = 20
coordinator_retry_seconds = 0.25


class Cluster:
    def __init__(self, bootstrap_server: str, client: Any) -> None:
        self.bootstrap_server = bootstrap_server
        self._client = client

    async def ask(self, api: Api, fields: Mapping[str, object], node: int | None = None) -> Any:
        """The answer of one node, of any if none is named. Raises ClusterUnreachable, ApiMissing."""
        errors = import_module("aiokafka.errors")
        if node is None:
            node = self._client.get_random_node()
        try:
            return await self._client.send(node, KioRequest(api, fields))
        except (errors.KafkaError, OSError, TimeoutError) as error:
            raise ClusterUnreachable(self.bootstrap_server, reason_of(error)) from error

    def nodes(self) -> list[int]:
        return sorted(broker.nodeId for broker in self._client.cluster.brokers())

    def controller(self) -> int | None:
        """The node that changes topics; any broker forwards to it where the controllers are not for clients."""
        controller = self._client.cluster.controller
        return None if controller is None else int(controller.nodeId)

    async def coordinator(self, group: str) -> int:
        """The node that keeps a group."""
        for attempt in range(coordinator_attempts_max):
            found = await self.ask(Api.FIND_COORDINATOR, {"key": group, "key_type": 0})
            if not found.error_code.retriable or attempt == coordinator_attempts_max - 1:
                break
            await asyncio.sleep(coordinator_retry_seconds)
        check(f"coordinator of group {group}", found.error_code, found.error_message)
        return int(found.node_id)


@asynccontextmanager
async def connect(bootstrap_server: str) -> AsyncIterator[Cluster]:
    """Raises BadAddress, and ClusterUnreachable when nobody answers."""
    addresses = addresses_of(bootstrap_server)
    # What it logs, it also raises, and the command line has its own words for that.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    client_module, errors = import_module("aiokafka.client"), import_module("aiokafka.errors")
    client = client_module.AIOKafkaClient(
        bootstrap_servers=bootstrap_server, client_id=CLIENT_ID, request_timeout_ms=request_timeout_ms
    )
    try:
        try:
            async with asyncio.timeout(connect_seconds_max):
                await client.bootstrap()
        except TimeoutError as error:
            raise ClusterUnreachable(bootstrap_server, f"no answer in {connect_seconds_max:.0f} s") from error
        except (errors.KafkaError, OSError) as error:
            raise ClusterUnreachable(bootstrap_server, await why_unreachable(addresses[0])) from error
        yield Cluster(bootstrap_server, client)
    finally:
        await client.close()


def fault_of(error: Any, subject: str, bootstrap_server: str) -> KafkaFault:
    """What an error of aiokafka's is here: a refusal where a broker gave a code, else nobody there."""
    errors: Any = import_module("aiokafka.errors")
    code = getattr(error, "errno", None)
    if isinstance(error, errors.BrokerResponseError) and code in set(ErrorCode):
        return Refused(subject, ErrorCode(code), getattr(error, "description", None) or str(error))
    return ClusterUnreachable(bootstrap_server, reason_of(error))


def reason_of(error: BaseException) -> str:
    """Some of aiokafka's errors carry no text but that of their class."""
    return str(error) or type(error).__name__
