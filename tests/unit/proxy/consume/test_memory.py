import asyncio

import pytest

from headgate.proxy.reading.memory import STEP_BYTES, StreamMemory, TooSlow

WAIT_SECONDS_MAX = 30.0


def test_a_stream_waits_until_memory_is_free() -> None:
    async def scenario() -> None:
        memory = StreamMemory(STEP_BYTES)
        first, second = memory.share(), memory.share()
        await first.reserve()
        waiting = asyncio.create_task(second.reserve())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        first.resize(0)
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await waiting
        assert memory.bytes == STEP_BYTES

    asyncio.run(scenario())


def test_the_slowest_client_is_disconnected_first() -> None:
    async def scenario() -> None:
        memory = StreamMemory(2 * STEP_BYTES, slow_seconds=0.0)
        ended: list[str] = []

        async def stuck(name: str) -> None:
            share = memory.share()
            await share.reserve()
            with pytest.raises(TooSlow):
                async with share.sending():
                    await asyncio.Event().wait()
            ended.append(name)
            share.resize(0)

        async with asyncio.timeout(WAIT_SECONDS_MAX):
            first = asyncio.create_task(stuck("first"))
            await asyncio.sleep(0)
            second = asyncio.create_task(stuck("second"))
            await asyncio.sleep(0)
            await memory.share().reserve()
            await first
            assert ended == ["first"]
            await memory.share().reserve()
            await second
        assert memory.bytes == 2 * STEP_BYTES

    asyncio.run(scenario())


def test_clients_that_read_are_not_disconnected() -> None:
    async def scenario() -> None:
        memory = StreamMemory(STEP_BYTES, slow_seconds=3600.0)
        share, other = memory.share(), memory.share()
        await share.reserve()
        waiting = asyncio.create_task(other.reserve())
        async with share.sending():
            for _ in range(5):
                await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(scenario())
