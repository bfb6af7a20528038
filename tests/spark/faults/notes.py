"""Test data of the fault tests: notes in two schema versions, and a streaming query that collects them."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Note",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
SECOND: dict[str, Any] = {
    **FIRST,
    "fields": [{"name": "colour", "type": "string", "default": "white"}, *FIRST["fields"]],
}


def note(number: int) -> str | None:
    return f"note {number}" if number % 3 else None


def payloads(schema: dict[str, Any], schema_id: int, numbers: range) -> list[bytes]:
    encode = Encoder(parse(json.dumps(schema))).encode
    return [
        frame(schema_id, encode({"id": number, "note": note(number), "colour": "red"}))
        if schema is SECOND
        else frame(schema_id, encode({"id": number, "note": note(number)}))
        for number in numbers
    ]


class Stream:
    """A streaming query that collects the rows of each batch."""

    def __init__(self, frame_: DataFrame, checkpoint: Path) -> None:
        self.batches: list[list[Row]] = []
        writer = frame_.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        self.query = writer.start()

    def _take(self, batch: DataFrame, number: int) -> None:
        self.batches.append(batch.collect())

    def caught_up(self) -> list[Row]:
        """All rows so far, once there is nothing left to read."""
        self.query.processAllAvailable()
        return [row for batch in self.batches for row in batch]

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()


def reading(
    spark: SparkSession, address: str, registry_url: str, topic: str, subject: str, **options: str
) -> DataFrame:
    return (
        spark.readStream.format("headgate")
        .option("bootstrap.servers", address)
        .option("registry.url", registry_url)
        .option("subscribe", topic)
        .option("subject", subject)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
    )
