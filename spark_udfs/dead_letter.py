"""Dead letters in Spark: poison as a table, and as records for a dead-letter topic, in Spark's own expressions.

The table has a fixed head, whatever the source: topic, partition, offset, timestamp, key, headers, raw, reason, detail,
schema_id; null where the source has no such column. What else the frame has follows, so that a row of a table can be
found again. The headers of the records are those of `serdes.dead_letter`, so that everything which reads and re-drives
dead letters takes them.
"""

from typing import TYPE_CHECKING

from headgate.serdes import dead_letter as layout

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
"""The head of the table and its types."""

_LEFT_OUT = ("value", "timestampType")
"""Of a decoded frame: the value of a bad row is null, and the kind of a timestamp says nothing here."""


def dead_letters(decoded: "DataFrame") -> "DataFrame":
    """The bad rows of a decoded frame, as the dead-letter table."""
    from pyspark.sql import functions as f

    poison = decoded.where("reason IS NOT NULL")
    names = set(decoded.columns)
    head = [
        (f.col(name).cast(kind) if name in names else _absent(name, kind)).alias(name) for name, kind in COLUMNS.items()
    ]
    others = [f.col(f"`{name}`") for name in decoded.columns if name not in COLUMNS and name not in _LEFT_OUT]
    return poison.select(*head, *others)


def _absent(name: str, kind: str) -> "Column":
    from pyspark.sql import functions as f

    return sentence_of(f.col("reason")) if name == "detail" else f.lit(None).cast(kind)


def sentence_of(reason: "Column") -> "Column":
    """What a reason means, where nothing more was said about the row."""
    from pyspark.sql import functions as f

    from headgate.spark_udfs.executor.decoding import REASON_SENTENCES

    sentences = f.create_map(*(f.lit(text) for pair in REASON_SENTENCES.items() for text in pair))
    return f.element_at(sentences, reason)


def to_dead_letter_records(letters: "DataFrame", dead_letter_topic: str, *, application: str) -> "DataFrame":
    """The table as records for a topic: columns `topic`, `key`, `value`, `headers`, as Kafka's sink and ours take them.

    Key and value are the record's own bytes; its headers follow ours, as `serdes.dead_letter` has it.
    """
    from pyspark.sql import functions as f

    own = f.coalesce(f.col("headers"), f.array().cast(COLUMNS["headers"]))
    attempts = _first_of(own, layout.REDRIVE_ATTEMPT).cast("string")
    # What is no number counts as none, as it does where serdes reads it.
    attempt = f.greatest(f.coalesce(attempts.try_cast("bigint"), f.lit(0)), f.lit(0)) + 1
    facts: dict[str, Column] = {
        layout.TOPIC: f.col("topic"),
        layout.PARTITION: f.col("partition"),
        layout.OFFSET: f.col("offset"),
        layout.TIMESTAMP: f.unix_millis(f.col("timestamp")),
        layout.REASON: f.col("reason"),
        layout.DETAIL: f.substring(f.col("detail"), 1, layout.DETAIL_CHARS_MAX),
        layout.PART: f.lit("value"),
        layout.SCHEMA_ID: f.col("schema_id"),
        layout.APPLICATION: f.lit(application),
        layout.ATTEMPT: attempt,
        layout.FAILED_AT: f.unix_millis(f.current_timestamp()),
    }
    ours = f.array(
        *(
            f.struct(f.lit(name).alias("key"), f.encode(fact.cast("string"), "UTF-8").alias("value"))
            for name, fact in facts.items()
        )
    )
    said = f.filter(ours, lambda header: header["value"].isNotNull())
    kept = f.filter(own, lambda header: ~f.startswith(header["key"], f.lit(layout.PREFIX)))
    return letters.select(
        f.lit(dead_letter_topic).alias("topic"),
        f.col("key"),
        f.col("raw").alias("value"),
        f.concat(said, kept).cast(COLUMNS["headers"]).alias("headers"),
    )


def _first_of(headers: "Column", name: str) -> "Column":
    from pyspark.sql import functions as f

    return f.get(f.filter(headers, lambda header: header["key"] == name), f.lit(0))["value"]
