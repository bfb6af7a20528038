"""The Spark types of the columns that decoding produces."""

from typing import TYPE_CHECKING

from pyarrow import lib as pa

from headgate.spark_udfs.compatibility import has_arrow_functions
from headgate.spark_udfs.executor.avro_columns import reader_schema
from headgate.spark_udfs.executor.decoding import DETAIL, Decoding
from headgate.spark_udfs.executor.required_fields import with_required
from headgate.spark_udfs.executor.spark_types import spark_type
from headgate.spark_udfs.spec.reader import TypedReader

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


def outcome_type(decoding: Decoding, value: "DataType") -> "StructType":
    """`value`, `reason`, `schema_id` and, in the mode DEAD_LETTER, `raw`."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField("value", value), *outcome_fields(decoding)])


def outcome_fields(decoding: Decoding, *, details: bool = False) -> "list[StructField]":
    """The columns after the value."""
    from pyspark.sql import types as spark

    kinds: dict[str, spark.DataType] = {
        "reason": spark.StringType(),
        "schema_id": spark.LongType(),
        "raw": spark.BinaryType(),
        DETAIL: spark.StringType(),
    }
    return [spark.StructField(name, kinds[name]) for name in outcome_names(decoding, details=details)]


def outcome_names(decoding: Decoding, *, details: bool = False) -> tuple[str, ...]:
    """The names of the columns after the value."""
    return (*decoding.outcome_names[1:], *((DETAIL,) if details else ()))


def spark_value_type(decoding: Decoding) -> "DataType":
    return spark_type(decoding.decoder().type)


def required_value_type(decoding: Decoding) -> pa.DataType:
    """The Arrow type of the values, with the required fields marked as not nullable where PySpark supports it."""
    kind = decoding.decoder().type
    reader = decoding.reader
    if isinstance(reader, TypedReader) or reader.language != "AVRO" or not has_arrow_functions():
        return kind
    return with_required(kind, reader_schema(reader))
