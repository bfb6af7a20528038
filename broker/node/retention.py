"""Deletes old segments and evicts expired producers, periodically and in time slices."""

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.log_deletion import confirm_times
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.retention_hold import RetentionHold
from headgate.broker.node.file_removal import FileRemoval
from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices, Work
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker")

# The maximum jump of the wall clock, relative to the monotonic clock, between two rounds. After a larger jump, for
# example a suspended machine, retention skips one round. NTP corrections are smaller.
clock_jump_ms_max = 600_000


class Retention:
    def __init__(
        self,
        topics: Topics,
        hold: RetentionHold,
        removal: FileRemoval,
        reserve: DiskReserve,
        settings: BrokerSettings,
        slices: TimeSlices[Any],
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._topics = topics
        self._hold = hold
        self._removal = removal
        self._reserve = reserve
        self._settings = settings
        self._slices = slices
        self._clock = clock
        self._timers = timers
        self._is_running = False
        self._clock_offset_ms = clock.wall_ms() - clock.monotonic_ms()

    def start(self) -> None:
        self._timers.after(self._settings.log_retention_check_interval_ms, self.run)

    def run(self) -> None:
        # Schedule the next round first, so that an error in this round does not stop retention.
        self.start()
        if not self._is_running and not self._clock_has_jumped():
            self._is_running = True
            self._hold.refresh()
            self._slices.run(self._retain())

    def _clock_has_jumped(self) -> bool:
        """Whether the wall clock jumped ahead since the last round. A wrong clock could delete all records."""
        before, self._clock_offset_ms = self._clock_offset_ms, self._clock.wall_ms() - self._clock.monotonic_ms()
        jump_ms = self._clock_offset_ms - before
        if jump_ms > clock_jump_ms_max:
            logger.warning("the clock has jumped ahead by %d s: retention skips one round", jump_ms // 1000)
        return jump_ms > clock_jump_ms_max

    def _retain(self) -> Work[None]:
        """Remove old segments one at a time. Yields in between, because the removal of a large file takes time."""
        try:
            for partition in [partition for topic in self._topics.all() for partition in topic.partitions]:
                yield
                log = partition.log
                removed = 0
                while self._may_delete(partition.topic):
                    yield from self._confirm_times(log)
                    if not self._may_delete(partition.topic) or not self._remove_segment(log):
                        break
                    removed += 1
                    yield
                if removed:
                    logger.info("%s: retention removed %d segments", log.name, removed)
                log.producers.expire(self._clock.wall_ms() - self._settings.producer_id_expiration_ms)
            self._removal.start()
        finally:
            self._is_running = False

    def _confirm_times(self, log: PartitionLog) -> Iterator[None]:
        try:
            yield from confirm_times(log, self._clock.wall_ms())
        except (StorageError, OSError) as error:
            # Another request may have deleted the segment. It stays unconfirmed, so retention does not delete it.
            logger.error("%s: cannot read the oldest segment: %s", log.name, error)

    def _may_delete(self, topic: Topic) -> bool:
        """Whether retention applies to the topic: it exists, and its configs are known."""
        exists = self._topics.find_by_id(topic.topic_id) is not None
        return exists and not self._hold.covers(topic.topic_id)

    def _remove_segment(self, log: PartitionLog) -> bool:
        """Remove the oldest segment if it is past its retention. Returns whether it was removed."""
        try:
            return self._reserve.use(partial(log.apply_retention, self._clock.wall_ms(), segments_max=1)) > 0
        except StorageError as error:
            log.fail(error)
            return False
