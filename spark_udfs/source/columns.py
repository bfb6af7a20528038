"""The columns of the data source: their Arrow types, and the conversion of records to Arrow. Needs no pyspark.

Without decoding, the columns are those of Spark's Kafka source. With decoding, `value` contains the decoded value, and
the columns `reason`, `schema_id` and `raw` of `from_registry_avro` are added. If keys are decoded, `key` contains the
decoded key, and `part` and `key_raw` are added.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from pyarrow import lib as pa

from headgate.serdes.columnar import RecordRows
from headgate.serdes.columnar.memory import as_arrow
from headgate.spark_udfs.dead_letter import KEY_RAW, PART
from headgate.spark_udfs.source.record_decoding import RecordDecoding

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER))
TIMESTAMP = pa.timestamp("us", "UTC")
MICROSECONDS_PER_MILLISECOND = 1000
MILLISECONDS_MAX = (2**63 - 1) // MICROSECONDS_PER_MILLISECOND
"""Spark's timestamps are 64-bit microseconds. Kafka's 64-bit milliseconds can exceed them."""

RECORD_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP,
    "timestampType": pa.int32(),
}
OUTCOME_TYPES: dict[str, pa.DataType] = {
    "reason": pa.string(),
    "schema_id": pa.int64(),
    "raw": pa.binary(),
    PART: pa.string(),
    KEY_RAW: pa.binary(),
}


def arrow_schema(decoding: RecordDecoding | None, *, has_headers: bool) -> pa.Schema:
    """All columns, in order."""
    types = dict(RECORD_TYPES)
    if decoding is not None and decoding.key is not None:
        types["key"] = decoding.key.decoder().type
    if decoding is not None and decoding.value is not None:
        types["value"] = decoding.value.decoder().type
    if has_headers:
        types["headers"] = HEADERS
    if decoding is not None:
        types |= {name: OUTCOME_TYPES[name] for name in decoding.outcome_names}
    return pa.schema(list(types.items()))


class RowBatches:
    """Builds Arrow batches of the selected columns from fetched records of one topic."""

    def __init__(
        self,
        names: Sequence[str],
        topic: str,
        partition: int,
        decoding: RecordDecoding | None,
        *,
        is_flat: bool = False,
    ) -> None:
        self._names = list(names)
        self._is_flat = is_flat
        self._topic = topic
        self._partition = partition
        self._decoding = decoding and decoding.for_topic(topic)
        self._makers: dict[str, Callable[[RecordRows], pa.Array]] = {
            "key": lambda records: records.column("key"),
            "value": lambda records: records.column("value"),
            "topic": lambda records: _constant(self._topic, pa.string(), len(records)),
            "partition": lambda records: _constant(self._partition, pa.int32(), len(records)),
            "offset": lambda records: records.column("offset"),
            "timestamp": lambda records: _microseconds(records.column("timestamp")),
            "timestampType": lambda records: records.column("timestamp_type"),
            "headers": lambda records: _headers(records.column("headers")),
        }

    def batches(self, records: RecordRows) -> Iterator[pa.RecordBatch]:
        """Yields several batches if the decoded values are too large for one. Raises `PoisonError` in mode FAIL."""
        if self._decoding is None:
            yield self._batch(records, {})
            return
        for taken, made in self._decoding.outcomes(records, self._names):
            if self._is_flat:
                value = made.pop("value")
                made.update(zip((field.name for field in value.type), value.flatten(), strict=True))
            yield self._batch(taken, made)

    def _batch(self, records: RecordRows, made: dict[str, pa.Array]) -> pa.RecordBatch:
        columns = [made[name] if name in made else self._makers[name](records) for name in self._names]
        return pa.RecordBatch.from_arrays(columns, names=self._names)


@lru_cache(maxsize=16)
def _repeated(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def _constant(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    # Round up to a power of two, so that batches of different sizes share a few cached arrays.
    return _repeated(value, kind, 1 << max(rows - 1, 0).bit_length()).slice(0, rows)


def _microseconds(times: pa.Array) -> pa.Array:
    """Converts to microseconds. Missing timestamps and timestamps outside Spark's range become null."""
    milliseconds = times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    is_outside = (milliseconds > MILLISECONDS_MAX) | (milliseconds < -MILLISECONDS_MAX)
    mask = is_outside | times.is_null().to_numpy(zero_copy_only=False) if times.null_count else is_outside
    with np.errstate(over="ignore"):
        micros = milliseconds * MICROSECONDS_PER_MILLISECOND
    return as_arrow(micros, mask).view(TIMESTAMP)


def _headers(lists: pa.Array) -> pa.Array:
    """Converts the headers. A record without headers has null, as in Spark's Kafka source."""
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset : lists.offset + len(lists) + 1]
    has_some = offsets[1:] > offsets[:-1]
    present = None if has_some.all() else pa.py_buffer(np.packbits(has_some, bitorder="little"))
    return pa.Array.from_buffers(
        HEADERS, len(lists), [present, pa.py_buffer(offsets)], children=[lists.values.cast(HEADER)]
    )


def cut(records: RecordRows, end: int) -> RecordRows:
    """Removes the records at the end offset and beyond."""
    if len(records) == 0 or records.offsets[-1] < end:
        return records
    return records.slice(0, int(np.searchsorted(records.offsets, end)))
