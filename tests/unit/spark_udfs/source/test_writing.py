"""One task of a write: the partition of each record, full batches, and the end of a task."""

import random
from collections import Counter
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.kafka_client.producer.options import ProducerOptions
from headgate.spark_udfs.source import writing
from headgate.spark_udfs.source.errors import BrokerRefused, TopicMissing, UnwritableRow
from headgate.spark_udfs.source.options import WriteOptions, write_options
from headgate.spark_udfs.source.producing import OpenBatch
from headgate.spark_udfs.source.writing import RECORD_OVERHEAD_BYTES_MAX, Written, write_batches

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BYTES_MAX = 1000
PARTITIONS = {"orders": [0, 1, 2, 3], "one": [0]}


class RecordedBatch(OpenBatch):
    def __init__(self) -> None:
        super().__init__(ProducerOptions(batch_bytes_max=BYTES_MAX))
        self.values: list[bytes | None] = []

    def append(self, *, value: bytes | None, **parts: Any) -> bool:
        fits = super().append(value=value, **parts)
        if fits:
            self.values.append(value)
        return fits


class FakeProducer:
    """Stores the batches instead of sending them."""

    def __init__(self, options: WriteOptions) -> None:
        self.events: list[str] = []
        self.sent: list[tuple[str, int, list[bytes | None]]] = []
        self.lookups: Counter[str] = Counter()
        self.error: Exception | None = None

    async def start(self) -> None:
        self.events.append("start")

    async def partitions(self, topic: str) -> list[int]:
        self.lookups[topic] += 1
        if topic not in PARTITIONS:
            raise TopicMissing(topic)
        return PARTITIONS[topic]

    def batch(self) -> RecordedBatch:
        return RecordedBatch()

    async def send(self, batch: RecordedBatch, topic: str, partition: int) -> None:
        self.sent.append((topic, partition, batch.values))

    async def finish(self) -> None:
        self.events.append("finish")
        if self.error is not None:
            raise self.error

    async def abandon(self) -> None:
        self.events.append("abandon")


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    options = write_options({"bootstrap.servers": "a:1"})
    fake = FakeProducer(options)
    monkeypatch.setattr(writing, "TopicProducer", lambda _options: fake)
    return fake


def write(topic: str | None, *batches: dict[str, Any]) -> Written:
    more = {} if topic is None else {"topic": topic}
    options = write_options({"bootstrap.servers": "a:1", "kafka.max.request.size": str(BYTES_MAX), **more})
    return write_batches(options, [pa.RecordBatch.from_pydict(batch) for batch in batches])


def placed(producer: FakeProducer) -> dict[bytes | None, tuple[str, int]]:
    return {value: (topic, partition) for topic, partition, values in producer.sent for value in values}


def test_a_task_ends_after_all_records_are_acknowledged(producer: FakeProducer) -> None:
    assert write("one", {"value": [b"1", b"2"]}, {"value": [b"3"]}) == Written(3)
    assert producer.sent == [("one", 0, [b"1", b"2", b"3"])]
    assert producer.events == ["start", "finish"]
    assert producer.lookups == {"one": 1}


def test_a_failed_task_abandons_its_batches(producer: FakeProducer) -> None:
    with pytest.raises(TopicMissing):
        write("missing", {"value": [b"1"]})
    assert producer.events == ["start", "abandon"]
    producer.error = BrokerRefused("full")
    with pytest.raises(BrokerRefused):
        write("one", {"value": [b"1"]})
    assert producer.events == ["start", "abandon", "start", "finish", "abandon"]


def test_the_key_selects_the_partition_as_in_the_java_client(producer: FakeProducer) -> None:
    # Computed with Kafka's Utils.murmur2.
    java = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    keys = list(java)
    write(None, {"topic": ["orders", "one", "orders"], "key": keys, "value": keys})
    expected = {key: ("orders", (number & 0x7FFFFFFF) % 4) for key, number in java.items()}
    expected[b"foobar"] = ("one", 0)
    assert placed(producer) == expected


def test_a_column_partition_overrides_the_key(producer: FakeProducer) -> None:
    partitions = pa.array([2, 0, 3], pa.int32())
    write("orders", {"key": [b"k"] * 3, "value": [b"1", b"2", b"3"], "partition": partitions})
    assert placed(producer) == {b"1": ("orders", 2), b"2": ("orders", 0), b"3": ("orders", 3)}
    with pytest.raises(UnwritableRow, match="A row has partition 4 of orders, which has 4 partitions"):
        write("orders", {"value": [b"1"], "partition": pa.array([4], pa.int32())})


def test_records_without_a_key_stay_in_one_partition_until_its_batch_is_full(
    producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = iter([2, 0])
    monkeypatch.setattr(random, "choice", lambda known: known[next(order)])
    values = [b"%d" % number * 300 for number in range(5)]
    write("orders", {"key": pa.nulls(2, pa.binary()), "value": values[:2]}, {"value": values[2:]})
    # The record that does not fit begins the next batch of its partition.
    assert producer.sent == [("orders", 2, values[:3]), ("orders", 2, values[3:4]), ("orders", 0, values[4:])]


@pytest.mark.parametrize("part", ["key", "value", "header"])
def test_a_record_larger_than_a_request_is_rejected(producer: FakeProducer, part: str) -> None:
    def row(size: int) -> dict[str, Any]:
        filled = b"x" * size
        headers = [[{"key": "é", "value": filled if part == "header" else None}]]
        return {
            "key": [filled if part == "key" else None],
            "value": [filled if part == "value" else b"v"],
            "headers": pa.array(headers, HEADERS),
        }

    others = RECORD_OVERHEAD_BYTES_MAX + len("é".encode()) + 10 + (part != "value")
    write("one", row(BYTES_MAX - others))
    with pytest.raises(UnwritableRow, match=r"A row for one-0 is a record of 1001 bytes\. The limit is 1000"):
        write("one", row(BYTES_MAX - others + 1))
    # Also after a full batch.
    with pytest.raises(UnwritableRow, match="of 1001 bytes"):
        write("one", {"value": [b"x" * 800]}, row(BYTES_MAX - others + 1))
