"""Flushes logs periodically and stores their recovery points, so that recovery reads only recent records."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices, Work

# Recovery after a crash reads at most the records of this interval (Kafka's default).
checkpoint_interval_ms = 60_000


class Checkpoints:
    def __init__(
        self,
        logs: Callable[[], Sequence[PartitionLog]],
        directory: DataDirectory,
        group_commit: GroupCommit,
        slices: TimeSlices[Any],
        timers: Timers,
    ) -> None:
        self._logs = logs
        self._directory = directory
        self._group_commit = group_commit
        self._slices = slices
        self._timers = timers

    def start(self) -> None:
        """Schedule the first checkpoint. It runs at once after a crash, so that the next recovery starts here."""
        self._timers.after(0 if self._logs_behind() else checkpoint_interval_ms, self.run)

    def run(self) -> None:
        self._timers.after(checkpoint_interval_ms, self.run)
        self._slices.run(self._flush([log for log in self._logs_behind() if log.failure is None]))

    def _logs_behind(self) -> list[PartitionLog]:
        """Return the logs whose recovery point is not their log end offset."""
        known = self._directory.recovery_points
        return [log for log in self._logs() if known.get(log.name, 0) != log.log_end_offset]

    def _flush(self, logs: Sequence[PartitionLog]) -> Work[None]:
        points: dict[PartitionLog, int] = {}
        left = len(logs)

        def flushed(log: PartitionLog, error: StorageError | None) -> None:
            nonlocal left
            left -= 1
            try:
                if error is None and not log.is_deleted:
                    log.checkpoint()
                    points[log] = log.flushed_offset
                if left == 0 and points:
                    # Write the points of all logs at once, because the fsync blocks the event loop.
                    self._write(points)
            except StorageError as failure:
                log.fail(failure)

        for log in logs:
            yield
            self._group_commit.flush(log).then(partial(flushed, log))

    def _write(self, points: Mapping[PartitionLog, int]) -> None:
        # Drop the points of deleted topics. A new topic with the same name must not use them.
        names = {log.name for log in self._logs()}
        known = {name: point for name, point in self._directory.recovery_points.items() if name in names}
        reached = {log.name: point for log, point in points.items() if not log.is_deleted}
        self._directory.write_recovery_points({**known, **reached})
