"""Visibility of batches for READ_COMMITTED consumers."""

import struct

import pytest

from headgate.wire.record_batch import HEADER_BYTES, read_header
from headgate.wire.transactions import AbortedTransaction, TransactionFilter
from tests.wire.record_batches import Batch, NewRecord

ABORT, COMMIT = 0, 1


def batch(base: int, producer: int = -1, size: int = 1) -> bytes:
    attributes = 0x10 if producer >= 0 else 0
    rows = [NewRecord(b"v")] * size
    return Batch(records=rows, base_offset=base, producer_id=producer, attributes=attributes).encode()


def marker(base: int, producer: int, kind: int) -> bytes:
    record = NewRecord(bytes(6), key=struct.pack(">hh", 0, kind))
    return Batch(records=[record], base_offset=base, producer_id=producer, attributes=0x30).encode()


def visible(batches: list[bytes], *aborted: tuple[int, int]) -> list[int]:
    transactions = TransactionFilter(AbortedTransaction(*each) for each in aborted)
    return [
        read_header(each).base_offset
        for each in batches
        if transactions.is_visible(read_header(each), memoryview(each)[HEADER_BYTES:])
    ]


def test_only_the_aborted_transaction_of_a_producer_is_hidden() -> None:
    log = [batch(0, 7), marker(1, 7, ABORT), batch(2, 7), marker(3, 7, COMMIT), batch(4)]
    assert visible(log, (7, 0)) == [2, 4]


def test_producers_are_independent() -> None:
    log = [batch(0, 7), batch(1, 8), batch(2, 7), marker(3, 8, COMMIT), marker(4, 7, ABORT), batch(5, 7)]
    assert visible(log, (7, 0)) == [1, 5]


def test_several_aborted_transactions_are_hidden_in_any_order_of_the_list() -> None:
    log = [batch(0, 7), marker(1, 7, ABORT), batch(2, 7), marker(3, 7, COMMIT), batch(4, 7), marker(5, 7, ABORT)]
    assert visible(log, (7, 4), (7, 0)) == [2]


def test_a_transaction_can_begin_inside_the_first_batch() -> None:
    assert visible([batch(0, 7, size=5), marker(5, 7, ABORT)], (7, 3)) == []


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    assert visible([batch(0, 7), marker(1, 7, COMMIT), batch(2, 7)], (7, 0)) == []


def test_without_aborted_transactions_only_control_batches_are_hidden() -> None:
    assert visible([batch(0, 7), marker(1, 7, ABORT), batch(2)]) == [0, 2]


def test_a_batch_outside_transactions_is_visible_whatever_its_producer() -> None:
    plain = Batch(base_offset=1, producer_id=7).encode()
    assert visible([plain], (7, 0)) == [1]


@pytest.mark.parametrize("records", [b"", bytes(4), bytes(8)])
def test_a_truncated_marker_ends_no_transaction(records: bytes) -> None:
    transactions = TransactionFilter([AbortedTransaction(7, 0)])
    assert not transactions.is_visible(read_header(marker(0, 7, ABORT)), records)
    assert not transactions.is_visible(read_header(batch(1, 7)), b"")
