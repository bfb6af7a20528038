"""Validation of produced batches of every size."""

import dataclasses
from typing import Any

import pytest

from headgate.broker.protocol.produced_batch import COUNTED_RECORDS_MAX, WALKED_RECORDS_MAX, validate_produced
from headgate.wire.errors import CorruptBatch, InvalidBatch
from headgate.wire.records import encode_batch, read_records
from tests.wire.record_batches import Batch, NewRecord

SIZES = [1, 2, WALKED_RECORDS_MAX, WALKED_RECORDS_MAX + 1, 300, COUNTED_RECORDS_MAX - 7]


def batch_of(size: int, **fields: Any) -> Batch:
    """Return a batch with values of different lengths, so that some length varints take one byte and some two."""
    rows = [NewRecord(b"v" * (number % 50 + (200 if number < 3 else 0))) for number in range(size)]
    return dataclasses.replace(Batch(records=rows), **fields)


@pytest.mark.parametrize("count", [*SIZES, COUNTED_RECORDS_MAX, COUNTED_RECORDS_MAX + 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_valid_batch_of_any_size_is_accepted(count: int, codec: str) -> None:
    payload = batch_of(count, codec=codec).encode()
    batch, header = validate_produced(payload)
    assert (batch, header.records_count) == (payload, count)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("lie", [-1, 1, 7])
def test_a_count_that_is_a_lie_is_refused(count: int, lie: int) -> None:
    said = count + lie
    payload = batch_of(count, count=said, last_offset_delta=said - 1).encode()
    with pytest.raises(InvalidBatch):
        validate_produced(payload)


@pytest.mark.parametrize("count", SIZES)
def test_a_flipped_bit_is_found(count: int) -> None:
    payload = bytearray(batch_of(count).encode())
    payload[-1] ^= 1
    with pytest.raises(CorruptBatch):
        validate_produced(bytes(payload))


@pytest.mark.parametrize("count", SIZES)
def test_bytes_between_and_behind_records_are_refused(count: int) -> None:
    body = batch_of(count).encode()[61:]
    with pytest.raises(InvalidBatch):
        validate_produced(batch_of(count, body=body + b"\x00").encode())
    with pytest.raises(InvalidBatch):
        validate_produced(batch_of(count, body=b"\x02" + body).encode())


def test_the_broker_reads_its_own_batches() -> None:
    entries = [(b"k", b"v"), (None, b""), (b"", None), (b"x" * 300, b"y" * 70_000)]
    batch, header = validate_produced(encode_batch(entries, 1_700_000_000_000))
    assert [(record.key, record.value) for record in read_records(batch)] == entries
    assert header.max_timestamp == 1_700_000_000_000
