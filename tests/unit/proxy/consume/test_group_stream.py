"""Acknowledgements of a group stream: commits and retries."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from headgate.kafka_client.errors import RetriableError
from headgate.proxy.consumers.group_stream import GroupStream
from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.memory import StreamMemory
from headgate.proxy.reading.payloads import Payloads
from headgate.proxy.reading.stream import ReadSpec
from headgate.serdes import AsyncRegistryClient, RegistrySettings


class FakeMember:
    """A group member with three records. The first `failures` commits fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.commits: list[dict[TopicPartition, OffsetAndMetadata]] = []
        self.generation = 0
        self._records: deque[Any] = deque(
            ConsumerRecord("t", 0, offset, 0, 0, None, b"x", None, -1, 1, ()) for offset in range(3)
        )

    async def subscribe(self, topics: list[str]) -> None: ...

    def assignment(self) -> list[TopicPartition]:
        return []

    def waiting(self) -> deque[Any]:
        return self._records

    async def fetch(self, seconds: float) -> bool:
        return False

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self.failures:
            self.failures -= 1
            raise RetriableError("not now")
        self.commits.append(offsets)


async def opened(member: FakeMember) -> GroupStream:
    """Return a stream that has sent its three rows."""
    nowhere = AsyncRegistryClient(RegistrySettings(urls=("http://127.0.0.1:1",)))
    readers: Any = SimpleNamespace(
        payloads=Payloads(nowhere), sender=None, stopping=asyncio.Event(), memory=StreamMemory(1 << 20)
    )
    spec = ReadSpec(Formats(ReadFormat.BINARY, ReadFormat.BINARY))
    stream = GroupStream("s", "g", ["t"], cast(Any, member), readers, spec, 10)
    batch = await anext(aiter(stream.batches()))
    assert batch.tokens == [1, 2, 3]
    await nowhere.close()
    return stream


def test_the_next_acknowledgement_retries_a_failed_commit() -> None:
    async def scenario() -> None:
        member = FakeMember(failures=1)
        stream = await opened(member)
        with pytest.raises(RetriableError):
            await stream.acknowledge(2)
        assert await stream.acknowledge(2) == 0
        assert member.commits == [{TopicPartition("t", 0): OffsetAndMetadata(2, "")}]
        assert await stream.acknowledge(3) == 1
        assert member.commits[1:] == [{TopicPartition("t", 0): OffsetAndMetadata(3, "")}]

    asyncio.run(scenario())


def test_heartbeats_are_sent_while_the_coordinator_is_not_available() -> None:
    class Stuck(FakeMember):
        async def subscribe(self, topics: list[str]) -> None:
            await asyncio.Event().wait()

    async def scenario() -> None:
        readers: Any = SimpleNamespace(sender=None, stopping=asyncio.Event(), memory=StreamMemory(1 << 20))
        spec = ReadSpec(Formats(ReadFormat.BINARY, ReadFormat.BINARY), heartbeat_seconds=0.01)
        stream = GroupStream("s", "g", ["t"], cast(Any, Stuck(0)), readers, spec, 10)
        batches = stream.batches()
        assert [(await anext(batches)).rows for _ in range(3)] == [[], [], []]
        await cast(Any, batches).aclose()

    asyncio.run(scenario())


def test_a_repeated_acknowledgement_commits_nothing() -> None:
    async def scenario() -> None:
        member = FakeMember(failures=0)
        stream = await opened(member)
        assert [await stream.acknowledge(token) for token in (3, 3, 1)] == [3, 0, 0]
        assert len(member.commits) == 1

    asyncio.run(scenario())
