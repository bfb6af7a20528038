"""The changes that a table needs before rows are written: added and widened columns, and nothing else."""

import pytest
from pyspark.sql import types as t

from headgate.spark_udfs.pipeline.sinks.table_evolution import changes

INT, LONG, FLOAT, DOUBLE, TEXT = t.IntegerType(), t.LongType(), t.FloatType(), t.DoubleType(), t.StringType()


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (struct(id=LONG, who=TEXT), struct(id=LONG, who=TEXT)),
        (struct(id=LONG, who=TEXT), struct(WHO=TEXT)),
        (struct(f=DOUBLE, d=t.DecimalType(9, 2)), struct(f=FLOAT, d=t.DecimalType(5, 2))),
        (struct(a=t.ArrayType(struct(x=LONG))), struct(a=t.ArrayType(struct(x=INT)))),
    ],
)
def test_rows_with_the_same_or_narrower_columns_need_no_change(table: t.StructType, rows: t.StructType) -> None:
    assert changes(table, rows) == []


@pytest.mark.parametrize(
    ("before", "after", "name", "kind"),
    [
        (INT, LONG, "`a`", "bigint"),
        (FLOAT, DOUBLE, "`a`", "double"),
        (t.DecimalType(5, 2), t.DecimalType(9, 2), "`a`", "decimal(9,2)"),
        (t.MapType(INT, TEXT), t.MapType(LONG, TEXT), "`a`.`key`", "bigint"),
        (struct(x=INT), struct(x=LONG), "`a`.`x`", "bigint"),
        (t.ArrayType(INT), t.ArrayType(LONG), "`a`.`element`", "bigint"),
        (t.MapType(TEXT, INT), t.MapType(TEXT, LONG), "`a`.`value`", "bigint"),
    ],
)
def test_wider_columns_are_widened(before: t.DataType, after: t.DataType, name: str, kind: str) -> None:
    (change,) = changes(struct(a=before), struct(a=after))
    assert (change.name, change.after, change.is_widened) == (name, kind, True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (INT, TEXT),
        (TEXT, INT),
        (LONG, DOUBLE),
        (t.DecimalType(5, 2), t.DecimalType(9, 4)),
        (INT, struct(x=INT)),
        (struct(x=INT), INT),
        (t.MapType(TEXT, INT), INT),
        (INT, t.MapType(TEXT, INT)),
        (t.ArrayType(INT), INT),
        (INT, t.ArrayType(INT)),
        (t.DecimalType(9, 2), INT),
        (INT, t.DecimalType(9, 2)),
        (t.MapType(TEXT, INT), t.MapType(INT, INT)),
        (t.ArrayType(INT), t.ArrayType(TEXT)),
        (t.TimestampType(), t.TimestampNTZType()),
    ],
)
def test_other_changes_are_incompatible(before: t.DataType, after: t.DataType) -> None:
    (change,) = changes(struct(a=before), struct(a=after))
    assert change.before is not None
    assert not change.is_widened


def test_new_columns_are_added_also_in_structs() -> None:
    found = changes(struct(id=INT, s=struct(x=INT)), struct(id=INT, note=TEXT, s=struct(x=INT, y=TEXT)))
    assert [(change.path, change.before) for change in found] == [(("note",), None), (("s", "y"), None)]
    assert not any(change.is_widened for change in found)
