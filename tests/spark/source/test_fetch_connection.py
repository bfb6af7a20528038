"""Answers received where they are read: by whom, in which pieces they come, and what becomes of nonsense."""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import errors as kafka
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

from headgate.kafka_client.aiokafka_internals import BrokerConnection
from headgate.kafka_client.connection import open_fetch_connection
from headgate.kafka_client.options import ConnectionOptions
from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.receive_buffer import Block
from tests.live.ports import free_port

API_VERSIONS, FETCH = 18, 1
RECORDS = bytes(range(256)) * 300
Answer = bytes | None
"""None: the connection is closed in its place."""


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def fetch_answer(number: int, records: bytes | None, topic: str = "t") -> bytes:
    """Of version 4."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    size = -1 if records is None else len(records)
    row = struct.pack(">ihqqii", 0, 0, 9, 9, -1, size) + (records or b"")
    return framed(struct.pack(">iii", number, 0, 1) + name + struct.pack(">i", 1) + row)


@asynccontextmanager
async def connection_to(answers: Sequence[Answer], timeout_ms: int = 5000) -> AsyncIterator[BrokerConnection]:
    """To a broker that sends these, one for each fetch, in crumbs."""
    left = list(answers)
    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await answer_all(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            api_key, _, number = struct.unpack(">hhi", (await reader.readexactly(size))[:8])
            if api_key == API_VERSIONS:
                answer: Answer = framed(struct.pack(">ihi", number, 0, 2) + struct.pack(">6h", FETCH, 4, 4, 18, 0, 0))
            elif not left:
                continue
            else:
                answer = left.pop(0)
            if answer is None:
                return
            for at in range(0, len(answer), 50_001):
                writer.write(answer[at : at + 50_001])
                await writer.drain()

    port = free_port()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    options = ConnectionOptions((f"127.0.0.1:{port}",), request_timeout_ms=timeout_ms)
    connection = await open_fetch_connection("127.0.0.1", port, options)
    try:
        yield connection
    finally:
        connection.end()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*filter(None, serving))


def request() -> Any:
    return FetchRequest(10, 1, 1 << 20, 0, [("t", [(0, 0, 1 << 20)])])


def records_of(answer: Any) -> Any:
    ((_, ((*_, records),)),) = answer.topics
    return records


def test_records_lie_in_the_block_of_their_request() -> None:
    async def run() -> None:
        # The first request was the one for the versions.
        async with connection_to([fetch_answer(2, RECORDS), fetch_answer(3, RECORDS[::-1])]) as connection:
            one, other = Block(), Block()
            coming = [connection.fetch(request(), one), connection.fetch(request(), other)]
            first, second = [records_of(await answer) for answer in coming]
        assert bytes(first) == RECORDS
        assert bytes(second) == RECORDS[::-1]
        one.room(len(RECORDS) // 2)[:] = bytes(len(RECORDS) // 2)
        assert bytes(first) != RECORDS
        assert bytes(second) == RECORDS[::-1]

    asyncio.run(run())


@pytest.mark.parametrize("records", [None, b"", b"few"])
def test_an_answer_may_hold_little_or_nothing(records: bytes | None) -> None:
    async def run() -> None:
        async with connection_to([fetch_answer(2, records)]) as connection:
            assert records_of(await connection.fetch(request(), Block())) == records

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        None,
        fetch_answer(77, RECORDS),
        fetch_answer(2, RECORDS, topic="t" * 5000),
        struct.pack(">i", 0),
        struct.pack(">i", -5) + RECORDS,
        framed(b"\0\0"),
        framed(struct.pack(">iii", 2, 0, 1_000_000)),
        fetch_answer(2, RECORDS)[:1000],
    ],
    ids=["closed", "number", "name", "empty", "negative", "short", "count", "cut off"],
)
def test_an_invalid_response_ends_the_connection_and_fails_the_request(answer: Answer) -> None:
    async def run() -> None:
        # A second, closed in place of an answer, ends the wait for the rest of one that is cut off.
        async with connection_to([answer, None]) as connection:
            coming = [connection.fetch(request(), Block()), connection.fetch(request(), Block())]
            for waiting in coming:
                with pytest.raises(kafka.KafkaConnectionError):
                    await waiting
            assert not connection.is_open

    asyncio.run(run())


def test_the_response_of_an_abandoned_request_is_discarded() -> None:
    async def run() -> None:
        answers = [fetch_answer(2, RECORDS), fetch_answer(3, b"next")]
        async with connection_to(answers) as connection:
            given_up = asyncio.ensure_future(connection.fetch(request(), Block()))
            await asyncio.sleep(0)
            given_up.cancel()
            assert records_of(await connection.fetch(request(), Block())) == b"next"

    asyncio.run(run())


def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_allowed() -> None:
    async def run() -> None:
        async with connection_to([], timeout_ms=50) as connection:
            with pytest.raises(TimeoutError):
                await connection.fetch(request(), Block())

    asyncio.run(run())


def test_an_answer_that_was_given_up_cannot_come_over_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self) -> None:
            self.given: list[memoryview] = []

        async def fetch(self, asked: Any, block: Block) -> Any:
            self.given.append(block.room(4))
            raise TimeoutError

    async def run() -> None:
        cluster, slow, block = Cluster(ConnectionOptions(("127.0.0.1:1",))), Slow(), Block()
        for name, found in {"_connected": None, "_leader": 1, "_fetching_from": slow}.items():
            monkeypatch.setattr(cluster, name, AsyncMock(return_value=found))
        with pytest.raises(kafka.RequestTimedOutError):
            await cluster._fetch_once(TopicPartition("t", 0), request(), block)
        following = block.room(4)
        following[:] = b"next"
        slow.given[0][:] = b"late"
        assert bytes(following) == b"next"

    asyncio.run(run())
