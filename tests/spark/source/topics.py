"""Topics for the tests, filled by librdkafka: another client than the one that is tested."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyarrow import lib as pa
from pyspark.sql.datasource import CaseInsensitiveDict

from headgate.spark_udfs.source.data_source import HeadgateDataSource

SECONDS_MAX = 30
QUIET = {"log_level": 0}
"""Silences librdkafka, which logs every stopped broker to stderr."""
_numbers = itertools.count()

Cell = bytes | str | None


@dataclass(frozen=True, slots=True)
class Message:
    key: Cell = None
    value: Cell = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None
    partition: int = 0


class Topics:
    """One broker, by its address; `settings` are librdkafka's, for one that asks who is there."""

    def __init__(self, address: str, settings: Mapping[str, str] | None = None) -> None:
        self.address = address
        self._client: dict[str, Any] = {"bootstrap.servers": address, **QUIET, **(settings or {})}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(dict(self._client))

    def create(self, partitions: int = 1, name: str | None = None, config: Mapping[str, str] | None = None) -> str:
        name = name or f"t-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
        self._done(self.admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))]))
        return name

    def delete(self, name: str) -> None:
        self._done(self.admin.delete_topics([name], operation_timeout=SECONDS_MAX))

    def grow(self, name: str, partitions: int) -> None:
        self._done(self.admin.create_partitions([NewPartitions(name, partitions)]))

    def trim(self, name: str, partition: int, before: int) -> None:
        """Deletes the records before an offset, as retention would."""
        self._done(self.admin.delete_records([TopicPartition(name, partition, before)]))

    def produce(self, topic: str, messages: Iterable[Message], **settings: Any) -> None:
        producer = Producer({**self._client, "linger.ms": 5, **_dotted(settings)})
        self.send(producer, topic, messages)

    def send(self, producer: Producer, topic: str, messages: Iterable[Message]) -> None:
        refused: list[object] = []
        for message in messages:
            producer.produce(
                topic,
                value=message.value,
                key=message.key,
                partition=message.partition,
                on_delivery=lambda error, _: refused.append(error) if error is not None else None,
                timestamp=message.timestamp or 0,
                headers=list(message.headers),
            )
            producer.poll(0)
        assert producer.flush(SECONDS_MAX) == 0
        assert refused == []

    def transactional(self) -> Producer:
        producer = Producer({**self._client, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(SECONDS_MAX)
        return producer

    def source(self, topic: str | None = None, **options: str) -> HeadgateDataSource:
        """The data source as Spark makes it; a double underscore in a name is a dot."""
        given = {"bootstrap.servers": self.address, **_dotted(options)}
        if topic is not None:
            given["subscribe"] = topic
        return HeadgateDataSource(CaseInsensitiveDict(given))

    def _done(self, futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(SECONDS_MAX)


def numbered(count: int, partition: int = 0, first: int = 0) -> list[Message]:
    return [Message(f"k{n}", f"v{n}", partition=partition) for n in range(first, first + count)]


def read(source: HeadgateDataSource) -> list[dict[str, Any]]:
    """All rows of a batch query, in the order of partitions and offsets, without Spark."""
    schema = source.schema()
    reader = source.reader(schema)
    rows: list[dict[str, Any]] = []
    for partition in reader.partitions():
        rows += rows_of(reader.read(partition))
    return sorted(rows, key=lambda row: (row.get("topic", ""), row.get("partition", 0), row.get("offset", 0)))


def rows_of(batches: Iterable[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in batches:
        assert isinstance(batch, pa.RecordBatch)
        rows += batch.to_pylist()
    return rows


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in options.items()}
