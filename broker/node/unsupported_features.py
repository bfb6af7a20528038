"""Logs the use of Kafka features that this broker does not support yet.

Clients do not explain the error codes of these features well. Each feature is logged at most once per interval.
"""

import logging
from enum import Enum

from headgate.broker.runtime.clock import Clock

logger = logging.getLogger("headgate.broker.unsupported")

log_interval_ms = 60_000


class Feature(Enum):
    """The log line of each feature. Its argument is the user of the feature."""

    TRANSACTIONS = "%s uses transactions, which this broker does not support yet: remove transactional.id"
    CONSUMER_PROTOCOL = (
        "%s uses the consumer group protocol of KIP-848, which this broker does not support yet: "
        "set group.protocol=classic"
    )
    COMPACTION = (
        "%s has cleanup.policy=compact, which this broker stores but does not apply yet: "
        "older records of a key are not removed"
    )


class UnsupportedFeatures:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at_ms: dict[Feature, int] = {}

    def report(self, feature: Feature, user: str) -> None:
        """Log the use of a feature by `user`, for example a client or a topic."""
        now_ms = self._clock.monotonic_ms()
        last_ms = self._logged_at_ms.get(feature)
        if last_ms is None or now_ms - last_ms >= log_interval_ms:
            self._logged_at_ms[feature] = now_ms
            logger.warning(feature.value, user)
