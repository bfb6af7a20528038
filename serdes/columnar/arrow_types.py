"""The Arrow types of Avro's scalar types, and the value ranges of logical types."""

from typing import Final

from pyarrow import lib as pa

from headgate.serdes.avro.column_size import DECIMAL_128_PRECISION_MAX, DECIMAL_COLUMN_PRECISION_MAX
from headgate.serdes.avro.logical import (
    DATE_DAYS_MAX,
    DATE_DAYS_MIN,
    DAY_SECONDS,
    TIMESTAMP_SECONDS_END,
    TIMESTAMP_SECONDS_MIN,
)
from headgate.serdes.avro.schema import Fixed, Logical, Primitive

ARROW_PRECISION_MAX: Final = DECIMAL_COLUMN_PRECISION_MAX
"""Digits of decimal256. A decimal with more digits stays binary."""
DURATION_PARTS: Final = ("months", "days", "milliseconds")

_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
    "duration": pa.struct([(name, pa.uint32()) for name in DURATION_PARTS]),
}

RANGES: dict[str, tuple[int, int]] = {
    "date": (DATE_DAYS_MIN, DATE_DAYS_MAX + 1),
    "time-millis": (0, DAY_SECONDS * 1_000),
    "time-micros": (0, DAY_SECONDS * 1_000_000),
} | {
    f"{kind}-{unit}": (TIMESTAMP_SECONDS_MIN * per_second, TIMESTAMP_SECONDS_END * per_second)
    for kind in ("timestamp", "local-timestamp")
    for unit, per_second in (("millis", 1_000), ("micros", 1_000_000))
}
"""The lowest value and the end: years 1 to 9999, and one day. Nanoseconds cannot exceed these."""


def scalar_type(schema: Primitive | Fixed) -> pa.DataType:
    logical = schema.logical
    if is_arrow_decimal(logical):
        assert logical is not None
        make = pa.decimal128 if logical.precision <= DECIMAL_128_PRECISION_MAX else pa.decimal256
        return make(logical.precision, logical.scale)
    if logical is not None and logical.name in _LOGICAL:
        return _LOGICAL[logical.name]
    return _PLAIN[schema.kind] if isinstance(schema, Primitive) else pa.binary(schema.size)


def is_arrow_decimal(logical: Logical | None) -> bool:
    return logical is not None and logical.name == "decimal" and logical.precision <= ARROW_PRECISION_MAX
