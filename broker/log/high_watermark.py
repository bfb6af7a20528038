"""Batches that consumers must not see yet, because a power cut could still remove them.

A producer with acks=all gets its response when the batch is on the disk. Consumers see the batch from then on. The high
watermark stops at the first batch that waits for its fsync. Batches with acks=0 or acks=1 are visible at once, unless
they follow a batch that waits.
"""

from collections import deque

from headgate.broker.log.segment import Segment


class HiddenBatch:
    """One batch that waits for its fsync, or a run of later batches that do not wait for one."""

    __slots__ = ("awaits_flush", "base_offset", "end_offset", "position", "segment", "size_bytes")

    def __init__(
        self, base_offset: int, end_offset: int, segment: Segment, size_bytes: int, *, awaits_flush: bool
    ) -> None:
        """The batch is the last one in `segment`."""
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.segment = segment
        self.position = segment.size_bytes - size_bytes
        self.size_bytes = size_bytes
        self.awaits_flush = awaits_flush


class HiddenBatches:
    """The batches from the high watermark to the end of the log, in order."""

    __slots__ = ("_batches", "first")

    def __init__(self) -> None:
        self._batches: deque[HiddenBatch] = deque()
        self.first: HiddenBatch | None = None
        """The batch that begins at the high watermark. None if everything is visible."""

    def add(self, batch: HiddenBatch) -> None:
        if self.first is None:
            self.first = batch
        last = self._batches[-1] if self._batches else None
        if last is not None and not last.awaits_flush and not batch.awaits_flush:
            # Coalesce the run into one entry. Otherwise a slow fsync would grow the queue.
            last.end_offset = batch.end_offset
            last.size_bytes += batch.size_bytes
        else:
            self._batches.append(batch)

    def flushed(self, offset: int) -> int:
        """Make batches visible after a flush up to `offset`. Returns the number of bytes that become visible."""
        if self.first is None:
            return 0
        batches, shown_bytes = self._batches, 0
        while batches and (batches[0].end_offset <= offset or not batches[0].awaits_flush):
            shown_bytes += batches.popleft().size_bytes
        self.first = batches[0] if batches else None
        return shown_bytes
