"""Records of Arrow batches, as `read_topic(raw=True, headers=True)` returns them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from pyarrow import lib as pa

from headgate.gateway.records.record import Record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_TIMESTAMP = -1
_APPEND_TIME = 1


def records_of(batch: pa.RecordBatch) -> Iterator[Record]:
    times = batch.column("timestamp").view(pa.int64()).to_pylist()
    names = ("topic", "partition", "offset", "timestampType", "key", "value", "headers")
    columns = [batch.column(name).to_pylist() for name in names]
    for micros, topic, partition, offset, kind, key, value, headers in zip(times, *columns, strict=True):
        yield Record(
            topic,
            partition,
            offset,
            NO_TIMESTAMP if micros is None else micros // 1000,
            "append" if kind == _APPEND_TIME else "create",
            key,
            value,
            tuple((header["key"], header["value"]) for header in headers or ()),
        )
