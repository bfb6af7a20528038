"""Whole frames decoded: the fast form, by `mapInArrow`, and a topic parted into what is good and what is poison.

Only the payloads and the columns that are kept travel to Python and back, in Arrow batches. What is set for a session
matters as much as what is asked for: `spark_udfs.session_settings`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.extra import need_spark

if TYPE_CHECKING:
    from pyarrow import lib as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.driver.planning import Registry
    from headgate.spark_udfs.executor.decoding import Decoding

HEADERS = "headers"
OUTCOME = ("value", "reason", "schema_id", "raw")
"""The columns of a decoded frame, as the data source makes them too."""
DETAIL = "detail"


class FrameError(ValueError):
    """The frame has not the columns that it should have; the text names them."""


class Parted(NamedTuple):
    good: "DataFrame"
    poison: "DataFrame"


def decode_frame(
    df: "DataFrame",
    subject: str | None = None,
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
    details: bool = False,
    flat: bool = False,
) -> "DataFrame":
    """The frame with its payloads decoded: the columns kept, then `value`, `reason`, `schema_id` and, in the mode
    DEAD_LETTER, `raw`; with `details` also `detail`, a sentence about each bad row.

    `keep` names the other columns that stay, all of them if None; the fewer, the faster. `flat` gives the fields of the
    value as columns of their own in its place, null in bad rows: faster than taking them out of the struct afterwards.
    A column `headers` is looked at for schema ids whether it is kept or not.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding

    choice = choice_of(subject, version, schema_id, schema, fields)
    _check_binary(df, column)
    decoding = plan_decoding(choice, registry, df=df, column=column, on_poison=on_poison, on_new_version=on_new_version)
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
    """`decode_frame` for a decoding that is planned already."""
    from pyspark.sql import types as spark

    _check_binary(df, column)
    kept = [name for name in df.columns if name != column] if keep is None else list(keep)
    made = outcome_schema(decoding, details=details, flat=flat)
    _check_names(df, column, kept, made.names)
    has_headers = _has_headers(df)
    travelling = [*kept, *([HEADERS] if has_headers and HEADERS not in kept else []), column]
    form = FrameDecoding(decoding, len(kept), travelling.index(HEADERS) if has_headers else None, details, flat)
    return df.select(*(quoted(name) for name in travelling)).mapInArrow(
        form, spark.StructType([*(df.schema[name] for name in kept), *made.fields])
    )


def outcome_schema(decoding: "Decoding", *, details: bool = False, flat: bool = False) -> "StructType":
    """The columns that decoding adds. Raises `FrameError` where a value has no fields to take out."""
    from pyspark.sql import types as spark

    from headgate.spark_udfs.executor.spark_types import spark_type

    value = spark_type(decoding.decoder().type)
    if flat and not isinstance(value, spark.StructType):
        raise FrameError(f"only records have fields to make columns of; this schema is {value.simpleString()}")
    fields = list(value.fields) if flat and isinstance(value, spark.StructType) else [spark.StructField("value", value)]
    kinds: dict[str, spark.DataType] = {
        "reason": spark.StringType(),
        "schema_id": spark.LongType(),
        "raw": spark.BinaryType(),
        DETAIL: spark.StringType(),
    }
    names = (*decoding.outcome_names[1:], *((DETAIL,) if details else ()))
    return spark.StructType([*fields, *(spark.StructField(name, kinds[name]) for name in names)])


def decode_topic(
    df: "DataFrame",
    subject: str | None = None,
    *,
    column: str = "value",
    registry: "Registry" = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
    on_new_version: str = "KEEP",
) -> Parted:
    """The good rows, decoded, and the dead letters: `good, poison = decode_topic(df, subject="orders-value")`.

    `good` has the frame's columns, `value` decoded and `schema_id`; `poison` is the dead-letter table
    (`spark_udfs.dead_letter`). Each row of the frame is in exactly one of them. A frame that the data source has
    decoded already is only parted. Both come from one plan: where both are wanted, `decode_frame` and `part`
    around a `persist()` save the second reading.
    """
    need_spark()
    if is_decoded(df):
        return part(df)
    return part(
        decode_frame(
            df, subject, column=column, registry=registry, version=version, schema_id=schema_id, schema=schema,
            fields=fields, on_new_version=on_new_version, details=True,
        )
    )  # fmt: skip


def is_decoded(df: "DataFrame") -> bool:
    """Whether the frame has the columns of an outcome."""
    return set(OUTCOME) <= set(df.columns)


def part(decoded: "DataFrame") -> Parted:
    """A decoded frame, parted by its reasons."""
    from headgate.spark_udfs.dead_letter import dead_letters

    if not is_decoded(decoded):
        raise FrameError(f"a decoded frame has the columns {', '.join(OUTCOME)}; this one {', '.join(decoded.columns)}")
    good = decoded.where("reason IS NULL").drop("reason", "raw", DETAIL)
    return Parted(good, dead_letters(decoded))


class FrameDecoding:
    """What runs in the executors: batches of the travelling columns in, the payloads last; the outcome out."""

    def __init__(self, decoding: "Decoding", kept: int, headers_at: int | None, details: bool, flat: bool) -> None:
        self._decoding = decoding
        self._kept = kept
        self._headers_at = headers_at
        self._details = details
        self._flat = flat

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyarrow import lib as pa

        for batch in batches:
            payloads = batch.column(batch.num_columns - 1)
            headers = None if self._headers_at is None else batch.column(self._headers_at)
            for start, columns in self._decoding.in_pieces(payloads, headers):
                rows = len(columns.reasons)
                value, *others = self._decoding.outcome(
                    columns,
                    payloads.slice(start, rows),
                    None if headers is None else headers.slice(start, rows),
                    details=self._details,
                )
                kept = [batch.column(at).slice(start, rows) for at in range(self._kept)]
                names = [*batch.schema.names[: self._kept], *self._names(value)]
                values = value.flatten() if self._flat else [value]
                yield pa.RecordBatch.from_arrays([*kept, *values, *others], names)

    def _names(self, value: "pa.Array") -> list[str]:
        fields = [field.name for field in value.type] if self._flat else ["value"]
        return [*fields, *self._decoding.outcome_names[1:], *((DETAIL,) if self._details else ())]


def quoted(name: str) -> str:
    """The name of a column as Spark's expressions and SQL take it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _check_binary(df: "DataFrame", column: str) -> None:
    if column not in df.columns:
        raise FrameError(f"there is no column {column}; the frame has {', '.join(df.columns)}")
    kind = df.schema[column].dataType.typeName()
    if kind != "binary":
        raise FrameError(f"the column {column} holds {kind}, not binary payloads")


def _check_names(df: "DataFrame", column: str, kept: Sequence[str], made: Sequence[str]) -> None:
    unknown = [name for name in kept if name not in df.columns]
    if unknown:
        raise FrameError(f"there is no column {', '.join(unknown)} to keep; the frame has {', '.join(df.columns)}")
    lower = [name.lower() for name in kept]
    made = [name.lower() for name in made]
    taken = [name for name in kept if name.lower() in made or lower.count(name.lower()) > 1 or name == column]
    taken += [name for name in made if made.count(name) > 1]
    if taken:
        raise FrameError(
            f"the columns {', '.join(taken)} would stand beside others of the same name; rename them, or leave them "
            "out with keep=[…]"
        )


def _has_headers(df: "DataFrame") -> bool:
    """Whether there is a column of record headers as Spark's Kafka source gives it."""
    if HEADERS not in df.columns:
        return False
    return df.schema[HEADERS].dataType.simpleString() == "array<struct<key:string,value:binary>>"
