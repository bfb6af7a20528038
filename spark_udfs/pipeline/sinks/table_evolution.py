"""Compare the columns of a table with the columns of the rows to write: added, widened, or incompatible. No I/O.

The widenings are those that Delta Lake and Apache Iceberg have in common, and that lose no value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark_udfs.driver.laziness import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WIDER = {"int": "bigint", "float": "double"}


@dataclass(frozen=True, slots=True)
class Change:
    """A difference at a column path. `before` is None for a new column."""

    path: tuple[str, ...]
    before: str | None
    after: str
    is_widened: bool = False

    @property
    def name(self) -> str:
        """The path as SQL."""
        return ".".join(quoted(part) for part in self.path)

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} is {self.before} in the table and {self.after} in the rows"


def changes(table: "StructType", rows: "StructType") -> list[Change]:
    """The changes that the table needs. Columns that only the table has, and narrower columns, need none."""
    return list(_fields(table, rows, ()))


def _fields(table: "StructType", rows: "StructType", path: tuple[str, ...]) -> Iterator[Change]:
    known = {field.name.lower(): field for field in table.fields}
    for field in rows.fields:
        there = known.get(field.name.lower())
        if there is None:
            yield Change((*path, field.name), None, field.dataType.simpleString())
        else:
            yield from _types(there.dataType, field.dataType, (*path, there.name))


def _types(table: "DataType", rows: "DataType", path: tuple[str, ...]) -> Iterator[Change]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(table, StructType) and isinstance(rows, StructType):
        yield from _fields(table, rows, path)
    elif isinstance(table, ArrayType) and isinstance(rows, ArrayType):
        yield from _types(table.elementType, rows.elementType, (*path, "element"))
    elif isinstance(table, MapType) and isinstance(rows, MapType):
        yield from _types(table.keyType, rows.keyType, (*path, "key"))
        yield from _types(table.valueType, rows.valueType, (*path, "value"))
    else:
        before, after = table.simpleString(), rows.simpleString()
        if before != after and not _is_wider(rows, table):
            yield Change(path, before, after, _is_wider(table, rows))


def _is_wider(narrow: "DataType", wide: "DataType") -> bool:
    from pyspark.sql.types import DecimalType

    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        return narrow.scale == wide.scale and narrow.precision <= wide.precision
    return _WIDER.get(narrow.simpleString()) == wide.simpleString()
