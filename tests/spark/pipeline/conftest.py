"""Fixtures of the pipeline tests: a broker, a registry, and `Place`, which fills topics and runs pipelines."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate.proxy.dead_letters.tables import open_table
from headgate.serdes import DeadLetter, RegistryClient, Serializer, SerializerOptions, avro_schema
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.run import Runner
from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.postgresql import PostgresqlServer, PostgresqlUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = count(1)
# The module has no types.
_ARROW_PARQUET: Any = import_module("pyarrow.parquet")

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
CUSTOMER = json.dumps(
    {
        "type": "record",
        "name": "Customer",
        "fields": [{"name": "id", "type": "string"}, {"name": "name", "type": "string"}],
    }
)
NOON = 1_700_049_600_000
MINUTE = 60_000


def order(number: int, customer: str = "ada", amount: float = 1.5, at: int = NOON) -> dict[str, Any]:
    return {"id": number, "customer": customer, "amount": amount, "at": at}


@dataclass(frozen=True, slots=True)
class Place:
    """The servers and the folder of one test. Topics have unique names."""

    spark: "SparkSession"
    broker: str
    registry: str
    folder: Path
    mark: int

    def topic(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def register(self, topic: str, schema: str) -> int:
        with RegistryClient(self.registry) as client:
            found = client.register(f"{self.topic(topic)}-value", avro_schema(schema)).id
        assert found is not None
        return found

    def encode(self, topic: str, schema: str, values: list[Any]) -> list[bytes | None]:
        with RegistryClient(self.registry) as client:
            serializer = Serializer(client, avro_schema(schema), SerializerOptions())
            return [
                value
                if isinstance(value, bytes) or value is None
                else serializer.serialize(value, topic=self.topic(topic))
                for value in values
            ]

    def send(self, topic: str, schema: str, values: list[Any], *, keys: list[str] | None = None) -> None:
        """Produce records. Values are encoded; bytes and None are sent unchanged."""
        from confluent_kafka import Producer

        payloads = self.encode(topic, schema, values)
        producer = Producer({"bootstrap.servers": self.broker, "linger.ms": 1})
        for at, payload in enumerate(payloads):
            producer.produce(self.topic(topic), payload, key=keys[at] if keys else str(at))
        assert producer.flush(20) == 0

    def delete(self, topic: str) -> None:
        from confluent_kafka.admin import AdminClient

        name = self.topic(topic)
        admin = AdminClient({"bootstrap.servers": self.broker})
        admin.delete_topics([name], operation_timeout=20)[name].result(20)

    def records(self, topic: str) -> list[Any]:
        return self.all_records(self.topic(topic))

    def all_records(self, name: str) -> list[Any]:
        """All records of a topic."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.broker, "group.id": f"look-{self.mark}", "enable.auto.commit": False}
        )
        found: list[Any] = []
        try:
            for partition in consumer.list_topics(name, timeout=10).topics[name].partitions:
                start, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=10)
                if end <= start:
                    continue
                consumer.assign([TopicPartition(name, partition, start)])
                while not found or found[-1].partition() != partition or found[-1].offset() < end - 1:
                    message = consumer.poll(10)
                    assert message is not None, f"{name} ended at {len(found)}"
                    assert message.error() is None
                    found.append(message)
        finally:
            consumer.close()
        return found

    def pipeline(self, text: str, **overrides: str) -> Pipeline:
        """`{orders}` in the text is a topic name, `{folder}` the folder of the test."""
        head = (
            f'checkpoint = "{self.folder}/state"\n[kafka]\nbootstrap.servers = "{self.broker}"\n'
            f'[registry]\nurl = "{self.registry}"\n'
        )
        filled = text.replace("{folder}", str(self.folder))
        for name in ("orders", "customers", "payments", "dead", "out"):
            filled = filled.replace("{" + name + "}", self.topic(name))
        document = parse_toml(head + filled, "test.toml", self.folder, {}, overrides)
        return check(document, {})

    def run(self, text: str, **overrides: str) -> dict[str, Any]:
        """Run once and return the metrics."""
        runner = Runner(self.spark, self.pipeline(text, **overrides))
        runner.run(once=True)
        return runner.metrics.document()

    def parquet_merged(self, name: str) -> list[dict[str, Any]]:
        """Rows with the columns of all files, as with Spark's mergeSchema."""
        files = sorted((self.folder / name).rglob("*.parquet"))
        tables = [_ARROW_PARQUET.read_table(file, partitioning=None) for file in files]
        return [row for table in tables for row in table.to_pylist()]

    def parquet(self, name: str) -> list[dict[str, Any]]:
        """Rows with the partition columns, without the batch column."""
        rows = _ARROW_PARQUET.read_table(self.folder / name, partitioning="hive").to_pylist()
        return [{key: value for key, value in row.items() if key != "headgate_batch"} for row in rows]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    server = HeadgateBroker(tmp_path_factory.mktemp("pipeline-broker"), {"num.partitions": "2"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def place(spark: "SparkSession", broker: HeadgateBroker, registry: HeadgateRegistry, tmp_path: Path) -> Place:
    return Place(spark, broker.address, registry.url, tmp_path, next(_numbers))


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlServer]:
    server = PostgresqlServer(tmp_path_factory.mktemp("postgresql"))
    try:
        server.start()
    except PostgresqlUnavailable as error:
        unavailable(str(error))
    yield server
    server.stop()


def sqlite_rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def letters_of(location: str) -> list[DeadLetter]:
    """The letters of a dead-letter table, as `headgate dead` reads them."""

    async def read() -> list[DeadLetter]:
        return [stored.letter async for stored in open_table(location, "test").read(lambda _: True)]

    return asyncio.run(read())
