"""One reachable bootstrap address suffices, whether the others refuse connections or never respond."""

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import errors as kafka

from headgate.kafka_client import aiokafka_internals
from headgate.kafka_client.aiokafka_internals import MetadataClient
from headgate.kafka_client.bootstrap import first_responding
from tests.live.ports import free_port


async def never(address: str) -> None:
    await asyncio.Event().wait()


def connecting(silent: str, refused: str) -> Callable[[str], Any]:
    async def connect(address: str) -> None:
        if address in silent:
            await never(address)
        if address in refused:
            raise ConnectionRefusedError(address)

    return connect


@pytest.mark.parametrize(
    ("silent", "refused", "chosen"),
    [("", "", "a"), ("a", "", "b"), ("", "ab", "c"), ("ab", "", "c"), ("a", "b", "c"), ("b", "a", "c")],
)
def test_the_first_address_that_responds_is_chosen(silent: str, refused: str, chosen: str) -> None:
    async def run() -> str:
        found = await first_responding("abc", connecting(silent, refused), 0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "attempts were left running"
        return found

    assert asyncio.run(run()) == chosen


def test_all_failures_raise_the_last_one() -> None:
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(first_responding("ab", connecting("", "ab"), 0.01))


def test_a_slow_address_is_not_given_up_while_others_are_tried() -> None:
    async def run() -> str:
        later = asyncio.Event()

        async def connect(address: str) -> None:
            if address == "b":
                later.set()
                await never(address)
            await later.wait()

        return await first_responding("ab", connect, 0.01)

    assert asyncio.run(run()) == "a"


@contextmanager
def silent_port() -> Iterator[int]:
    """Accepts connections, as a stopped process does, and never responds."""
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        yield int(listener.getsockname()[1])


@contextmanager
def closed_port() -> Iterator[int]:
    yield free_port()


@pytest.mark.parametrize("dead", [silent_port, closed_port])
def test_a_dead_bootstrap_address_that_comes_first_does_not_matter(
    dead: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "shuffle", lambda hosts: None)
    asked: list[str] = []

    async def bootstrap(client: Any) -> None:
        asked.extend(f"{host}:{port}" for host, port, _ in client.hosts)

    monkeypatch.setattr(aiokafka_internals._Client, "bootstrap", bootstrap)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # ApiVersions v0: correlation id, no error, one API.
        size = int.from_bytes(await reader.readexactly(4))
        correlation = (await reader.readexactly(size))[4:8]
        apis = (1).to_bytes(4) + (18).to_bytes(2) + (0).to_bytes(2) + (0).to_bytes(2)
        body = correlation + (0).to_bytes(2) + apis
        writer.write(len(body).to_bytes(4) + body)
        await reader.read()
        writer.close()

    async def run(dead_port: int) -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", free_port())
        async with server:
            live = server.sockets[0].getsockname()[1]
            client: Any = MetadataClient(bootstrap_servers=f"127.0.0.1:{dead_port},127.0.0.1:{live}")
            await client.bootstrap()
            assert asked == [f"127.0.0.1:{live}", f"127.0.0.1:{dead_port}"]

    with dead() as dead_port:
        asyncio.run(run(dead_port))


def test_no_bootstrap_address_that_responds_is_a_connection_error() -> None:
    async def run() -> None:
        client: Any = MetadataClient(bootstrap_servers=f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}")
        with pytest.raises(kafka.KafkaConnectionError, match="Unable to bootstrap"):
            await client.bootstrap()

    asyncio.run(run())
