"""Small valid payloads that are large as columns, read by two tasks with a heap of 1 GB (`tests/spark/conftest.py`).

`tests/unit/columnar/test_column_size.py` tests more kinds of amplifiers without Spark.
"""

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from headgate.serdes.avro.column_size import ROW_BYTES_MAX
from headgate.serdes.framing import frame
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.topics import create_topic
from tests.spark.functions.forms import FORMS
from tests.spark.functions.payloads import frame_of, register
from tests.unit.columnar.test_column_size import array, number, record, repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

SUBJECT = "amplified-value"
FIELDS = ("nulls", "map", "empties", "options", "deep")
COLUMNS = 51
"""Columns of a wide record."""
TEXT_BYTES = 2000


def schema(*empty: tuple[str, Any, Any]) -> dict[str, Any]:
    wide = record("Wide", *((f"f{at}", ["null", "string"]) for at in range(COLUMNS - 1)))
    return record(
        "Amplified",
        ("id", "long"),
        ("nulls", array(["null", wide])),
        ("map", {"type": "map", "values": ["null", "Wide"]}),
        ("empties", array(record("Empty", *empty))),
        ("options", array(["null", "Empty"])),
        ("deep", array(array(array(["null", "Wide"])))),
    )


WRITER, READER = schema(), schema(("text", "string", "x" * TEXT_BYTES))
"""The items of `empties` take no byte, those of `options` one byte, and each has a long string as a column."""

WIDE_BYTES = COLUMNS * 8
NULLS = ROW_BYTES_MAX // WIDE_BYTES - 100
KEYED = number(15_000) + b"".join(b"\x08%04x\0" % at for at in range(15_000)) + b"\0"
AMPLIFIERS: list[tuple[str, int, bytes, int]] = [
    ("nulls", NULLS, repeated(NULLS, b"\0"), NULLS * WIDE_BYTES),
    ("nulls", NULLS + 200, repeated(NULLS + 200, b"\0"), (NULLS + 200) * WIDE_BYTES),
    ("map", 15_000, KEYED, 15_000 * (WIDE_BYTES + 12)),
    ("empties", 3000, repeated(3000, b""), 3000 * (TEXT_BYTES + 16)),
    ("options", 20_000, repeated(20_000, b"\2"), 20_000 * (TEXT_BYTES + 16)),
    ("options", 200_000, repeated(200_000, b"\2"), 200_000 * (TEXT_BYTES + 16)),
    ("deep", 20, repeated(20, repeated(10, repeated(20, b"\0"))), 4000 * WIDE_BYTES),
    ("deep", 0, b"\0", 0),
]
"""The field with items, its number of items, its encoding, and its size as columns."""


def payload(schema_id: int, at: int) -> bytes:
    name, _, body, _ = AMPLIFIERS[at]
    return frame(schema_id, number(at) + b"".join(body if field == name else b"\0" for field in FIELDS))


@pytest.fixture(scope="module")
def payloads(registry: HeadgateRegistry) -> list[bytes]:
    writer, _ = register(registry, SUBJECT, WRITER, READER)
    return [payload(writer, at) for at in range(len(AMPLIFIERS))]


def check(decoded: "DataFrame", by: str) -> None:
    rows = decoded.selectExpr(by, "reason", *(f"size(value.{name}) AS {name}" for name in FIELDS)).collect()
    assert len(rows) == len(AMPLIFIERS)
    for row in rows:
        name, count, _, size = AMPLIFIERS[row[by]]
        assert row["reason"] == ("TOO_LARGE" if size > ROW_BYTES_MAX else None), row
        assert row["reason"] is not None or row[name] == count, row


@pytest.mark.parametrize("decode", FORMS)
def test_amplifiers_in_a_dataframe_affect_only_their_own_rows(
    spark: "SparkSession", registry: HeadgateRegistry, payloads: list[bytes], decode: Any
) -> None:
    check(decode(frame_of(spark, payloads), SUBJECT, registry=registry.url), "n")


def test_amplifiers_in_compressed_batches_affect_only_their_own_rows(
    spark: "SparkSession", registry: HeadgateRegistry, headgate_broker: HeadgateBroker, payloads: list[bytes]
) -> None:
    create_topic(headgate_broker.address, "amplified")
    producer = Producer({"bootstrap.servers": headgate_broker.address, "compression.type": "zstd", "linger.ms": 500})
    for each in payloads:
        producer.produce("amplified", each)
    assert producer.flush(30) == 0
    options = {"bootstrap.servers": headgate_broker.address, "subscribe": "amplified", "minPartitions": "2"}
    df = spark.read.format("headgate").options(**options, subject=SUBJECT, **{"registry.url": registry.url}).load()
    check(df, "offset")
