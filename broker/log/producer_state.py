"""Idempotent producers of one partition: the last batches of each, so that a repeated one is written once.

Follows KIP-98: sequences per producer and partition, a window of five batches, epochs that fence. Pure; kept over
restarts by snapshots and by replaying batch headers.
"""

from collections import deque
from dataclasses import dataclass, field

from headgate.wire.record_batch import BatchHeader

# Kafka's own window: an idempotent producer has at most five requests in flight to a partition.
window_batches = 5

# Producers that one partition remembers. Past it those that wrote the longest ago are forgotten early, a tenth at a
# time: a client that makes up ids must not fill the memory.
producers_max = 100_000


class OutOfOrderSequence(Exception):
    """A batch is missing before this one: OUT_OF_ORDER_SEQUENCE_NUMBER."""


class StaleProducerEpoch(Exception):
    """A newer incarnation of the producer has written: INVALID_PRODUCER_EPOCH."""


@dataclass(slots=True)
class BatchMark:
    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerState:
    epoch: int
    last_timestamp: int
    """When it last wrote, on the broker's clock: what expiry counts from."""
    batches: deque[BatchMark] = field(default_factory=lambda: deque(maxlen=window_batches))


class ProducerStates:
    def __init__(self) -> None:
        self.by_id: dict[int, ProducerState] = {}

    def check(self, header: BatchHeader) -> BatchMark | None:
        """Admit a batch of an idempotent producer: None to append it, a mark when it was written before."""
        state = self.by_id.get(header.producer_id)
        if state is None:
            # Unknown, or forgotten after its records were deleted: any sequence begins.
            return None
        if header.producer_epoch < state.epoch:
            raise StaleProducerEpoch(f"epoch {header.producer_epoch} is older than {state.epoch}")
        if header.producer_epoch > state.epoch:
            if header.base_sequence != 0 and state.epoch >= 0:
                raise OutOfOrderSequence(f"a new epoch begins with sequence 0, not {header.base_sequence}")
            return None
        last_sequence = header.last_sequence
        for mark in state.batches:
            if mark.base_sequence == header.base_sequence and mark.last_sequence == last_sequence:
                return mark
        # Before its first epoch (-1) a producer writes any sequence.
        if state.batches and state.epoch >= 0:
            expected = (state.batches[-1].last_sequence + 1) & 0x7FFFFFFF
            if header.base_sequence != expected:
                raise OutOfOrderSequence(f"sequence {header.base_sequence} where {expected} was due")
        return None

    def record(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """Remember a batch that was appended."""
        state = self.by_id.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            if len(self.by_id) >= producers_max:
                self._forget_oldest()
            state = self.by_id[header.producer_id] = ProducerState(header.producer_epoch, now_ms)
        state.last_timestamp = now_ms
        state.batches.append(BatchMark(header.base_sequence, header.last_sequence, base_offset, header.max_timestamp))

    def _forget_oldest(self) -> None:
        by_age = sorted(self.by_id, key=lambda producer_id: self.by_id[producer_id].last_timestamp)
        for producer_id in by_age[: producers_max // 10]:
            del self.by_id[producer_id]

    def expire(self, before_ms: int) -> None:
        for producer_id in [key for key, state in self.by_id.items() if state.last_timestamp < before_ms]:
            del self.by_id[producer_id]

    def snapshot(self) -> list[list[object]]:
        return [
            [
                producer_id,
                state.epoch,
                state.last_timestamp,
                [[mark.base_sequence, mark.last_sequence, mark.base_offset, mark.timestamp] for mark in state.batches],
            ]
            for producer_id, state in self.by_id.items()
        ]

    def restore(self, rows: list[tuple[int, int, int, list[tuple[int, int, int, int]]]]) -> None:
        self.by_id.clear()
        for producer_id, epoch, last_timestamp, batches in rows:
            state = ProducerState(epoch, last_timestamp)
            state.batches.extend(BatchMark(*mark) for mark in batches)
            self.by_id[producer_id] = state
