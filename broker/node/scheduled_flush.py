"""Flushes unflushed records after `flush.ms`, even if no request waits for them."""

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
        # After a full disk, `has_space` allocates the reserve again as soon as space is available.
        self._reserve.has_space()
        now_ms = self._clock.monotonic_ms()
        for log in self._topics.logs():
            if log.flushed_offset == log.log_end_offset:
                log.unflushed_since_ms = now_ms
            elif now_ms - log.unflushed_since_ms >= log.settings.flush_ms:
                log.unflushed_since_ms = now_ms
                self._group_commit.flush(log)
        self.start()
