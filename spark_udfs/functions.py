"""Column functions: `from_registry_avro`, `to_registry_avro`, `schema_id`, `poison_reason`.

They work on any DataFrame with a binary column: Spark's Kafka source, Parquet, Delta. To decode a whole DataFrame,
`spark_udfs.frame` is faster, because Spark does not join the results to their rows. The driver fetches the schemas when
the column is created. `spark_udfs.spec.policy` explains schema evolution. The functions change nothing in the
session. `spark_udfs.driver.session_settings` lists settings that make them faster.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.compatibility import need_arrow_functions
from headgate.spark_udfs.extra import need_spark

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headgate.spark_udfs.driver.planning import Registry, Subjects
    from headgate.spark_udfs.executor.decoding import Decoding


def from_registry_avro(
    column: "Column | str",
    subject: "Subjects" = None,
    *,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_poison: str = "DEAD_LETTER",
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> "Column":
    """Decode payloads to a struct of `value`, `reason` (null if good), `schema_id` and, in DEAD_LETTER, `raw`.

    The reader schema is the latest version of the subject, a `version`, a `schema_id`, or an explicit `schema`.
    If `subject` is a list, the value has one field per subject. `fields` selects some fields (`["id", "items.price"]`),
    which is faster. `on_poison` is the result of a bad row: reason and raw bytes (DEAD_LETTER), only the reason (NULL),
    or a failed task (FAIL). `on_registry_down` is the reaction to a registry outage: WAIT, FAIL or DEAD_LETTER. JSON
    Schema and Protobuf payloads are decoded row by row.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding

    choice = choice_of(subject, version, schema_id, schema, fields)
    decoding = plan_decoding(
        choice, registry, on_poison=on_poison, on_new_version=on_new_version, on_registry_down=on_registry_down
    )
    called: Column = decoding_function(decoding)(column)
    return called


def poison_reason(
    column: "Column | str",
    subject: "Subjects" = None,
    *,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> "Column":
    """The reason why a payload cannot be decoded, or null. Returns nothing else, so it is cheaper than the value."""
    need_spark()
    from pyspark.sql.types import StringType

    from headgate.spark_udfs.driver.arrow_udf import arrow_function
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
    from headgate.spark_udfs.executor.arrow_functions import DecodeReason

    choice = choice_of(subject, version, schema_id, schema)
    decoding = plan_decoding(
        choice, registry, on_poison="NULL", on_new_version=on_new_version, on_registry_down=on_registry_down
    )
    called: Column = arrow_function(DecodeReason(decoding), StringType())(column)
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
    """Encode a struct column to payloads of a registered schema.

    The driver registers `schema` under the subject, or looks it up with `register=False`. An incompatible schema fails
    there with the message of the registry. Without `schema`, the latest version, a `version` or a `schema_id` is used.
    A row that the schema cannot represent fails the task (FAIL, the default), becomes null (NULL), or gets a reason
    (DEAD_LETTER: the column is a struct of `value` and `reason`). A null struct becomes a null payload. Timestamps are
    truncated to the precision of the schema. Before PySpark 4.1, use `encode_frame`.
    """
    need_spark()
    need_arrow_functions("to_registry_avro", "encode_frame")
    from headgate.spark_udfs.driver.arrow_udf import arrow_function
    from headgate.spark_udfs.driver.planning import plan_encoding
    from headgate.spark_udfs.driver.writer_choice import WriterChoice
    from headgate.spark_udfs.executor.arrow_functions import EncodeColumn

    choice = WriterChoice(subject, schema, version, schema_id, register, normalize)
    encoding, kind = plan_encoding(choice, registry, on_poison)
    called: Column = arrow_function(EncodeColumn(encoding), kind)(column)
    return called


def schema_id(column: "Column | str") -> "Column":
    """The schema id of a payload, or null if it is not framed. A Spark expression without Python and registry.

    The type is `bigint`, because a foreign payload can contain any 32 bits.
    """
    need_spark()
    from pyspark.sql import functions as f

    payload = f.col(column) if isinstance(column, str) else column
    framed = (f.octet_length(payload) >= 5) & (f.substring(payload, 1, 1) == f.lit(b"\x00"))
    return f.when(framed, f.conv(f.hex(f.substring(payload, 2, 4)), 16, 10).cast("bigint"))


def decoding_function(decoding: "Decoding") -> Any:
    """The column function of a planned decoding."""
    from headgate.spark_udfs.driver.arrow_udf import arrow_function
    from headgate.spark_udfs.driver.outcome_schema import outcome_type, required_value_type
    from headgate.spark_udfs.executor.arrow_functions import DecodeColumn
    from headgate.spark_udfs.executor.spark_types import spark_type

    value = required_value_type(decoding)
    return arrow_function(DecodeColumn(decoding, value), outcome_type(decoding, spark_type(value)))
