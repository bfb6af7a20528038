"""Spark columns of a Protobuf message.

| field | column |
|---|---|
| `bool`, `float`, `double`, `string`, `bytes` | boolean, float, double, string, binary |
| `int32`, `sint32`, `sfixed32` | int |
| `uint32`, `fixed32`, `int64`, `sint64`, `sfixed64` | bigint |
| `uint64`, `fixed64` | decimal(20,0) |
| enum | string: the name, or the number if the schema has no name for it |
| message | struct; `google.protobuf.Timestamp` is a timestamp, and a wrapper (`StringValue`, …) is its value |
| `repeated`, `map` | array, map |

A missing field with presence (a message, `optional`, a member of a `oneof`) is null. Any other missing field has its
Protobuf default. A recursive message has one more level of columns. Deeper levels are bytes.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyarrow import lib as pa

from headgate.spark_udfs.executor.column_converter import COLUMNS_MAX, DEPTH_MAX, ColumnConverter, ConversionError

TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
)
RECURSION_MAX = 1
"""Levels of a recursive message that become columns. Deeper levels are bytes."""
SECONDS_MIN, SECONDS_END = -62_135_596_800, 253_402_300_800
"""Years 1 to 9999: the range of Protobuf and Spark."""


def protobuf_converter(message: Descriptor) -> ColumnConverter:
    return _Converters().message(message, ())


class _Converters:
    def __init__(self) -> None:
        self._columns = 0

    def message(self, message: Descriptor, inside: tuple[str, ...]) -> ColumnConverter:
        self._columns += 1
        if message.full_name == TIMESTAMP:
            return ColumnConverter(pa.timestamp("us", "UTC"), _timestamp)
        if message.full_name in WRAPPERS:
            wrapped = self._single(message.fields_by_name["value"], inside)
            return ColumnConverter(wrapped.arrow_type, lambda value: wrapped.convert(value.value))
        if inside.count(message.full_name) > RECURSION_MAX or len(inside) > DEPTH_MAX or self._columns > COLUMNS_MAX:
            return ColumnConverter(pa.binary(), lambda value: value.SerializeToString(deterministic=True))
        fields = [(field, self._field(field, (*inside, message.full_name))) for field in message.fields]

        def convert(value: Any) -> Any:
            return {
                field.name: converter.convert(getattr(value, field.name))
                if not _has_presence(field) or value.HasField(field.name)
                else None
                for field, converter in fields
            }

        return ColumnConverter(pa.struct([(field.name, converter.arrow_type) for field, converter in fields]), convert)

    def _field(self, field: FieldDescriptor, inside: tuple[str, ...]) -> ColumnConverter:
        if not _is_repeated(field):
            return self._single(field, inside)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._map(field.message_type, inside)
        item = self._single(field, inside)
        return ColumnConverter(pa.list_(item.arrow_type), lambda value: [item.convert(entry) for entry in value])

    def _map(self, entry: Descriptor, inside: tuple[str, ...]) -> ColumnConverter:
        key = self._single(entry.fields_by_name["key"], inside)
        item = self._single(entry.fields_by_name["value"], inside)

        def convert(value: Any) -> Any:
            return [(key.convert(name), item.convert(value[name])) for name in value]

        return ColumnConverter(pa.map_(key.arrow_type, item.arrow_type), convert)

    def _single(self, field: FieldDescriptor, inside: tuple[str, ...]) -> ColumnConverter:
        if field.message_type is not None:
            return self.message(field.message_type, inside)
        if field.enum_type is not None:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return ColumnConverter(pa.string(), lambda value: names.get(value, str(value)))
        if field.type == FieldDescriptor.TYPE_BYTES:
            return ColumnConverter(pa.binary(), _same)
        return ColumnConverter(*_SCALARS[field.cpp_type])


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _has_presence(field: FieldDescriptor) -> bool:
    return bool(field.has_presence)


def _same(value: Any) -> Any:
    return value


def _timestamp(value: Any) -> int:
    if not SECONDS_MIN <= value.seconds < SECONDS_END or not 0 <= value.nanos < 10**9:
        raise ConversionError(f"a timestamp of {value.seconds} seconds and {value.nanos} nanoseconds is out of range")
    micros: int = value.seconds * 1_000_000 + value.nanos // 1000
    return micros


_SCALARS: dict[int, tuple[pa.DataType, Callable[[Any], Any]]] = {
    FieldDescriptor.CPPTYPE_BOOL: (pa.bool_(), _same),
    FieldDescriptor.CPPTYPE_FLOAT: (pa.float32(), _same),
    FieldDescriptor.CPPTYPE_DOUBLE: (pa.float64(), _same),
    FieldDescriptor.CPPTYPE_INT32: (pa.int32(), _same),
    FieldDescriptor.CPPTYPE_UINT32: (pa.int64(), _same),
    FieldDescriptor.CPPTYPE_INT64: (pa.int64(), _same),
    FieldDescriptor.CPPTYPE_UINT64: (pa.decimal128(20, 0), Decimal),
    FieldDescriptor.CPPTYPE_STRING: (pa.string(), _same),
}
