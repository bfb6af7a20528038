"""Apply `OnRegistryDown` to the registry requests of an executor.

A task that waits blocks only itself. After a wait without success, no request waits again until the registry responds:
a long outage delays a worker once, not once per schema id. A schema id that used up a wait never waits again, because
the registry may fail for this id only.
"""

import logging
import time
from collections.abc import Callable, Hashable
from typing import TypeVar

from headgate.serdes.client import RegistryClientError, RegistryUnavailable, UnknownSchema
from headgate.spark_udfs.spec.policy import OnRegistryDown, RegistryDownError

BACKOFF_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 5.0
"""The first and the longest pause between requests. The client also sends no request for 5 s after an outage."""

ABANDONED_MAX = 10_000
"""Schema ids that used up a wait. A registry that fails for more ids is down."""

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class RegistryOutage:
    def __init__(
        self,
        policy: OnRegistryDown,
        wait_seconds_max: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._policy = policy
        self._wait_seconds_max = wait_seconds_max
        self._clock = clock
        self._sleep = sleep
        self._has_given_up = False
        self._abandoned: set[Hashable] = set()

    def request(self, key: Hashable, send: Callable[[], Result]) -> Result:
        """The result of `send`, after a wait if necessary. `key` identifies the schema.

        Raises the last `RegistryClientError`, or `RegistryDownError` with the policy FAIL.
        """
        ends, backoff = self._clock() + self._wait_seconds_max, BACKOFF_SECONDS
        while True:
            try:
                found = send()
            except UnknownSchema:
                self._has_given_up = False
                raise
            except RegistryClientError as error:
                if self._policy is OnRegistryDown.FAIL:
                    raise RegistryDownError(str(error)) from error
                if not isinstance(error, RegistryUnavailable) or not self._is_waiting(key):
                    raise
                left = ends - self._clock()
                if left <= 0:
                    self._give_up(key)
                    raise
                if backoff == BACKOFF_SECONDS:
                    log.warning("waiting up to %.0f s for the schema registry: %s", left, error)
                self._sleep(min(backoff, left))
                backoff = min(backoff * 2, BACKOFF_MAX_SECONDS)
            else:
                self._has_given_up = False
                return found

    def _is_waiting(self, key: Hashable) -> bool:
        return self._policy is OnRegistryDown.WAIT and not self._has_given_up and key not in self._abandoned

    def _give_up(self, key: Hashable) -> None:
        self._has_given_up = True
        if len(self._abandoned) < ABANDONED_MAX:
            self._abandoned.add(key)
