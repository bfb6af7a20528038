"""Convert values of JSON Schema or Protobuf to an Arrow type.

A value that the column cannot represent exactly raises `ConversionError`, so that the row becomes poison.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyarrow import lib as pa

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
DEPTH_MAX = 8
"""Nesting levels that become columns. Deeper values become JSON text or bytes."""
COLUMNS_MAX = 5000
"""Columns of one schema. Definitions that reference each other twice double with every level."""


class ConversionError(ValueError):
    """The column cannot represent a value. The message describes it."""


@dataclass(frozen=True, slots=True)
class ColumnConverter:
    """`convert` takes a value other than None. Raises `ConversionError`."""

    arrow_type: pa.DataType
    convert: Callable[[Any], Any]
