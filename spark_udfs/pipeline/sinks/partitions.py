"""Rows whose partition cannot be the name of a folder, put aside: one of them would fail the whole batch.

For the sinks whose partitions are folders (`column=value`), with the characters that Spark escapes in them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.spark_udfs.pipeline.sinks.writer import REFUSED_AT_ONCE_MAX, RefusedRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

NAME_BYTES_MAX = 255
"""Of a file's name, on nearly every disk."""
ESCAPED = r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]"""
"""What Spark writes with three characters in the name of a partition's folder."""
_REASON = "the partition's value cannot be the name of a folder"


def parted(
    rows: "DataFrame", partition_by: Sequence[str], refused: RefusedRows | None, batch: "BatchId"
) -> "tuple[DataFrame, int]":
    """The rows that have a place, and how many went to `refused`."""
    from pyspark.sql import functions as f

    bad: Column | None = None
    for name in partition_by:
        if rows.schema[name].dataType.typeName() not in {"string", "binary"}:
            continue
        text = f.col(f"`{name}`").cast("string")
        escaped = f.regexp_replace(text, ESCAPED, "%00")
        too_odd = text.contains("\0") | (f.octet_length(escaped) > NAME_BYTES_MAX - len(name.encode()) - 1)
        bad = too_odd if bad is None else bad | too_odd
    if bad is None or refused is None:
        return rows, 0
    odd = f.coalesce(bad, f.lit(False))
    row = f.to_json(f.struct(*(f.col(f"`{name}`") for name in rows.columns)))
    some = rows.where(odd).select(row).limit(REFUSED_AT_ONCE_MAX + 1)
    found = [(str(each[0]), _REASON) for each in some.toLocalIterator()]
    if found:
        refused(found, batch)
    return rows.where(~odd), len(found)
