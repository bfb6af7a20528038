"""Columns of registered payloads: `from_registry_avro`, `to_registry_avro`, `schema_id`, `poison_reason`.

They work on any frame with a binary column: Spark's Kafka source, Parquet, Delta. Where a whole frame is decoded,
`spark_udfs.frame` is faster: a function's result is joined to its row again by Spark. Schemas are fetched on the
driver, when the column is made; see `spark_udfs.policy` for what evolution means. Making a column also turns one of the
session's settings off that would double its cost, where nobody has set it: `spark_udfs.session_settings`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.driver.session_settings import feed_functions_by_rows
from headgate.spark_udfs.extra import MissingExtra, need_spark

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from headgate.spark_udfs.driver.planning import Registry
    from headgate.spark_udfs.executor.decoding import Decoding
    from headgate.spark_udfs.executor.encoding import Encoding


def from_registry_avro(
    column: "Column | str",
    subject: str | None = None,
    *,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_poison: str = "DEAD_LETTER",
    on_new_version: str = "KEEP",
) -> "Column":
    """Payloads decoded: a struct of `value`, `reason` (null where good), `schema_id` and, in DEAD_LETTER, `raw`.

    The columns are those of the latest version of the subject, of a `version`, of a `schema_id`, or of a `schema` in
    hand; `fields` keeps some of them (`["id", "customer.name"]`), which is faster. `on_poison` says what a bad row
    becomes: a reason with its raw bytes (DEAD_LETTER), a reason (NULL), or a failed task (FAIL). JSON Schema and
    Protobuf are decoded too, row by row.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding

    choice = choice_of(subject, version, schema_id, schema, fields)
    decoding = plan_decoding(choice, registry, on_poison=on_poison, on_new_version=on_new_version)
    called: Column = decoding_function(decoding)(column)
    return called


def poison_reason(
    column: "Column | str",
    subject: str | None = None,
    *,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    on_new_version: str = "KEEP",
) -> "Column":
    """Why a payload cannot be decoded, or null where it can be. Decodes all of it, and sends nothing else back."""
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding

    choice = choice_of(subject, version, schema_id, schema)
    decoding = plan_decoding(choice, registry, on_poison="NULL", on_new_version=on_new_version)
    called: Column = reason_function(decoding)(column)
    return called


def to_registry_avro(
    column: "Column | str",
    subject: str,
    *,
    registry: "Registry" = None,
    schema: str | SchemaDefinition | None = None,
    version: int | None = None,
    schema_id: int | None = None,
    register: bool = True,
    normalize: bool = False,
    on_poison: str = "FAIL",
) -> "Column":
    """A struct column as payloads of a registered schema.

    `schema` is registered under the subject on the driver (or, with `register=False`, looked up), and refused there
    with the registry's words where it is not compatible; without one, the latest version, a `version` or a `schema_id`
    is taken. A row that the schema cannot hold fails the task (FAIL, the default here: it is your own data), becomes
    null (NULL), or has its reason beside it: in the mode DEAD_LETTER the column is a struct of `value` and `reason`.
    A null struct becomes a null payload. Times finer than the schema holds are cut off.
    """
    need_spark()
    from pyspark.sql import types as spark

    from headgate.spark_udfs.driver.registry_resolution import resolve
    from headgate.spark_udfs.driver.writer_choice import WriterChoice
    from headgate.spark_udfs.executor.encoding import Encoding
    from headgate.spark_udfs.spec.policy import OnPoison

    if not has_arrow_functions():
        raise MissingExtra("to_registry_avro needs PySpark 4.1, the first whose functions take Arrow arrays")
    mode = OnPoison.for_columns(on_poison)
    choice = WriterChoice(subject, schema, version, schema_id, register, normalize)
    text, found = choice.resolve(resolve(registry))
    made: spark.DataType = spark.BinaryType()
    if mode is OnPoison.DEAD_LETTER:
        made = spark.StructType().add("value", spark.BinaryType()).add("reason", spark.StringType())
    called: Column = arrow_function(ColumnEncoding(Encoding(text, found, mode)), made)(column)
    return called


def schema_id(column: "Column | str") -> "Column":
    """The schema id in a payload's frame, null where it has none. Pure Spark: no Python runs, no registry is asked.

    A `bigint`: what is not from a registry can hold any 32 bits.
    """
    need_spark()
    from pyspark.sql import functions as f

    payload = f.col(column) if isinstance(column, str) else column
    framed = (f.octet_length(payload) >= 5) & (f.substring(payload, 1, 1) == f.lit(b"\x00"))
    return f.when(framed, f.conv(f.hex(f.substring(payload, 2, 4)), 16, 10).cast("bigint"))


def decoding_function(decoding: "Decoding") -> Any:
    """A function of one column, for a decoding that is planned already: what SQL registers by name."""
    from pyspark.sql import types as spark

    from headgate.spark_udfs.executor.spark_types import spark_type

    value = value_type(decoding)
    kinds: dict[str, spark.DataType] = {
        "value": spark_type(value),
        "reason": spark.StringType(),
        "schema_id": spark.LongType(),
        "raw": spark.BinaryType(),
    }
    made = spark.StructType([spark.StructField(name, kinds[name], True) for name in decoding.outcome_names])
    return arrow_function(ColumnDecoding(decoding, value), made)


def value_type(decoding: "Decoding") -> "pa.DataType":
    """The Arrow type of the values in a function's result. It says which fields are never null where that is known."""
    kind = decoding.decoder().type
    if decoding.reader.language != "AVRO" or not has_arrow_functions():
        return kind
    from headgate.spark_udfs.executor.avro_columns import reader_schema
    from headgate.spark_udfs.executor.required_fields import with_required

    return with_required(kind, reader_schema(decoding.reader))


def reason_function(decoding: "Decoding") -> Any:
    from pyspark.sql.types import StringType

    return arrow_function(ReasonDecoding(decoding), StringType())


class ColumnDecoding:
    """What runs in the executors: payloads in, structs out, in pieces where one would be too large."""

    def __init__(self, decoding: "Decoding", value: "pa.DataType") -> None:
        self._decoding = decoding
        self._value = value

    def __call__(self, arrays: "Iterator[pa.Array]") -> "Iterator[pa.Array]":
        from pyarrow import lib as pa

        from headgate.spark_udfs.executor.required_fields import retyped

        for payloads in arrays:
            for start, columns in self._decoding.in_pieces(payloads):
                taken = payloads.slice(start, len(columns.reasons))
                value, *others = self._decoding.outcome(columns, taken)
                outcome = [retyped(value, self._value), *others]
                yield pa.StructArray.from_arrays(outcome, names=list(self._decoding.outcome_names))


class ReasonDecoding:
    def __init__(self, decoding: "Decoding") -> None:
        self._decoding = decoding

    def __call__(self, arrays: "Iterator[pa.Array]") -> "Iterator[pa.Array]":
        for payloads in arrays:
            for _, columns in self._decoding.in_pieces(payloads):
                yield columns.reasons


class ColumnEncoding:
    """What runs in the executors: structs in, payloads out, with their reasons in the mode DEAD_LETTER."""

    def __init__(self, encoding: "Encoding") -> None:
        self._encoding = encoding

    def __call__(self, arrays: "Iterator[pa.Array]") -> "Iterator[pa.Array]":
        from pyarrow import lib as pa

        for values in arrays:
            for payloads, reasons in self._encoding.encode(values):
                if self._encoding.on_poison == "DEAD_LETTER":
                    yield pa.StructArray.from_arrays([payloads, reasons], names=["value", "reason"])
                else:
                    yield payloads


def has_arrow_functions() -> bool:
    """Whether PySpark knows functions on Arrow arrays: since 4.1."""
    from pyspark.sql.pandas import functions

    return hasattr(functions, "arrow_udf")


def arrow_function(function: "Callable[[Iterator[pa.Array]], Iterator[pa.Array]]", kind: "DataType") -> Any:
    """A function from Arrow arrays to Arrow arrays; PySpark 4.0 has none, so there it goes through pandas."""
    from pyarrow import lib as pa

    if not has_arrow_functions():
        from headgate.spark_udfs.executor.pandas_bridge import pandas_function

        return pandas_function(function, kind)
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.functions import arrow_udf

    feed_functions_by_rows(SparkSession.getActiveSession())

    # PySpark reads from the annotations which kind of function this is.
    def call(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from function(arrays)

    make: Any = arrow_udf
    return make(call, returnType=kind)
