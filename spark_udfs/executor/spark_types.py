"""Map Arrow types of the decoder to Spark types, and cast columns whose type Spark does not support.

| the decoder's Arrow type | Spark |
|---|---|
| bool, int32, int64, float32, float64 | boolean, int, bigint, float, double |
| string, binary, date32 | string, binary, date |
| fixed_size_binary | binary |
| decimal128 | decimal |
| decimal256 (39 to 76 digits) | string in decimal notation, without loss |
| time32[ms], time64[us] | int, bigint: milliseconds, microseconds since midnight, as in `from_avro` |
| timestamp with a time zone; without | timestamp; timestamp_ntz. Nanoseconds are rounded down to microseconds |
| uint32 (the parts of a duration) | bigint |
| null | void |
| list, map, struct | array, map, struct. Duplicate keys of a map are kept; Python sees the last |

Most columns need no cast. All functions work on whole columns.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow.types as kinds
from pyarrow import lib as pa

from headgate.serdes.columnar.memory import as_arrow

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

NANOSECONDS_PER_MICROSECOND = 1000


def spark_arrow_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type that Spark accepts for a column of this type."""
    if kinds.is_struct(kind):
        return pa.struct([pa.field(field.name, spark_arrow_type(field.type), field.nullable) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(spark_arrow_type(kind.key_type), spark_arrow_type(kind.item_type))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return pa.list_(pa.field(kind.value_field.name, spark_arrow_type(kind.value_type), kind.value_field.nullable))
    if kinds.is_dictionary(kind):
        return spark_arrow_type(kind.value_type)
    if kinds.is_fixed_size_binary(kind) or kinds.is_large_binary(kind):
        return pa.binary()
    if kinds.is_large_string(kind) or kinds.is_decimal256(kind):
        return pa.string()
    if kinds.is_time32(kind):
        return pa.int32()
    if kinds.is_time64(kind) or kinds.is_uint32(kind):
        return pa.int64()
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind


def to_spark(array: pa.Array, wanted: pa.DataType | None = None) -> pa.Array:
    """Cast a column to the type that Spark accepts. Pass `wanted` if that type is known: computing it costs as much as
    decoding a few hundred rows."""
    return _converted(array, spark_arrow_type(array.type) if wanted is None else wanted)


def _converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    kind = array.type
    if kind == wanted:
        return array
    if kinds.is_struct(kind):
        children = [_converted(array.field(at), wanted.field(at).type) for at in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
    if kinds.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [_converted(array.keys, wanted.key_type), _converted(array.items, wanted.item_type)],
            fields=[wanted.key_field, wanted.item_field],
        )
        return _with_items(array, wanted, entries)
    if kinds.is_list(kind):
        return _with_items(array, wanted, _converted(array.values, wanted.value_type))
    if kinds.is_time32(kind) or kinds.is_time64(kind):
        return array.view(wanted)
    if kinds.is_timestamp(kind) and kind.unit == "ns":
        return _microseconds(array, wanted)
    return array.cast(wanted)


def _with_items(array: pa.Array, wanted: pa.DataType, items: pa.Array) -> pa.Array:
    """The same lists with other items."""
    return pa.Array.from_buffers(
        wanted, len(array), array.buffers()[:2], array.null_count, array.offset, children=[items]
    )


def _microseconds(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return _divided(array, NANOSECONDS_PER_MICROSECOND).view(wanted)


def _divided(array: pa.Array, by: int) -> pa.Array:
    """int64, rounded down. Arrow's cast would round up before 1970."""
    numbers = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return as_arrow(np.floor_divide(numbers, by), mask)


def truncate_timestamps(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Truncate timestamps to the precision of the schema, as Confluent's serializers do.

    Arrow rejects a cast that loses precision, for the whole column. Values inside a null struct become null, because
    Arrow would cast them too. Other columns stay unchanged.
    """
    kind = array.type
    if kinds.is_timestamp(kind) and kinds.is_timestamp(wanted) and (kind.unit, wanted.unit) == ("us", "ms"):
        return _divided(array, 1000).view(pa.timestamp("ms", kind.tz))
    if kinds.is_struct(kind) and kinds.is_struct(wanted):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        places = [wanted.get_field_index(field.name) for field in fields]
        given = array.flatten() if array.null_count else [array.field(at) for at in range(kind.num_fields)]
        children = [
            child if place < 0 else truncate_timestamps(child, wanted.field(place).type)
            for child, place in zip(given, places, strict=True)
        ]
        if not array.null_count and all(
            child.type == field.type for child, field in zip(children, fields, strict=True)
        ):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, names=[field.name for field in fields], mask=mask)
    if kinds.is_map(kind) and kinds.is_map(wanted):
        items = truncate_timestamps(array.items, wanted.item_type)
        if items.type == kind.item_type:
            return array
        cut = pa.map_(kind.key_type, items.type)
        entries = pa.StructArray.from_arrays([array.keys, items], fields=[cut.key_field, cut.item_field])
        return _with_items(array, cut, entries)
    if kinds.is_list(kind) and kinds.is_list(wanted):
        values = truncate_timestamps(array.values, wanted.value_type)
        return array if values.type == kind.value_type else _with_items(array, pa.list_(values.type), values)
    return array


def spark_type(kind: pa.DataType) -> "DataType":
    """The Spark type of an Arrow type."""
    from pyspark.sql import types as spark

    kind = spark_arrow_type(kind)
    if kinds.is_struct(kind):
        return spark.StructType(
            [spark.StructField(field.name, spark_type(field.type), field.nullable) for field in kind]
        )
    if kinds.is_map(kind):
        return spark.MapType(spark_type(kind.key_type), spark_type(kind.item_type), True)
    if kinds.is_list(kind):
        return spark.ArrayType(spark_type(kind.value_type), kind.value_field.nullable)
    if kinds.is_decimal128(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if kinds.is_timestamp(kind):
        return spark.TimestampType() if kind.tz is not None else spark.TimestampNTZType()
    scalars: dict[pa.DataType, Any] = {
        pa.null(): spark.NullType,
        pa.bool_(): spark.BooleanType,
        pa.int8(): spark.ByteType,
        pa.int16(): spark.ShortType,
        pa.int32(): spark.IntegerType,
        pa.int64(): spark.LongType,
        pa.float32(): spark.FloatType,
        pa.float64(): spark.DoubleType,
        pa.string(): spark.StringType,
        pa.binary(): spark.BinaryType,
        pa.date32(): spark.DateType,
    }
    if kind not in scalars:
        raise TypeError(f"Spark has no type for the Arrow type {kind}")
    return cast("DataType", scalars[kind]())
