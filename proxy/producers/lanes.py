"""One partition's batches on their way: which leaves next, and under which producer id and sequence (KIP-98).

When they leave, and what an answer means, is the sender's (`proxy.producers.sender`).
"""

import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import crc32c
from aiokafka.partitioner import murmur2

from proxy.producers.records import Batch, ProducerIdentity

_SEQUENCES: Final = 2**31
# Places in a record batch of version 2.
_CRC_AT, _CRC_FROM, _IDENTITY_AT = 17, 21, 43
_IDENTITY: Final = struct.Struct(">qhi")


class Lane:
    """The batches that wait, the one that gathers behind them, and the numbers of the next one to leave."""

    __slots__ = ("busy", "gathering", "identity", "is_fixed", "partition", "sequence", "topic", "waiting")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.gathering: Batch | None = None
        self.busy = False
        self.identity: ProducerIdentity | None = None
        self.sequence = 0
        self.is_fixed = False
        """The identity is the caller's and may not be changed for another."""

    def batches(self) -> list[Batch]:
        """Those that have not left, in order."""
        return [*self.waiting, self.gathering] if self.gathering is not None else [*self.waiting]

    def take(self) -> Batch:
        """The next to leave."""
        if self.waiting:
            return self.waiting.popleft()
        batch, self.gathering = self.gathering, None
        assert batch is not None
        return batch

    def clear(self) -> None:
        self.waiting.clear()
        self.gathering = None

    def seal(self, batch: Batch, current: ProducerIdentity) -> None:
        """The bytes of the batch, with the identity and sequence that it keeps until it is answered for."""
        if batch.buffer is not None and batch.identity is not None:
            return
        if not self.is_fixed and self.identity is not current:
            self.identity, self.sequence = current, 0
        identity = self.identity
        assert identity is not None
        batch.identity, batch.sequence = identity, self.sequence
        if batch.buffer is None:
            batch.builder.set_producer_state(identity.producer_id, identity.epoch, self.sequence)
            batch.buffer = batch.builder.build()
            batch.builder = None
        else:
            _IDENTITY.pack_into(batch.buffer, _IDENTITY_AT, identity.producer_id, identity.epoch, self.sequence)
            checksum = crc32c.crc32c(bytes(batch.buffer[_CRC_FROM:]))
            struct.pack_into(">I", batch.buffer, _CRC_AT, checksum)

    def settled(self, batch: Batch) -> None:
        """A broker has it: the sequence goes on after it."""
        self.sequence = (batch.sequence + batch.count) % _SEQUENCES


def partition_of(key: bytes, partitions: Sequence[int]) -> int:
    """As Java's DefaultPartitioner chooses for a key."""
    if len(partitions) == 1:
        return partitions[0]
    hash_of: Callable[[bytes], int] = murmur2
    return partitions[(hash_of(key) & 0x7FFFFFFF) % len(partitions)]
