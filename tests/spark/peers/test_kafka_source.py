"""Compare the data source with Spark's Kafka source: equal options give equal columns and rows."""

import time
from collections.abc import Mapping
from itertools import count
from random import Random

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.topics import create_topic

PARTITIONS = 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_MS = int(time.time() * 1000) - 2 * 86_400_000
"""Two days ago, within the default retention time."""
SPACING_MS = 60_000
RECORDS = 200
"""Records per compression codec."""
_numbers = count()


@pytest.fixture(scope="module", autouse=True)
def connectors(spark: SparkSession) -> None:
    if "spark-sql-kafka" not in (spark.conf.get("spark.jars", "") or ""):
        unavailable("Spark's own Kafka source could not be fetched")


@pytest.fixture(params=["embedded", "kafka"])
def topic(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Address and name of a topic with keys, nulls, headers, every codec, and committed and aborted transactions."""
    if request.param == "embedded":
        broker: HeadgateBroker = request.getfixturevalue("headgate_broker")
        address = broker.address
    else:
        address = request.getfixturevalue("apache_kafka")
    name = f"peers-{next(_numbers)}"
    create_topic(address, name, PARTITIONS)
    for number, codec in enumerate(CODECS):
        fill(address, name, codec, number * RECORDS)
    if request.param == "kafka":
        # The embedded broker has no transactions.
        fill_in_transactions(address, name)
    return address, name


def fill(address: str, topic: str, codec: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": address, "compression.codec": codec, "linger.ms": 5})
    send(producer, topic, Random(codec), first, RECORDS)
    producer.flush(30)


def fill_in_transactions(address: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": topic})
    producer.init_transactions(30)
    for is_kept in (False, True, False):
        producer.begin_transaction()
        send(producer, topic, Random(is_kept), len(CODECS) * RECORDS, RECORDS // 4)
        producer.flush(30)
        if is_kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


def send(producer: Producer, topic: str, rng: Random, first: int, records: int) -> None:
    for number in range(records):
        headers: list[tuple[str, str | bytes | None]] = [
            (rng.choice(("trace", "naïve", "")), rng.choice((None, b"", rng.randbytes(9))))
            for _ in range(rng.choice((0, 0, 1, 3)))
        ]
        producer.produce(
            topic,
            rng.choice((None, b"", rng.randbytes(rng.randrange(300)))),
            rng.choice((None, b"", b"key-%d" % number)),
            number % PARTITIONS,
            timestamp=FIRST_MS + (first + number) * SPACING_MS + rng.randrange(2 * SPACING_MS),
            headers=headers,
        )


def read(spark: SparkSession, source: str, address: str, topic: str, options: Mapping[str, str]) -> DataFrame:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", address).option("subscribe", topic)
    return reader.options(**dict(options)).load()


OPTIONS: dict[str, dict[str, str]] = {
    "everything": {"includeHeaders": "true"},
    "committed": {"includeHeaders": "true", "kafka.isolation.level": "read_committed"},
    "by_offset": {
        "startingOffsets": '{"%s": {"0": 20, "1": -2}}',
        "endingOffsets": '{"%s": {"0": 400, "1": -1}}',
    },
    "by_time": {
        "startingTimestamp": str(FIRST_MS + 100 * SPACING_MS),
        "endingTimestamp": str(FIRST_MS + 800 * SPACING_MS),
    },
    "by_time_each": {
        "startingOffsetsByTimestamp": '{"%s": ' + f'{{"0": {FIRST_MS + 500 * SPACING_MS}, "1": {FIRST_MS}}}}}',
    },
    "split": {"minPartitions": "7", "startingOffsets": "earliest", "endingOffsets": "latest"},
}


def test_both_sources_read_the_same_rows(spark: SparkSession, topic: tuple[str, str]) -> None:
    address, name = topic
    for case, given in OPTIONS.items():
        options = {key: value % name if "%s" in value else value for key, value in given.items()}
        ours, theirs = (read(spark, source, address, name, options) for source in ("headgate", "kafka"))
        assert ours.schema.simpleString() == theirs.schema.simpleString(), case
        our_rows, their_rows = (frame.orderBy("partition", "offset").collect() for frame in (ours, theirs))
        assert our_rows == their_rows, case
        assert our_rows, case
