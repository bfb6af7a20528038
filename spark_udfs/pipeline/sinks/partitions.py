"""Refuse rows whose partition value cannot be the name of a folder. One such row would fail the whole batch.

For sinks with partition folders (`column=value`), including the characters that Spark escapes in their names.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.sinks.writer import REFUSED_ROWS_MAX, RefusedRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

NAME_BYTES_MAX = 255
"""The maximum length of a file name on almost every file system."""
ESCAPED = r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
"""Characters that Spark writes with three characters in the name of a partition folder."""
_REASON = "the partition value cannot be the name of a folder"


def refuse_invalid_partitions(
    rows: "DataFrame", partition_by: Sequence[str], refused: RefusedRows | None, batch: "BatchId"
) -> "tuple[DataFrame, int]":
    """The rows with valid partition values, and the number of refused rows."""
    from pyspark.sql import functions as f

    invalid: Column | None = None
    for name in partition_by:
        if rows.schema[name].dataType.typeName() not in {"string", "binary"}:
            continue
        text = f.col(f"`{name}`").cast("string")
        escaped = f.regexp_replace(text, ESCAPED, "%00")
        is_bad = text.contains("\0") | (f.octet_length(escaped) > NAME_BYTES_MAX - len(name.encode()) - 1)
        invalid = is_bad if invalid is None else invalid | is_bad
    if invalid is None or refused is None:
        return rows, 0
    is_invalid = f.coalesce(invalid, f.lit(False))
    row = f.to_json(f.struct(*(f.col(f"`{name}`") for name in rows.columns)))
    some = rows.where(is_invalid).select(row).limit(REFUSED_ROWS_MAX + 1)
    found = [(str(each[0]), _REASON) for each in some.toLocalIterator()]
    if found:
        refused(found, batch)
    return rows.where(~is_invalid), len(found)
