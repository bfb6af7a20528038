"""A schema of JSON or Protobuf as columns: the Arrow type, and how a value of the language becomes one of it.

A value that its column cannot hold without being falsified is a `ConversionError`, so that the row is poison instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyarrow import lib as pa

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
DEPTH_MAX = 8
"""Objects inside objects that become columns; what lies deeper is its JSON text."""
COLUMNS_MAX = 5000
"""Of one schema: definitions that name one another in pairs double with every level."""


class ConversionError(ValueError):
    """A value that its column cannot hold; the text says which."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`convert` takes a value that is not None, and raises `ConversionError`."""

    arrow: pa.DataType
    convert: Callable[[Any], Any]
