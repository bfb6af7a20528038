"""Rebuilds the indexes of a segment in a thread, because the scan of a large segment takes seconds."""

import threading
from typing import TYPE_CHECKING

from headgate.broker.runtime.errors import StorageError

if TYPE_CHECKING:
    from headgate.broker.log.segment import Segment

# The fields that `Segment.scan_indexes` sets.
_SCANNED = (
    "_index",
    "_since_index_bytes",
    "_time_index",
    "first_timestamp",
    "has_confirmed_times",
    "is_damaged",
    "largest_timestamp",
    "largest_timestamp_offset",
)


class IndexRebuild:
    """A scan of the segment's current content. `apply` sets the result on the event loop's thread."""

    def __init__(self, segment: "Segment") -> None:
        self._segment = segment
        self._copy = type(segment)(
            segment.directory, segment.base_offset, segment.created_ms, segment.size_bytes, segment.file
        )
        self._lock = threading.Lock()
        self._failure: StorageError | OSError | None = None
        self.is_done = False

    @property
    def is_outdated(self) -> bool:
        return self._copy.size_bytes != self._segment.size_bytes

    def run(self) -> None:
        """Scan the batches. Several clients may wait for the same rebuild: only the first call scans."""
        with self._lock:
            if not self.is_done:
                try:
                    self._copy.scan_indexes()
                except (StorageError, OSError) as error:
                    self._failure = error
                self.is_done = True

    def apply(self) -> None:
        """Raises StorageError, OSError if the scan failed."""
        if self._failure is not None:
            raise self._failure
        for name in _SCANNED:
            setattr(self._segment, name, getattr(self._copy, name))
