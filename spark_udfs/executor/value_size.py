"""The size of a Python value as columns of an Arrow type. `serdes.avro.column_size` defines the size."""

from typing import Any

import pyarrow.types as kinds
from pyarrow import lib as pa

from headgate.serdes.avro.column_size import CELL_BYTES


def value_bytes(value: Any, kind: pa.DataType) -> int:
    return _cells(kind) + _content(value, kind)


def _cells(kind: pa.DataType) -> int:
    if kinds.is_struct(kind):
        return CELL_BYTES + sum(_cells(field.type) for field in kind)
    if kinds.is_fixed_size_binary(kind) or kinds.is_decimal(kind):
        return max(CELL_BYTES, int(kind.bit_width) // 8)
    return CELL_BYTES


def _content(value: Any, kind: pa.DataType) -> int:
    """The text and the items."""
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    if kinds.is_struct(kind):
        return sum(_content(value.get(field.name), field.type) for field in kind)
    if kinds.is_map(kind):
        entries = list(value.items()) if isinstance(value, dict) else list(value)
        inside = sum(_content(key, kind.key_type) + _content(item, kind.item_type) for key, item in entries)
        return len(entries) * (CELL_BYTES + _cells(kind.item_type)) + int(inside)
    if kinds.is_list(kind):
        return len(value) * _cells(kind.value_type) + sum(_content(item, kind.value_type) for item in value)
    return 0
