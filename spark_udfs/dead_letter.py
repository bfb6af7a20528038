"""Dead letters in Spark: poison as a table, and as records for a dead-letter topic, in Spark expressions.

The first columns of the table are fixed: topic, partition, offset, timestamp, key, headers, raw, reason, detail,
schema_id. They are null if the source does not have them. All other columns of the DataFrame follow, so that the
original row can be found. The record headers are those of `serdes.dead_letter`, which every tool for dead letters uses.
"""

from typing import TYPE_CHECKING

from headgate.serdes import dead_letter as layout
from headgate.spark_udfs.driver.laziness import is_lazy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMNS: dict[str, str] = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "raw": "binary",
    "reason": "string",
    "detail": "string",
    "schema_id": "bigint",
}
"""The fixed columns and their types."""

KEY_RAW = "key_raw"
"""The key bytes of a bad row, if the data source decoded the keys. `key` of the table."""
PART = "part"
"""The bad part of a record: `key` or `value`. Without this column, it is the value."""

_REMOVED = ("value", "timestampType", KEY_RAW)
"""Columns of a decoded DataFrame that contain no further information about a bad row."""


def dead_letters(decoded: "DataFrame") -> "DataFrame":
    """The dead-letter table: the bad rows of a decoded DataFrame."""
    from pyspark.sql import functions as f

    from headgate.spark_udfs.driver.lazy_frame import with_leading

    poison = decoded.where("reason IS NOT NULL")
    if is_lazy(decoded):
        defaults = {name: _default(name, kind) for name, kind in COLUMNS.items()} | {KEY_RAW: f.col("key")}
        return with_leading(poison, defaults, COLUMNS, {"key": KEY_RAW}, _REMOVED)
    names = set(decoded.columns)
    if KEY_RAW in names:
        poison = poison.withColumn("key", f.col(KEY_RAW))
    head = [
        (f.col(name).cast(kind) if name in names else _default(name, kind)).alias(name)
        for name, kind in COLUMNS.items()
    ]
    others = [f.col(f"`{name}`") for name in decoded.columns if name not in COLUMNS and name not in _REMOVED]
    return poison.select(*head, *others)


def _default(name: str, kind: str) -> "Column":
    from pyspark.sql import functions as f

    return message_of(f.col("reason")) if name == "detail" else f.lit(None).cast(kind)


def message_of(reason: "Column") -> "Column":
    """The general message of a reason."""
    from pyspark.sql import functions as f

    from headgate.spark_udfs.executor.decoding import REASON_SENTENCES

    sentences = f.create_map(*(f.lit(text) for pair in REASON_SENTENCES.items() for text in pair))
    return f.element_at(sentences, reason)


def to_dead_letter_records(
    letters: "DataFrame", dead_letter_topic: str | None = None, *, application: str, suffix: str = layout.TOPIC_SUFFIX
) -> "DataFrame":
    """Convert the table to records: columns `topic`, `key`, `value` and `headers`, for `format("headgate")` or `kafka`.

    Without `dead_letter_topic`, the topic of each record is its source topic and the suffix.
    Key and value are the original bytes. The original headers follow the dead-letter headers.
    """
    from pyspark.sql import functions as f

    from headgate.spark_udfs.driver.lazy_frame import PREFIX, with_defaults

    own = f.coalesce(f.col("headers"), f.array().cast(COLUMNS["headers"]))
    attempts = _first_of(own, layout.REDRIVE_ATTEMPT).cast("string")
    # An invalid number counts as 0, as in `serdes.dead_letter`.
    number = f.when(attempts.rlike(r"^\s*[+]?[0-9]{1,18}\s*$"), attempts.cast("bigint"))
    attempt = f.coalesce(number, f.lit(0)) + 1
    facts: dict[str, Column] = {
        layout.TOPIC: f.col("topic"),
        layout.PARTITION: f.col("partition"),
        layout.OFFSET: f.col("offset"),
        layout.TIMESTAMP: f.unix_millis(f.col("timestamp")),
        layout.REASON: f.col("reason"),
        layout.DETAIL: f.substring(f.col("detail"), 1, layout.DETAIL_CHARS_MAX),
        layout.PART: f.col(PREFIX + PART),
        layout.SCHEMA_ID: f.col("schema_id"),
        layout.APPLICATION: f.lit(application),
        layout.ATTEMPT: attempt,
        layout.FAILED_AT: f.unix_millis(f.current_timestamp()),
    }
    facts_headers = f.array(
        *(
            f.struct(f.lit(name).alias("key"), f.encode(fact.cast("string"), "UTF-8").alias("value"))
            for name, fact in facts.items()
        )
    )
    present = f.filter(facts_headers, lambda header: header["value"].isNotNull())
    kept = f.filter(own, lambda header: ~f.startswith(header["key"], f.lit(layout.PREFIX)))
    named = dead_letter_topic is not None
    topic = f.lit(dead_letter_topic) if named else f.concat(f.col("topic"), f.lit(suffix))
    return with_defaults(letters, {PART: f.lit("value")}).select(
        topic.alias("topic"),
        f.col("key"),
        f.col("raw").alias("value"),
        f.concat(present, kept).cast(COLUMNS["headers"]).alias("headers"),
    )


def _first_of(headers: "Column", name: str) -> "Column":
    from pyspark.sql import functions as f

    return f.get(f.filter(headers, lambda header: header["key"] == name), f.lit(0))["value"]
