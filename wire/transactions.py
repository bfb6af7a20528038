"""Visibility of transactional batches for READ_COMMITTED consumers (KIP-98)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from headgate.wire.buffer import Buffer
from headgate.wire.record_batch import CONTROL_FLAG, BatchHeader

ABORT: Final = 0
"""Type of a control record: abort marker."""


class AbortedTransaction(NamedTuple):
    """An entry of `aborted_transactions` in the fetch response."""

    producer_id: int
    first_offset: int


class TransactionFilter:
    """Hides control batches, and batches of aborted transactions from their first offset to the abort marker.

    Call `is_visible` once for each batch of the response, in order.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._open: set[int] = set()

    def is_visible(self, header: BatchHeader, records: Buffer) -> bool:
        """`records` are the decompressed records. Only those of control batches are read."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if header.attributes & CONTROL_FLAG:
            if _marker_type(records) == ABORT:
                self._open.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._open)


def _marker_type(records: Buffer) -> int:
    """The type in the key of a control record. Brokers encode each field before the key in one byte."""
    key = bytes(records[5:9])
    return int.from_bytes(key[2:4]) if len(key) == 4 else -1
