"""Flushes records that no request waits for, after the time in `flush.ms`."""

from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.state.topics import Topics

# The precision of flush.ms.
flush_check_interval_ms = 1_000


class ScheduledFlush:
    def __init__(
        self, topics: Topics, reserve: DiskReserve, group_commit: GroupCommit, clock: Clock, timers: Timers
    ) -> None:
        self._topics = topics
        self._reserve = reserve
        self._group_commit = group_commit
        self._clock = clock
        self._timers = timers

    def start(self) -> None:
        self._timers.after(flush_check_interval_ms, self.run)

    def run(self) -> None:
        # On a full disk, this also allocates the reserve again as soon as there is space.
        self._reserve.has_space()
        now_ms = self._clock.monotonic_ms()
        for log in self._topics.logs():
            if log.flushed_offset == log.log_end_offset:
                log.unflushed_since_ms = now_ms
            elif now_ms - log.unflushed_since_ms >= log.settings.flush_ms:
                log.unflushed_since_ms = now_ms
                self._group_commit.flush(log)
        self.start()
