"""Send queue of one partition. At most one of its batches is in flight, regardless of the producer id.

Two kinds of batches share the queue, in order of arrival:

- Unkeyed batches have the shared producer id of this worker. The queue assigns their sequence numbers (KIP-98).
- Keyed batches (`Idempotency-Key`) have a producer id and sequence number of the caller, which never change.

The dispatcher (`kafka_client.producer.dispatcher`) sends batches and interprets the responses.
"""

from collections import deque
from typing import Final

from headgate.kafka_client.producer.records import Batch, ProducerIdentity
from headgate.wire.record_batch import PRODUCER, PRODUCER_AT, write_checksum

# Sequence numbers wrap around after this many records.
SEQUENCES: Final = 2**31


class PartitionQueue:
    __slots__ = ("busy", "gathering", "identity", "partition", "sequence", "topic", "waiting")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        """Batches that are not in flight, including `gathering`."""
        self.gathering: Batch | None = None
        """The unkeyed batch in `waiting` that still accepts records."""
        self.busy = False
        """True while a batch is in flight or the partition waits for a retry."""
        self.identity: ProducerIdentity | None = None
        """The shared producer id to which `sequence` belongs."""
        self.sequence: int

    @property
    def is_idle(self) -> bool:
        return not self.busy and not self.waiting

    def take(self) -> Batch:
        """Remove and return the next batch to send."""
        batch = self.waiting.popleft()
        if batch is self.gathering:
            self.gathering = None
        return batch

    def clear(self) -> None:
        self.waiting.clear()
        self.gathering = None

    def seal(self, batch: Batch, shared: ProducerIdentity | None) -> None:
        """Encode the batch. It keeps its producer id and sequence number until a broker responds."""
        if batch.buffer is not None and batch.identity is not None:
            return
        if not batch.is_keyed:
            assert shared is not None
            if self.identity is not shared:
                self.identity, self.sequence = shared, 0
            batch.identity, batch.sequence = shared, self.sequence if shared.is_idempotent else -1
        identity = batch.identity
        assert identity is not None
        if batch.buffer is None:
            batch.builder.set_producer_state(identity.producer_id, identity.epoch, batch.sequence)
            batch.buffer = batch.builder.build()
            batch.builder = None
        else:
            PRODUCER.pack_into(batch.buffer, PRODUCER_AT, identity.producer_id, identity.epoch, batch.sequence)
            write_checksum(batch.buffer)

    def written(self, batch: Batch) -> None:
        """Advance the shared sequence past a batch that a broker has stored."""
        if not batch.is_keyed and batch.sequence >= 0:
            self.sequence = (batch.sequence + batch.count) % SEQUENCES
