"""Runs a produce workload against a proxy, starts disturbances, reads the log back, and returns the violations.

A disturbance (kill the proxy, kill the broker) starts after a given share of the requests. So a run has the same
structure on a fast and on a busy machine. Requests with an idempotency key are retried until they are acknowledged.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import httpx
from confluent_kafka import Consumer, TopicPartition

from tests.history.history import History, Position, Stored
from tests.history.producers import KEYED, LOST, WAYS, Target
from tests.live.apache_kafka import KafkaNode
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.topics import create_topic

RECORDS_PER_REQUEST: Final = (1, 3, 1, 7)
# With the pause below, a killed server has at least 20 s to restart.
KEYED_ATTEMPTS_MAX: Final = 400
RETRY_PAUSE_SECONDS: Final = 0.05
READ_BACK_SECONDS_MAX: Final = 60.0
REQUEST_SECONDS_MAX: Final = 90.0


@dataclass(frozen=True, slots=True)
class Workload:
    topic: str
    ways: Sequence[str]
    connections: int
    requests: int
    """Total number of requests over all connections."""
    partitions: int = 1
    disturbances: Mapping[float, Callable[[], None]] = field(default_factory=dict)
    """Share of sent requests → a function to run in a thread at that point."""
    replicas: int = 1


@dataclass(slots=True)
class Outcome:
    history: History
    violations: list[str]
    unfinished_keys: list[str]

    @property
    def acknowledged(self) -> int:
        return len(self.history.acknowledged)


class _Progress:
    """Assigns request numbers and starts the disturbances."""

    def __init__(self, workload: Workload) -> None:
        self._total = workload.requests
        self._pending = sorted((round(share * workload.requests), act) for share, act in workload.disturbances.items())
        self._next = 0
        self.running: list[asyncio.Task[None]] = []

    def take(self) -> int | None:
        if self._next >= self._total:
            return None
        if self._pending and self._next >= self._pending[0][0] and all(task.done() for task in self.running):
            _, act = self._pending.pop(0)
            self.running.append(asyncio.create_task(asyncio.to_thread(act)))
        self._next += 1
        return self._next - 1

    async def disturb_the_rest(self) -> None:
        """Run the remaining disturbances. A fast run may end before every disturbance has started."""
        await asyncio.gather(*self.running)
        for _, act in self._pending:
            await asyncio.to_thread(act)


def kill_and_restart(server: HeadgateBroker | HeadgateProxy | KafkaNode) -> None:
    """Send SIGKILL, then restart on the same port and data."""
    assert server.process is not None
    server.process.kill()
    server.start()


def run(workload: Workload, proxy_url: str, bootstrap: str) -> Outcome:
    create_topic(bootstrap, workload.topic, workload.partitions, workload.replicas)
    history, unfinished = asyncio.run(_produce(workload, proxy_url))
    return Outcome(history, history.violations(read_back(bootstrap, workload.topic)), unfinished)


async def _produce(workload: Workload, proxy_url: str) -> tuple[History, list[str]]:
    history, unfinished, progress = History(), list[str](), _Progress(workload)
    limits = httpx.Limits(max_connections=workload.connections, max_keepalive_connections=workload.connections)
    async with httpx.AsyncClient(base_url=proxy_url, timeout=REQUEST_SECONDS_MAX, limits=limits) as http:
        cluster_id = (await http.get("/v3/clusters")).json()["data"][0]["cluster_id"]
        target = Target(http, cluster_id, workload.topic, history)
        workers = (_worker(number, workload, target, progress, unfinished) for number in range(workload.connections))
        await asyncio.gather(*workers)
        await progress.disturb_the_rest()
    return history, unfinished


async def _worker(number: int, workload: Workload, target: Target, progress: _Progress, unfinished: list[str]) -> None:
    while (request := progress.take()) is not None:
        way = workload.ways[request % len(workload.ways)]
        count = RECORDS_PER_REQUEST[(request // len(workload.ways)) % len(RECORDS_PER_REQUEST)]
        ids = [f"{way}.{number}.{request}.{index}" for index in range(count)]
        for record_id in ids:
            target.history.send(record_id)
        for _ in range(KEYED_ATTEMPTS_MAX if way in KEYED else 1):
            try:
                is_done = await WAYS[way](target, ids)
            except LOST:
                is_done = False
            if is_done:
                break
            await asyncio.sleep(RETRY_PAUSE_SECONDS)
        else:
            if way in KEYED:
                unfinished.append(ids[0])


def read_back(bootstrap: str, topic: str) -> list[Stored]:
    """Read every record of a topic with librdkafka, without the proxy."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "history", "enable.auto.commit": False})
    stored: list[Stored] = []
    try:
        partitions = consumer.list_topics(topic, timeout=READ_BACK_SECONDS_MAX).topics[topic].partitions
        for partition in partitions:
            place = TopicPartition(topic, partition, 0)
            end = consumer.get_watermark_offsets(place, timeout=READ_BACK_SECONDS_MAX)[1]
            consumer.assign([place])
            offset = 0
            while offset < end:
                messages = consumer.consume(min(1000, end - offset), timeout=READ_BACK_SECONDS_MAX)
                assert messages, f"offset {offset} of {end} in partition {partition} cannot be read"
                for message in messages:
                    assert message.error() is None, message.error()
                    value = message.value()
                    assert value is not None
                    offset = int(message.offset() or 0) + 1
                    stored.append(Stored(Position(partition, offset - 1), json.loads(value)))
    finally:
        consumer.close()
    return stored
