"""Sends the requests of the admin operations and raises the errors of the proxy."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from headgate.kafka_client.errors import KafkaClientError
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api
from headgate.proxy.admin.refusals import check
from headgate.proxy.errors import LeaderNotFound, NodeUnavailable, Unsettled
from headgate.proxy.kafka_errors import proxy_error

# A cluster replaces a failed broker after `broker.session.timeout.ms` (9 s by default), and the new coordinator loads
# its groups. Kafka's command-line tools retry in the same way.
settling_seconds_max: Final = 30.0
# The election of a leader is a matter of milliseconds if a replica is in sync. Otherwise the partition stays offline.
electing_seconds_max: Final = 4.0
settling_pause_seconds: Final = 0.25

Result = TypeVar("Result")


class AdminCluster:
    def __init__(self, options: ConnectionOptions) -> None:
        self._client = RequestClient(options)

    @property
    def request_timeout_ms(self) -> int:
        return self._client.request_timeout_ms

    async def open(self) -> None:
        """Connect now instead of on first use. Raises KafkaClientError."""
        await self._client.open()

    async def ask(self, api: Api, fields: Mapping[str, object], node: int | None = None) -> Any:
        """Returns the response of broker `node`, or of any broker if `node` is None. Raises ProxyError."""
        try:
            return await self._client.send(api, fields, node)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    async def coordinator(self, group: str) -> int:
        """Returns the node id of the group's coordinator."""

        async def find() -> int:
            found = await self.ask(Api.FIND_COORDINATOR, {"key": group, "key_type": 0})
            check(found.error_code, found.error_message, f"coordinator of group {group}")
            return int(found.node_id)

        return await settled(find)

    async def close(self) -> None:
        await self._client.close()


async def settled(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Retry while the cluster replaces a coordinator or leader. Raises the last error when the time is over.

    `ask` finds the broker in each attempt. If it sends a change, no broker has applied the change when it is retried.
    """
    started = time.monotonic()
    while True:
        try:
            return await ask()
        except (Unsettled, LeaderNotFound, NodeUnavailable) as error:
            seconds_max = electing_seconds_max if isinstance(error, LeaderNotFound) else settling_seconds_max
            if time.monotonic() - started >= seconds_max:
                raise
            await asyncio.sleep(settling_pause_seconds)
