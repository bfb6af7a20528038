"""Runs scenarios of the sender with a fake link."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kio.schema.errors import ErrorCode

from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink

SCENARIO_SECONDS_MAX = 60

Scenario = Callable[[FakeLink, Sender], Awaitable[None]]


def run(scenario: Scenario, link: FakeLink | None = None, **settings: int) -> None:
    async def started() -> None:
        used = link or FakeLink()
        sender = Sender(ProxySettings(**settings), used)  # type: ignore[arg-type]
        await scenario(used, sender)

    asyncio.run(asyncio.wait_for(started(), SCENARIO_SECONDS_MAX))


def record(value: bytes, partition: int | None = 0, key: bytes | None = None) -> OutgoingRecord:
    return OutgoingRecord(key, value, partition)


async def sent(link: FakeLink, count: int) -> None:
    """Wait until the sender has sent `count` batches."""
    while len(link.sent) < count:  # noqa: ASYNC110  # the sender has no event for this
        await asyncio.sleep(0.001)


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


def placed(error: ErrorCode | None, offset: int) -> Any:
    from headgate.kafka_client.producer.connection import Placed

    return Placed(error, offset, None)


def keyed(sender: Sender, identity: int, sequence: int, *records: OutgoingRecord, partition: int = 0) -> list[Ticket]:
    (tickets,) = sender.build("t", [(partition, records)])
    sender.send_as(ProducerIdentity(identity, 0), sequence, tickets[0].batch, may_be_written=False)
    return tickets
