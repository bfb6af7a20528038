"""Retries while the cluster replaces a coordinator or leader."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from headgate.kafka_client.errors import LeaderNotFound, NodeUnavailable, NotReady

# A cluster replaces a failed broker after `broker.session.timeout.ms` (9 s by default), and the new coordinator loads
# its groups. Kafka's command-line tools retry in the same way.
settling_seconds_max: Final = 30.0
# The election of a leader is a matter of milliseconds if a replica is in sync. Otherwise the partition stays offline.
electing_seconds_max: Final = 4.0
# The pause doubles with each attempt. Many reads can wait at the same time, and each attempt takes several requests.
settling_pause_seconds: Final = 0.1
settling_pause_seconds_max: Final = 2.0

Result = TypeVar("Result")


async def settled(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Returns the result of `ask`. Raises the last error when the time is over.

    `ask` finds the broker in each attempt. If it sends a change, no broker has applied the change when it is retried.
    """
    started = time.monotonic()
    pause = settling_pause_seconds
    while True:
        try:
            return await ask()
        except (NotReady, LeaderNotFound, NodeUnavailable) as error:
            seconds_max = electing_seconds_max if isinstance(error, LeaderNotFound) else settling_seconds_max
            if time.monotonic() - started >= seconds_max:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, settling_pause_seconds_max)
