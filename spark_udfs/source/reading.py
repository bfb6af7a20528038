"""One task of a read: yields an offset range as Arrow batches. Runs in an executor's Python worker, or without Spark.

A batch has at most `BATCH_ROWS_MAX` rows. It has at most `BATCH_BYTES_MAX` bytes of records, unless a single row is
larger. Both sides of the socket hold one or two batches.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from pyarrow import lib as pa

from headgate.kafka_client.options import ConnectionOptions
from headgate.serdes.columnar import BatchFault, BatchTooLarge, RecordRows, Scanned, scan_batches
from headgate.spark_udfs.source.cluster import WORKER_CONNECTION_SECONDS_MAX, Cluster
from headgate.spark_udfs.source.columns import RowBatches, cut
from headgate.spark_udfs.source.errors import UnreadableBatch
from headgate.spark_udfs.source.fetching import FetchOptions, Piece, RangeFetcher, lost, runs
from headgate.spark_udfs.source.loop import loop_thread
from headgate.spark_udfs.source.ranges import OffsetRange
from headgate.spark_udfs.source.record_decoding import RecordDecoding

BATCH_ROWS_MAX = 20_000
"""Large enough to amortize the fixed cost of a batch, small enough for the processor's cache."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""Size of the keys and values of a batch."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The common part of all tasks of a read. Part of the pickled plan."""

    connection: ConnectionOptions
    fetch: FetchOptions
    columns: tuple[str, ...]
    decoding: RecordDecoding | None
    is_flat: bool = False


def read_range(spec: ReadSpec, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Raises a `SourceError`, which fails the task."""
    at = wanted.at
    rows = RowBatches(spec.columns, at.topic, at.partition, spec.decoding, is_flat=spec.is_flat)
    fetcher = RangeFetcher(loop_thread(), shared_cluster(spec.connection), wanted, spec.fetch)
    try:
        for piece in fetcher:
            for records in _records(piece, wanted):
                _check(records.faults, wanted, is_loss_fatal=spec.fetch.is_loss_fatal)
                for part in parts(cut(records.rows, wanted.end)):
                    yield from rows.batches(part)
    finally:
        fetcher.close()


def _records(piece: Piece, wanted: OffsetRange) -> Iterator[Scanned]:
    # Scan all batches of a fetch together if it has aborted transactions: the list applies to all of them.
    together = [memoryview(piece.batches)] if piece.aborted else runs(piece.batches)
    for run in together:
        try:
            yield scan_batches(run, wanted.at.partition, first_offset=piece.first_offset, aborted=piece.aborted)
        except BatchTooLarge as error:
            raise UnreadableBatch(
                f"The batches from offset {piece.first_offset} of {wanted.at.topic}-{wanted.at.partition} on hold more "
                f"than can be read at once: {error}. Lower kafka.max.partition.fetch.bytes."
            ) from error


def shared_cluster(connection: ConnectionOptions) -> Cluster:
    """Returns the shared `Cluster` of this process. Later tasks and micro-batches reuse its connections."""
    return _cluster(os.getpid(), connection)


@cache
def _cluster(_process_id: int, connection: ConnectionOptions) -> Cluster:
    return Cluster(connection, WORKER_CONNECTION_SECONDS_MAX)


def parts(records: RecordRows) -> Iterator[RecordRows]:
    """Yields slices of the rows within `BATCH_ROWS_MAX` and `BATCH_BYTES_MAX`."""
    before = np.zeros(len(records) + 1, np.int64)
    np.cumsum(records.keys.sizes + records.values.sizes, out=before[1:])
    first = 0
    while first < len(records):
        room = int(np.searchsorted(before, before[first] + BATCH_BYTES_MAX, side="right")) - 1
        last = min(max(room, first + 1), first + BATCH_ROWS_MAX, len(records))
        yield records.slice(first, last - first)
        first = last


def _check(faults: tuple[BatchFault, ...], wanted: OffsetRange, *, is_loss_fatal: bool) -> None:
    name = f"{wanted.at.topic}-{wanted.at.partition}"
    for fault in faults:
        if fault.first_offset >= wanted.end:
            continue
        if fault.last_offset < fault.first_offset:
            raise UnreadableBatch(
                f"The batch at offset {fault.first_offset} of {name} cannot be read: {fault.detail}. "
                "Start behind it with startingOffsets."
            )
        lost(
            f"The batch of offsets {fault.first_offset} to {fault.last_offset} of {name} is damaged: {fault.detail}.",
            is_fatal=is_loss_fatal,
        )
