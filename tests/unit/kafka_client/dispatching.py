"""Runs scenarios of a producer with a fake link to three brokers and a manual clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer.connection import Placed
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.producer import Producer
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from tests.unit.proxy.produce.fake_link import FakeLink

SECONDS_MAX = 30


@dataclass
class Clock:
    now: float = 0.0


class ManyLeaders(FakeLink):
    """A node leads two partitions. Node ids start at 0."""

    is_down = False
    first_node = 0
    identity_error: Exception | None = None

    def leader(self, topic: str, partition: int) -> int | None:
        return None if self.is_down else self.first_node + partition // 2

    async def new_identity(self) -> ProducerIdentity:
        if self.identity_error is not None:
            raise self.identity_error
        return await super().new_identity()


Scenario = Callable[[ManyLeaders, Producer], Awaitable[None]]


def run(scenario: Scenario, *, close_timeout_ms: int = 0, **options: Any) -> None:
    async def started() -> None:
        link: Any = ManyLeaders(partition_count=6)
        connection = ConnectionOptions(("127.0.0.1:9092",), request_timeout_ms=250)
        used = Producer(connection, ProducerOptions(close_timeout_ms=close_timeout_ms, **options), link)
        await scenario(link, used)
        await used.close()

    asyncio.run(asyncio.wait_for(started(), SECONDS_MAX))


def put(producer: Producer, partition: int, value: bytes = b"v") -> Ticket:
    return producer.place_one("t", OutgoingRecord(None, value, partition), tuple(range(6)), 1)


def placed(*partitions: int, at_ms: int | None = None) -> dict[tuple[str, int], Placed]:
    return {("t", partition): Placed(None, 0, at_ms) for partition in partitions}
