"""Convert Python values from Arrow to the values that Spark accepts: Arrow returns a map as a list of pairs."""

from typing import Any

import pyarrow.types as kinds
from pyarrow import lib as pa


def python_value(value: Any, kind: pa.DataType, *, records_as_tuples: bool = False) -> Any:
    """The value with maps as dictionaries. Records are dictionaries, or tuples as in Spark rows."""
    if value is None:
        return None
    if kinds.is_struct(kind):
        fields = {
            field.name: python_value(value[field.name], field.type, records_as_tuples=records_as_tuples)
            for field in kind
        }
        return tuple(fields.values()) if records_as_tuples else fields
    if kinds.is_map(kind):
        item = kind.item_type
        return {key: python_value(entry, item, records_as_tuples=records_as_tuples) for key, entry in value}
    if kinds.is_list(kind):
        return [python_value(entry, kind.value_type, records_as_tuples=records_as_tuples) for entry in value]
    return value
