"""Decode whole DataFrames with `mapInArrow`, and split them into good rows and dead letters.

Only the payloads and the kept columns travel to Python and back, in Arrow batches. The session settings affect the
speed (`spark_udfs.driver.session_settings`).

`mapInArrow` needs the types of all columns. With Spark Connect they are not known without a call to the server, so
`spark_udfs.driver.lazy_frame` decodes with a column function instead. No function of this module triggers analysis.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.driver.laziness import is_lazy, quoted
from headgate.spark_udfs.extra import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from headgate.spark_udfs.driver.planning import Registry, Subjects
    from headgate.spark_udfs.executor.decoding import Decoding

HEADERS = "headers"
OUTCOME = ("value", "reason", "schema_id", "raw")
"""The columns of a decoded DataFrame, also of the data source."""


class FrameError(ValueError):
    """The DataFrame lacks required columns. The message lists them."""


class SplitFrame(NamedTuple):
    good: "DataFrame"
    poison: "DataFrame"


class TypedFrames(NamedTuple):
    good: "dict[str, DataFrame]"
    """The good rows of each subject."""
    poison: "DataFrame"


def decode_frame(
    df: "DataFrame",
    subject: "Subjects" = None,
    *,
    column: str = "value",
    keep: Sequence[str] | None = None,
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_poison: str = "DEAD_LETTER",
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
    details: bool = False,
    flat: bool = False,
) -> "DataFrame":
    """Decode the payloads of a DataFrame.

    The result has the kept columns, `value`, `reason`, `schema_id`, in the mode DEAD_LETTER `raw`, and with `details`
    the column `detail`, which explains each bad row. `keep` lists the other columns to keep, all by default; fewer are
    faster. If `subject` is a list, the value has one field per subject. `flat` returns the fields of the value as
    columns, which is faster than a later `select("value.*")`. Schema ids in a column `headers` are used even if it
    is not kept.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding

    choice = choice_of(subject, version, schema_id, schema, fields)
    decoding = plan_decoding(
        choice, registry, df=df, column=column, on_poison=on_poison, on_new_version=on_new_version,
        on_registry_down=on_registry_down,
    )  # fmt: skip
    return apply_decoding(df, decoding, column=column, keep=keep, details=details, flat=flat)


def apply_decoding(
    df: "DataFrame",
    decoding: "Decoding",
    *,
    column: str = "value",
    keep: Sequence[str] | None = None,
    details: bool = False,
    flat: bool = False,
) -> "DataFrame":
    """`decode_frame` for a planned decoding."""
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.driver.lazy_frame import decode_lazily
    from headgate.spark_udfs.executor.arrow_functions import DecodeFrame

    if is_lazy(df):
        _outcome_fields(decoding, details=details, flat=flat)
        return decode_lazily(df, decoding, column=column, keep=keep, details=details, flat=flat)
    _check_binary(df, column)
    kept = [name for name in df.columns if name != column] if keep is None else list(keep)
    added = _outcome_fields(decoding, details=details, flat=flat)
    _check_names(df, column, kept, [field.name for field in added])
    has_headers = _has_headers(df)
    inputs = [*kept, *([HEADERS] if has_headers and HEADERS not in kept else []), column]
    decode = DecodeFrame(decoding, len(kept), inputs.index(HEADERS) if has_headers else None, details, flat)
    return df.select(*(quoted(name) for name in inputs)).mapInArrow(
        decode, StructType([*(df.schema[name] for name in kept), *added])
    )


def _outcome_fields(decoding: "Decoding", *, details: bool, flat: bool) -> "list[StructField]":
    from pyspark.sql.types import StructField, StructType

    from headgate.spark_udfs.driver.outcome_schema import outcome_fields, spark_value_type

    value = spark_value_type(decoding)
    if not flat:
        return [StructField("value", value), *outcome_fields(decoding, details=details)]
    if not isinstance(value, StructType):
        raise FrameError(f"flat=True needs a record schema; this schema is {value.simpleString()}")
    return [*value.fields, *outcome_fields(decoding, details=details)]


def decode_topic(
    df: "DataFrame",
    subject: "Subjects" = None,
    *,
    column: str = "value",
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> SplitFrame:
    """Split a topic into good rows and dead letters: `good, poison = decode_topic(df, subject="orders-value")`.

    `good` has the columns of the DataFrame with the decoded `value`, and `schema_id`. `poison` is the dead-letter table
    (`spark_udfs.dead_letter`). Each row is in exactly one of them. A DataFrame that the data source has decoded is only
    split; with Spark Connect, omit the subject then. Both results share one lazy plan: to use both, call
    `decode_frame`, `persist()` and `part`, which read once.
    """
    need_spark()
    is_chosen = any(given is not None for given in (subject, schema, schema_id))
    if (not is_chosen) if is_lazy(df) else is_decoded(df):
        return part(df)
    return part(
        decode_frame(
            df, subject, column=column, registry=registry, version=version, schema_id=schema_id, schema=schema,
            fields=fields, on_new_version=on_new_version, on_registry_down=on_registry_down, details=True,
        )
    )  # fmt: skip


def decode_types(
    df: "DataFrame",
    subjects: Sequence[str] | None = None,
    *,
    column: str = "value",
    registry: "Registry" = None,
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> TypedFrames:
    """Split rows of several subjects: one DataFrame per subject, and the dead letters. Each row is in exactly one.

    Use it for topics with several record types (RecordName and TopicRecordName strategies), and for several topics. A
    DataFrame that the data source has decoded is only split. Then the subjects can be omitted, except with Spark
    Connect, where they select the DataFrames.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.driver.lazy_frame import with_field

    if is_lazy(df) and subjects is None:
        raise FrameError("with Spark Connect, decode_types needs the list of subjects")
    if not is_lazy(df) and is_decoded(df):
        kind = df.schema["value"].dataType
        names = kind.names if isinstance(kind, StructType) else []
        wanted = names if subjects is None else list(subjects)
        if not set(wanted) <= set(names):
            raise FrameError(f"the value has the fields {', '.join(names)}, not {', '.join(wanted)}")
        good, poison = part(df)
    else:
        wanted = list(subjects or ())
        good, poison = decode_topic(
            df, wanted, column=column, registry=registry, on_new_version=on_new_version,
            on_registry_down=on_registry_down,
        )  # fmt: skip
    of_type = {name: good.where(f.col(f"value.{quoted(name)}").isNotNull()) for name in wanted}
    return TypedFrames({name: with_field(frame, "value", name) for name, frame in of_type.items()}, poison)


def is_decoded(df: "DataFrame") -> bool:
    """Whether the DataFrame has the columns of a decoded one."""
    return set(OUTCOME) <= set(df.columns)


def part(decoded: "DataFrame") -> SplitFrame:
    """Split a decoded DataFrame by its reasons."""
    from headgate.spark_udfs.dead_letter import KEY_RAW, PART, dead_letters
    from headgate.spark_udfs.driver.lazy_frame import without

    if not is_lazy(decoded) and not is_decoded(decoded):
        raise FrameError(
            f"a decoded DataFrame has the columns {', '.join(OUTCOME)}; this one has {', '.join(decoded.columns)}"
        )
    good = decoded.where("reason IS NULL")
    removed = ("reason", "raw", "detail", PART, KEY_RAW)
    return SplitFrame(without(good, *removed) if is_lazy(decoded) else good.drop(*removed), dead_letters(decoded))


def poison_counts(rows: "DataFrame") -> "DataFrame":
    """The number of rows per reason, as columns `reason` and `rows`. Lazy, like any aggregation.

    Takes a decoded DataFrame, where a null reason counts the good rows, or the dead letters.
    """
    from pyspark.sql import functions as f

    return rows.groupBy("reason").agg(f.count("*").alias("rows"))


def encode_frame(
    df: "DataFrame",
    subject: str,
    *,
    column: str = "value",
    registry: "Registry" = None,
    schema: str | SchemaDefinition | None = None,
    version: int | None = None,
    schema_id: int | None = None,
    register: bool = True,
    normalize: bool = False,
    on_poison: str = "FAIL",
) -> "DataFrame":
    """Encode a struct column of a DataFrame, with the arguments of `to_registry_avro`.

    The payloads replace the column. Works with every PySpark version, because it uses `mapInArrow`.
    """
    need_spark()
    from pyspark.sql.types import StructField, StructType

    from headgate.spark_udfs.driver.planning import plan_encoding
    from headgate.spark_udfs.driver.writer_choice import WriterChoice
    from headgate.spark_udfs.executor.arrow_functions import EncodeFrame

    if column not in df.columns:
        raise FrameError(f"there is no column {column}; the DataFrame has {', '.join(df.columns)}")
    choice = WriterChoice(subject, schema, version, schema_id, register, normalize)
    encoding, kind = plan_encoding(choice, registry, on_poison)
    fields = [StructField(each.name, kind) if each.name == column else each for each in df.schema.fields]
    return df.mapInArrow(EncodeFrame(encoding, df.columns.index(column)), StructType(fields))


def _check_binary(df: "DataFrame", column: str) -> None:
    if column not in df.columns:
        raise FrameError(f"there is no column {column}; the DataFrame has {', '.join(df.columns)}")
    kind = df.schema[column].dataType.typeName()
    if kind != "binary":
        raise FrameError(f"the column {column} is {kind}, and must be binary")


def _check_names(df: "DataFrame", column: str, kept: Sequence[str], added: Sequence[str]) -> None:
    unknown = [name for name in kept if name not in df.columns]
    if unknown:
        raise FrameError(f"there is no column {', '.join(unknown)} to keep; the DataFrame has {', '.join(df.columns)}")
    lower = [name.lower() for name in kept]
    added = [name.lower() for name in added]
    taken = [name for name in kept if name.lower() in added or lower.count(name.lower()) > 1 or name == column]
    taken += [name for name in added if added.count(name) > 1]
    if taken:
        raise FrameError(
            f"the result would have duplicate columns: {', '.join(taken)}; rename them, or exclude them with keep=[…]"
        )


def _has_headers(df: "DataFrame") -> bool:
    """Whether there is a column of record headers, as in Spark's Kafka source."""
    if HEADERS not in df.columns:
        return False
    return df.schema[HEADERS].dataType.simpleString() == "array<struct<key:string,value:binary>>"
