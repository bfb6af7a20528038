"""The columns of the data source: their Spark types, and the conversion of records to Arrow.

Without decoding, the columns are those of Spark's Kafka source. With decoding, `value` contains the decoded value, and
the columns `reason`, `schema_id` and `raw` of `from_registry_avro` are added. If keys are decoded, `key` contains the
decoded key, and `part` and `key_raw` are added. Spark compares types exactly, including nullability.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from pyarrow import lib as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.serdes.columnar import RecordRows
from headgate.serdes.columnar.memory import as_arrow
from headgate.spark_udfs.dead_letter import KEY_RAW, PART
from headgate.spark_udfs.executor.spark_types import spark_type
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.source.record_decoding import RecordDecoding
from headgate.spark_udfs.spec.registry_options import METADATA_URL

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER))
TIMESTAMP = pa.timestamp("us", "UTC")
MICROSECONDS_PER_MILLISECOND = 1000
MILLISECONDS_MAX = (2**63 - 1) // MICROSECONDS_PER_MILLISECOND
"""Spark's timestamps are 64-bit microseconds. Kafka's 64-bit milliseconds can exceed them."""

_RAW: dict[str, tuple[DataType, pa.DataType]] = {
    "key": (BinaryType(), pa.binary()),
    "value": (BinaryType(), pa.binary()),
    "topic": (StringType(), pa.string()),
    "partition": (IntegerType(), pa.int32()),
    "offset": (LongType(), pa.int64()),
    "timestamp": (TimestampType(), TIMESTAMP),
    "timestampType": (IntegerType(), pa.int32()),
}
_OUTCOME: dict[str, DataType] = {
    "reason": StringType(),
    "schema_id": LongType(),
    "raw": BinaryType(),
    PART: StringType(),
    KEY_RAW: BinaryType(),
}
_HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def table_schema(decoding: RecordDecoding | None, *, has_headers: bool, registry: str | None) -> StructType:
    """Returns all columns. `registry` contains the registry URLs.

    The metadata of the value column stores them for later decoding.
    """
    metadata = {METADATA_URL: registry} if registry else None
    fields = [StructField(name, kind) for name, (kind, _) in _RAW.items()]
    decodings = (None, None) if decoding is None else (decoding.key, decoding.value)
    key, value = (BinaryType() if one is None else spark_type(one.decoder().type) for one in decodings)
    fields[:2] = StructField("key", key), StructField("value", value, metadata=metadata)
    if has_headers:
        fields.append(StructField("headers", _HEADERS_TYPE))
    if decoding is not None:
        fields += [StructField(name, _OUTCOME[name]) for name in decoding.outcome_names]
    return StructType(fields)


def chosen(table: StructType, columns: Sequence[str] | None) -> StructType:
    """Returns the selected columns in the given order (projection). Raises `BadOption`."""
    if columns is None:
        return table
    known = {field.name.lower(): field for field in table.fields}
    for name in columns:
        if name.lower() not in known:
            raise BadOption("columns", f"there is no column {name[:60]!r}; there are {', '.join(table.names)}")
    return StructType([known[name.lower()] for name in columns])


def flattened(table: StructType) -> StructType:
    """Replaces the value column with its fields. Raises `BadOption`."""
    if "value" not in table.names:
        return table
    value = table["value"].dataType
    if not isinstance(value, StructType):
        raise BadOption("flat", f"the value is {value.simpleString()[:60]}, which has no fields")
    fields = [inner for field in table.fields for inner in (value.fields if field.name == "value" else [field])]
    names = [field.name.lower() for field in fields]
    for name in names:
        if names.count(name) > 1:
            others = ", ".join(column for column in table.names if column.lower() != name)
            raise BadOption("flat", f"there would be two columns {name[:60]!r}; choose others with columns: {others}")
    return StructType(fields)


def check_schema(wanted: StructType, table: StructType) -> None:
    """Checks a schema of the user. It may omit columns, but must not change them. Raises `BadOption`."""
    known = {field.name: field.dataType for field in table.fields}
    for field in wanted.fields:
        if field.name not in known:
            raise BadOption("schema()", f"there is no column {field.name[:60]!r}; there are {', '.join(known)}")
        if field.dataType != known[field.name] or not field.nullable:
            kind = known[field.name].simpleString()
            raise BadOption(
                "schema()", f"column {field.name} is {kind}, nullable; leave schema() out, or cast afterwards"
            )


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
