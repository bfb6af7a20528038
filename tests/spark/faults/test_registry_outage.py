"""Registry outages at the start and during a stream, and schemas registered during a stream."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.serdes import RegistryClient
from headgate.spark_udfs import decode_frame
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.ports import free_port
from tests.live.topics import create_topic, produce
from tests.spark.faults.notes import FIRST, SECOND, Stream, note, payloads, reading
from tests.spark.registering import registered

BACK_SECONDS_MAX = 180.0
"""Time to start a Python worker or to read again, on a loaded machine."""


@pytest.fixture
def mortal_registry(tmp_path: Path) -> Iterator[HeadgateRegistry]:
    """A separate registry that the tests stop."""
    process = HeadgateRegistry(tmp_path / "registry")
    process.start()
    yield process
    process.stop()


def by_frame(spark: SparkSession, address: str, registry_url: str) -> None:
    decode_frame(spark.createDataFrame([(b"",)], "value binary"), "orders-value", registry=registry_url)


def by_batch(spark: SparkSession, address: str, registry_url: str) -> None:
    options = {"bootstrap.servers": address, "registry.url": registry_url, "subject": "orders-value"}
    spark.read.format("headgate").options(**options).option("subscribe", "any").load()


def by_stream(spark: SparkSession, address: str, registry_url: str) -> None:
    reading(spark, address, registry_url, "any", "orders-value")


@pytest.mark.parametrize("load", [by_frame, by_batch, by_stream])
def test_an_unavailable_registry_fails_the_start_with_advice(
    spark: SparkSession, headgate_broker: HeadgateBroker, load: Callable[[SparkSession, str, str], None]
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    # Spark wraps the exception of a data source in an unrelated class.
    with pytest.raises(Exception, match="Check that the registry is running") as caught:
        load(spark, headgate_broker.address, nobody)
    assert nobody.removeprefix("http://") in str(caught.value)


def test_a_schema_registered_during_the_stream_is_used(
    spark: SparkSession, headgate_broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path
) -> None:
    topic, subject = "learning", "learning-value"
    create_topic(headgate_broker.address, topic, 2)
    with RegistryClient(registry.url) as client:
        first = registered(client, subject, FIRST)
        produce(headgate_broker.address, topic, payloads(FIRST, first, range(100)), partitions=2)
        frame = reading(spark, headgate_broker.address, registry.url, topic, subject)
        with Stream(frame.select("value.id", "value.note", "reason", "schema_id"), tmp_path) as stream:
            assert len(stream.caught_up()) == 100
            second = registered(client, subject, SECOND)
            produce(headgate_broker.address, topic, payloads(SECOND, second, range(100, 200)), partitions=2)
            rows = sorted(stream.caught_up(), key=lambda row: row["id"])
    assert [(row["id"], row["note"], row["reason"]) for row in rows] == [
        (number, note(number), None) for number in range(200)
    ]
    assert Counter(row["schema_id"] for row in rows) == {first: 100, second: 100}


def test_a_short_registry_outage_during_the_stream_creates_no_dead_letter(
    spark: SparkSession, headgate_broker: HeadgateBroker, mortal_registry: HeadgateRegistry, tmp_path: Path
) -> None:
    topic, subject = "short-outage", "short-outage-value"
    create_topic(headgate_broker.address, topic, 2)
    with RegistryClient(mortal_registry.url) as client:
        first = registered(client, subject, FIRST)
        frame = reading(spark, headgate_broker.address, mortal_registry.url, topic, subject)
        second = registered(client, subject, SECOND)
    assert mortal_registry.process is not None
    mortal_registry.process.kill()
    rows = payloads(SECOND, second, range(20)) + payloads(FIRST, first, range(20, 50))
    produce(headgate_broker.address, topic, rows, partitions=2)
    with Stream(frame.select("value.id", "reason"), tmp_path / "checkpoint") as stream:
        # The rows cannot be decoded before the restart: the reader does not know the second schema.
        deadline = time.monotonic() + BACK_SECONDS_MAX
        while not stream.query.status["isTriggerActive"]:
            assert time.monotonic() < deadline, "the stream did not start a batch"
            time.sleep(0.1)
        assert not stream.batches
        mortal_registry.start()
        found = stream.caught_up()
    assert sorted((row["id"], row["reason"]) for row in found) == [(number, None) for number in range(50)]


def test_a_registry_outage_during_the_stream_loses_no_row(
    spark: SparkSession, headgate_broker: HeadgateBroker, mortal_registry: HeadgateRegistry, tmp_path: Path
) -> None:
    topic, subject = "outage", "outage-value"
    create_topic(headgate_broker.address, topic, 2)
    with RegistryClient(mortal_registry.url) as client:
        first = registered(client, subject, FIRST)
    produce(headgate_broker.address, topic, payloads(FIRST, first, range(50)), partitions=2)
    down = {"on_registry_down": "DEAD_LETTER"}
    frame = reading(spark, headgate_broker.address, mortal_registry.url, topic, subject, **down)
    with Stream(frame.select("value", "reason", "schema_id", "raw"), tmp_path / "checkpoint") as stream:
        assert [row["reason"] for row in stream.caught_up()] == [None] * 50

        with RegistryClient(mortal_registry.url) as client:
            second = registered(client, subject, SECOND)
        assert mortal_registry.process is not None
        mortal_registry.process.kill()
        unreadable = payloads(SECOND, second, range(50, 70))
        known = payloads(FIRST, first, range(70, 100))
        produce(headgate_broker.address, topic, unreadable + known, partitions=2)
        rows = stream.caught_up()[50:]
        assert Counter(row["reason"] for row in rows) == {None: 30, "REGISTRY_UNAVAILABLE": 20}
        assert sorted(row["value"]["id"] for row in rows if row["reason"] is None) == list(range(70, 100))
        assert sorted(bytes(row["raw"]) for row in rows if row["reason"] is not None) == sorted(unreadable)

        mortal_registry.start()
        seen = len(stream.caught_up())
        deadline = time.monotonic() + BACK_SECONDS_MAX
        while True:
            # The client caches the outage, and no row is read twice.
            produce(headgate_broker.address, topic, payloads(SECOND, second, range(100, 110)), partitions=2)
            rows = stream.caught_up()[seen:]
            seen += len(rows)
            assert len(rows) == 10
            if all(row["reason"] is None for row in rows):
                break
            assert {row["reason"] for row in rows} <= {None, "REGISTRY_UNAVAILABLE"}
            assert time.monotonic() < deadline, "the stream did not notice that the registry is back"
            time.sleep(1)
        assert sorted(row["value"]["id"] for row in rows) == list(range(100, 110))


def test_a_batch_of_only_poison_does_not_stop_the_stream(
    spark: SparkSession, headgate_broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path
) -> None:
    topic, subject = "all-poison", "all-poison-value"
    create_topic(headgate_broker.address, topic, 2)
    with RegistryClient(registry.url) as client:
        first = registered(client, subject, FIRST)
    frame = reading(spark, headgate_broker.address, registry.url, topic, subject)
    with Stream(frame.select("partition", "offset", "value.id", "reason", "raw"), tmp_path) as stream:
        bad = [None, b"", b"\x01junk", b"\xff" * 1000, *(one[:-1] for one in payloads(FIRST, first, range(1, 197)))]
        produce(headgate_broker.address, topic, bad, partitions=2)
        rows = stream.caught_up()
        assert all(row["id"] is None and row["reason"] is not None for row in rows)
        assert sorted((row["partition"], row["offset"], row["raw"]) for row in rows) == sorted(
            (number % 2, number // 2, value and bytearray(value)) for number, value in enumerate(bad)
        )
        produce(headgate_broker.address, topic, payloads(FIRST, first, range(10)), partitions=2)
        good = stream.caught_up()[len(bad) :]
        assert sorted((row["id"], row["reason"]) for row in good) == [(number, None) for number in range(10)]
