"""A cluster in memory with the methods that plans and fetches use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from aiokafka.structs import TopicPartition

from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.offsets import Offsets, TopicIds
from headgate.spark_udfs.source.positions import EARLIEST
from headgate.spark_udfs.source.topics import Selection


@dataclass
class FakeCluster:
    logs: dict[TopicPartition, tuple[int, int]]
    """The first and the next offset of each partition."""
    times: dict[TopicPartition, int | None] = field(default_factory=dict)
    ids: TopicIds = field(default_factory=dict)
    responses: list[Fetched | Exception] = field(default_factory=list)
    fetched_from: list[int] = field(default_factory=list)
    fetch_arguments: list[dict[str, Any]] = field(default_factory=list)
    requested_times: list[dict[TopicPartition, int]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def cluster(self) -> Cluster:
        return cast(Cluster, self)

    async def partitions(self, selection: Selection, *, may_miss: bool = False) -> list[TopicPartition]:
        known: dict[str, set[int]] = {}
        for at in self.logs:
            known.setdefault(at.topic, set()).add(at.partition)
        return selection.chosen(known, may_miss=may_miss)

    def topic_ids(self, places: Iterable[TopicPartition]) -> TopicIds:
        return {at.topic: self.ids[at.topic] for at in places if at.topic in self.ids}

    async def edges(self, places: Iterable[TopicPartition], where: int, _isolation: Isolation) -> Offsets:
        return {at: self.logs[at][0 if where == EARLIEST else 1] for at in places}

    async def offsets(self, times: Mapping[TopicPartition, int], _isolation: Isolation) -> dict[Any, int | None]:
        self.requested_times.append(dict(times))
        return {at: self.times[at] for at in times}

    async def fetch(self, _at: TopicPartition, offset: int, **arguments: Any) -> Fetched:
        self.fetched_from.append(offset)
        self.fetch_arguments.append(arguments)
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    async def close(self) -> None:
        self.is_closed = True
