"""One task of a write: turns rows into record batches and sends them. Runs in an executor's Python worker.

The task succeeds after every record is acknowledged. A failed task may have written some records, and Spark's retry
writes them again. Delivery is at-least-once, as with Spark's Kafka sink.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from pyarrow import lib as pa
from pyspark.sql.datasource import WriterCommitMessage

from headgate.spark_udfs.source.errors import UnwritableRow
from headgate.spark_udfs.source.loop import LoopThread, loop_thread
from headgate.spark_udfs.source.options import WriteOptions
from headgate.spark_udfs.source.placement import partitions_of
from headgate.spark_udfs.source.producing import OpenBatch, TopicProducer
from headgate.spark_udfs.source.records import Record, Rows

RECORD_OVERHEAD_BYTES_MAX = 96
"""Size of the batch header and the record fields, without key, value and headers."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The commit message of a task."""

    records: int


def write_batches(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> Written:
    """Raises a `SourceError`, which fails the task."""
    thread = loop_thread()
    producer = TopicProducer(options)
    thread.run(producer.start())
    try:
        open_batches = _OpenBatches(thread, producer, options)
        records = sum(open_batches.add(batch) for batch in batches)
        open_batches.close()
        thread.run(producer.finish())
    except BaseException:
        thread.run(producer.abandon())
        raise
    return Written(records)


class _OpenBatches:
    """The open batches, one per partition."""

    def __init__(self, thread: LoopThread, producer: TopicProducer, options: WriteOptions) -> None:
        self._thread = thread
        self._producer = producer
        self._options = options
        self._partitions: dict[str, list[int]] = {}
        self._open: dict[tuple[str, int], OpenBatch] = {}
        self._keyless: dict[str, int] = {}
        """Sticky partition of records without a key: it changes when its batch is full, as in the Java client."""

    def add(self, batch: pa.RecordBatch) -> int:
        rows = Rows(batch, self._options.topic)
        places: dict[int, list[int]] = {}
        """The partition of each row's key, by the number of partitions of the topic."""
        for row, record in enumerate(rows):
            known = self._known(record.topic)
            if record.partition is not None:
                partition = self._checked(record, known)
            elif record.key is None:
                if record.topic not in self._keyless:
                    self._keyless[record.topic] = random.choice(known)
                partition = self._keyless[record.topic]
            else:
                if len(known) not in places:
                    assert rows.keys is not None
                    places[len(known)] = partitions_of(rows.keys.fill_null(b""), len(known)).tolist()
                partition = known[places[len(known)][row]]
            self._append(record, partition)
        return len(batch)

    def close(self) -> None:
        for topic, partition in list(self._open):
            self._send(topic, partition)

    def _known(self, topic: str) -> list[int]:
        if topic not in self._partitions:
            self._partitions[topic] = self._thread.run(self._producer.partitions(topic))
        return self._partitions[topic]

    def _checked(self, record: Record, known: list[int]) -> int:
        assert record.partition is not None
        if record.partition not in known:
            raise UnwritableRow(
                f"A row has partition {record.partition} of {record.topic}, which has {len(known)} partitions."
            )
        return record.partition

    def _append(self, record: Record, partition: int) -> None:
        place = record.topic, partition
        if place not in self._open:
            self._check_size(record, partition)
            self._open[place] = self._producer.batch()
        if self._appended(self._open[place], record):
            return
        self._send(*place)
        self._check_size(record, partition)
        self._open[place] = self._producer.batch()
        self._appended(self._open[place], record)

    def _appended(self, batch: OpenBatch, record: Record) -> bool:
        return batch.append(timestamp=record.timestamp_ms, key=record.key, value=record.value, headers=record.headers)

    def _check_size(self, record: Record, partition: int) -> None:
        """Checks the size of the first record, because the batch accepts a first record of any size."""
        size = RECORD_OVERHEAD_BYTES_MAX + len(record.key or b"") + len(record.value or b"")
        size += sum(len(name.encode()) + len(value or b"") + 10 for name, value in record.headers)
        if size > self._options.request_bytes_max:
            raise UnwritableRow(
                f"A row for {record.topic}-{partition} is a record of {size} bytes. The limit is "
                f"{self._options.request_bytes_max} (kafka.max.request.size, and the topic's max.message.bytes)."
            )

    def _send(self, topic: str, partition: int) -> None:
        self._keyless.pop(topic, None)
        self._thread.run(self._producer.send(self._open.pop((topic, partition)), topic, partition))
