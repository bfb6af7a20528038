"""Reports that a client has not read yet: backpressure at the limit, and clients that stop reading."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headgate.proxy.producers import report_buffer
from headgate.proxy.producers.report_buffer import ClientStalled, ReportBuffer, ReportMemory

SECONDS = 5
"""Limit of a wait that ends at once, unless the test fails."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_buffer, "own_bytes_max", 10)
    monkeypatch.setattr(report_buffer, "piece_bytes_max", 4)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(SECONDS):
            await scenario()

    asyncio.run(limited())


async def is_blocked(task: "asyncio.Future[None]") -> bool:
    for _ in range(10):
        await asyncio.sleep(0)
    return not task.done()


def test_pieces_have_a_limited_size_and_end_with_the_stream() -> None:
    async def scenario() -> None:
        memory = ReportMemory(1000)
        buffer = ReportBuffer(memory, 1)
        await buffer.put(b"abcdefghij")
        await buffer.put(b"kl")
        assert memory.bytes == 12
        buffer.end()
        assert [piece async for piece in buffer.pieces()] == [b"abcd", b"efgh", b"ij", b"kl"]
        assert memory.bytes == 0

    run(scenario)


def test_a_reader_waits_for_the_next_report_and_for_the_end() -> None:
    async def scenario() -> None:
        buffer = ReportBuffer(ReportMemory(1000), 1)
        read: list[bytes] = []

        async def reader() -> None:
            async for piece in buffer.pieces():
                read[:] = [*read, piece]

        task = asyncio.ensure_future(reader())
        assert await is_blocked(task)
        await buffer.put(b"abc")
        assert await is_blocked(task)
        assert read == [b"abc"]
        buffer.end()
        await task

    run(scenario)


def test_memory_counts_a_piece_until_it_is_sent() -> None:
    async def scenario() -> None:
        memory = ReportMemory(1000)
        buffer = ReportBuffer(memory, 1)
        await buffer.put(b"abcdef")
        pieces = buffer.pieces()
        assert await anext(pieces) == b"abcd"
        assert memory.bytes == 6
        assert await anext(pieces) == b"ef"
        assert memory.bytes == 2
        buffer.clear()
        assert memory.bytes == 0

    run(scenario)


@pytest.mark.parametrize(
    ("bytes_max", "others", "own", "blocks"),
    [(100, 89, 11, True), (100, 88, 11, False), (100, 90, 10, False), (100, 200, 11, True)],
)
def test_a_stream_waits_at_the_limit_of_all_streams_beyond_its_own_share(
    bytes_max: int, others: int, own: int, blocks: bool
) -> None:
    async def scenario() -> None:
        memory = ReportMemory(bytes_max)
        memory.resize(others)
        buffer = ReportBuffer(memory, 1)
        task = asyncio.ensure_future(buffer.put(b"x" * own))
        assert await is_blocked(task) == blocks
        # Another stream frees memory.
        memory.resize(bytes_max - others - own - 1 if blocks else 0)
        await task

    run(scenario)


def test_a_stream_continues_when_its_client_reads_although_the_memory_is_full() -> None:
    async def scenario() -> None:
        memory = ReportMemory(100)
        memory.resize(200)
        buffer = ReportBuffer(memory, 1)
        task = asyncio.ensure_future(buffer.put(b"x" * 14))
        pieces = buffer.pieces()
        await anext(pieces)
        assert await is_blocked(task)
        await anext(pieces)
        # Ten bytes are the share of the stream.
        await task

    run(scenario)


def test_memory_that_stays_full_wakes_no_stream() -> None:
    async def scenario() -> None:
        memory = ReportMemory(100)
        memory.resize(150)
        task = asyncio.ensure_future(memory.wait_for_room())
        memory.resize(-50)
        assert await is_blocked(task)
        memory.resize(-1)
        await task
        await memory.wait_for_room()

    run(scenario)


@pytest.mark.parametrize("reason", ["ended", "waiting"])
def test_a_client_that_reads_nothing_is_disconnected_once_the_stream_needs_it(reason: str) -> None:
    async def scenario() -> None:
        memory = ReportMemory(100)
        memory.resize(100)
        buffer = ReportBuffer(memory, 0.01)
        waiting: list[asyncio.Future[None]] = []
        # While records flow, a client may read as slowly as it likes.
        async with buffer.sending():
            await asyncio.sleep(0.05)

        async def stalled() -> None:
            async with buffer.sending():
                if reason == "ended":
                    buffer.end()
                else:
                    waiting.append(asyncio.ensure_future(buffer.put(b"x" * 11)))
                await asyncio.sleep(SECONDS)

        with pytest.raises(ClientStalled, match=r"took no reports for 0\.01 s while \d+ bytes were waiting"):
            await stalled()
        for task in waiting:
            task.cancel()
            await asyncio.wait((task,))
            # Without a stream that waits for memory, there is no limit.
            async with buffer.sending():
                await asyncio.sleep(0.05)

    run(scenario)


def test_the_limit_of_a_write_ends_when_the_stream_continues() -> None:
    async def scenario() -> None:
        memory = ReportMemory(100)
        memory.resize(100)
        buffer = ReportBuffer(memory, 0.3)
        async with buffer.sending():
            task = asyncio.ensure_future(buffer.put(b"x" * 11))
            await asyncio.sleep(0)
            memory.resize(-50)
            await task
            await asyncio.sleep(0.35)

    run(scenario)


def test_a_stream_that_ends_before_a_write_limits_it() -> None:
    async def scenario() -> None:
        buffer = ReportBuffer(ReportMemory(100), 0.01)
        buffer.end()
        with pytest.raises(ClientStalled):
            async with buffer.sending():
                await asyncio.sleep(SECONDS)

    run(scenario)
