"""The columns of the data source as Spark types. Spark compares types exactly, including nullability."""

from collections.abc import Sequence

from pyspark.sql.types import StructField, StructType

from headgate.spark_udfs.executor.spark_types import spark_type
from headgate.spark_udfs.source.columns import arrow_schema
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.source.record_decoding import RecordDecoding
from headgate.spark_udfs.spec.registry_options import METADATA_URL


def table_schema(decoding: RecordDecoding | None, *, has_headers: bool, registry: str | None) -> StructType:
    """Returns all columns. `registry` contains the registry URLs.

    The metadata of the value column stores them for later decoding.
    """
    metadata = {METADATA_URL: registry} if registry else None
    return StructType(
        [
            StructField(field.name, spark_type(field.type), metadata=metadata if field.name == "value" else None)
            for field in arrow_schema(decoding, has_headers=has_headers)
        ]
    )


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
