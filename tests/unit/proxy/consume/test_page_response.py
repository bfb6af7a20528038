"""A page keeps its memory reserved until the client has read it."""

import asyncio
from typing import Any

from headgate.proxy.api.page_response import PIECE_BYTES, PageResponse
from headgate.proxy.reading.memory import StreamMemory


async def nothing() -> Any:
    raise AssertionError("a page asks for no message")


def test_a_page_is_sent_in_pieces_and_releases_its_memory_after_the_last_one() -> None:
    memory = StreamMemory(PIECE_BYTES)
    body = bytes(range(256)) * (PIECE_BYTES // 256) * 2 + b"end"
    sent: list[dict[str, Any]] = []
    held: list[int] = []

    async def send(message: Any) -> None:
        sent.append(message)
        held.append(memory.bytes)

    asyncio.run(PageResponse(body, memory.share(), "application/json")({}, nothing, send))
    start, *pieces = sent
    assert dict(start["headers"])[b"content-length"] == str(len(body)).encode()
    assert b"".join(piece["body"] for piece in pieces) == body
    assert [piece["more_body"] for piece in pieces] == [True, True, False]
    assert set(held) == {len(body)}
    assert memory.bytes == 0


def test_an_empty_page_is_complete() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(PageResponse(b"", StreamMemory(1).share(), "application/json")({}, nothing, send))
    assert [message.get("more_body") for message in sent] == [None, False]


def test_a_client_that_reads_nothing_loses_its_memory_to_the_next_one() -> None:
    async def scenario() -> None:
        memory = StreamMemory(PIECE_BYTES, slow_seconds=0.0)

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        page = PageResponse(bytes(2 * PIECE_BYTES), memory.share(), "application/json")
        slow = asyncio.create_task(page({}, nothing, send))
        for _ in range(5):
            await asyncio.sleep(0)
        assert memory.is_full
        async with asyncio.timeout(30):
            await memory.share().reserve()
            await slow

    asyncio.run(scenario())
