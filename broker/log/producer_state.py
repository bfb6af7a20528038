"""State of the idempotent producers of one partition (KIP-98): detects duplicate batches.

Keeps the last five batches of each producer. Checks sequence numbers per producer and partition. Epochs fence older
producers. This module does no I/O. Snapshots and replayed batch headers restore the state after a restart.
"""

from collections import deque
from dataclasses import dataclass, field

from headgate.wire.record_batch import BatchHeader

# Same window as Kafka: an idempotent producer has at most five in-flight requests.
window_batches = 5

# Maximum number of producers per partition. Above it, the least recently active tenth is evicted. Otherwise a client
# with random producer ids could exhaust memory.
producers_max = 100_000


class OutOfOrderSequence(Exception):
    """The sequence number is not the expected one: OUT_OF_ORDER_SEQUENCE_NUMBER."""


class StaleProducerEpoch(Exception):
    """A producer with the same id and a newer epoch has written: INVALID_PRODUCER_EPOCH."""


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
    """Time of the last write, on the broker's clock. Expiry counts from it."""
    batches: deque[BatchMark] = field(default_factory=lambda: deque(maxlen=window_batches))


class ProducerStates:
    def __init__(self) -> None:
        self.by_id: dict[int, ProducerState] = {}

    def check(self, header: BatchHeader) -> BatchMark | None:
        """Check a batch of an idempotent producer before the append.

        Returns None for a new batch, or the mark of the earlier batch for a duplicate. Raises OutOfOrderSequence,
        StaleProducerEpoch.
        """
        state = self.by_id.get(header.producer_id)
        if state is None:
            # The producer is new, expired or evicted: accept any first sequence number.
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
        # With epoch -1, accept any sequence number.
        if state.batches and state.epoch >= 0:
            expected = (state.batches[-1].last_sequence + 1) & 0x7FFFFFFF
            if header.base_sequence != expected:
                raise OutOfOrderSequence(f"sequence {header.base_sequence} where {expected} was due")
        return None

    def record(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """Record an appended batch."""
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
