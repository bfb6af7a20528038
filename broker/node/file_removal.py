"""Removes the files of deleted topics in a thread, because the removal of terabytes takes long."""

import logging
import threading

from headgate.broker.log.directory import DataDirectory
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.errors import StorageError

logger = logging.getLogger("headgate.broker")

# Delay after the deletion of a topic, so that one thread removes the files of many topics.
removal_delay_ms = 100

# How long a shutdown waits for the removal. The next start removes the remaining files.
removal_seconds_max = 1.0


class FileRemoval:
    def __init__(self, directory: DataDirectory, timers: Timers) -> None:
        self._directory = directory
        self._timers = timers
        self._is_planned = False
        self._thread: threading.Thread | None = None

    def start_soon(self) -> None:
        """Start the removal after a short delay, to include other topics that are deleted soon."""
        if not self._is_planned:
            self._is_planned = True
            self._timers.after(removal_delay_ms, self.start)

    def start(self) -> None:
        self._is_planned = False
        if self._thread is not None and self._thread.is_alive():
            self.start_soon()
        else:
            self._thread = threading.Thread(target=self._remove, name="removal", daemon=True)
            self._thread.start()

    def join(self, seconds_max: float = removal_seconds_max) -> None:
        """Wait for a running removal thread, for at most `seconds_max`."""
        if self._thread is not None:
            self._thread.join(seconds_max)

    def _remove(self) -> None:
        try:
            self._directory.remove_set_aside()
        except (StorageError, OSError) as error:
            logger.error("files of deleted topics remain: %s", error)
