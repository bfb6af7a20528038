"""Fairness: clients that pipeline requests do not delay a client that sends one request at a time."""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from headgate.broker.engine import Reply
from headgate.broker.log.page_cache import ColdReads
from headgate.broker.server import connection as connection_module
from headgate.broker.server.connection import Connection, requests_per_turn_max
from headgate.broker.server.readiness import Readiness, held_senders_max

GREEDY_CLIENTS = 20
REQUESTS_EACH = 1_000
FRAME = struct.pack(">i", 8) + bytes(8)
RESPONSE = b"response"
WAIT_SECONDS = 60


class RecordingEngine:
    """Answers every request and records the connection that sent it."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.cold_reads = ColdReads(lambda callback: None)
        self.on_execute: Callable[[int], None] = lambda executed: None

    def execute(self, frame: memoryview, client_host: str, connection_id: int) -> Reply:
        self.order.append(connection_id)
        self.on_execute(len(self.order))
        return RESPONSE


class Memory:
    def __init__(self) -> None:
        self.receive_buffer = memoryview(bytearray(256 * 1024))
        self.received = self.receive_buffer.toreadonly()
        self.frame_bytes_max = 1024
        self.spare_frame: bytearray | None = None
        self.reserved_bytes = 0

    def reserve(self, size_bytes: int, holder: int) -> bool:
        self.reserved_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        self.reserved_bytes -= size_bytes

    def now_ms(self) -> int:
        return 0


class Served:
    """Connections over socket pairs. `clients` holds the client ends."""

    def __init__(self, connections: int) -> None:
        self.engine = RecordingEngine()
        self.memory = Memory()
        self.clients: list[socket.socket] = []
        self._readiness = Readiness(asyncio.get_running_loop())
        self._connections: list[Connection] = []
        for number in range(connections):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.settimeout(WAIT_SECONDS)
            self.clients.append(theirs)
            engine: object = self.engine
            self._connections.append(
                Connection(ours, number, "test", engine, self._readiness, self.memory, lambda closed: None)  # type: ignore[arg-type]  # of the engine, a connection uses these two
            )

    def close(self) -> None:
        for connection in self._connections:
            connection.close(None)
        for client in self.clients:
            client.close()
        self._readiness.close()


@contextmanager
def serving(connections: int) -> Iterator[Served]:
    served = Served(connections)
    try:
        yield served
    finally:
        served.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110  # each iteration of the loop serves connections
            await asyncio.sleep(0)


def test_a_request_is_executed_before_the_backlog_of_clients_that_pipeline() -> None:
    async def scenario() -> None:
        with serving(GREEDY_CLIENTS + 1) as served:
            polite, greedy = served.clients[-1], served.clients[:-1]
            sent_after: list[int] = []

            def send_at_the_200th(executed: int) -> None:
                if executed == 200:
                    polite.send(FRAME)
                    sent_after.append(executed)

            served.engine.on_execute = send_at_the_200th
            for client in greedy:
                client.sendall(FRAME * REQUESTS_EACH)
            await until(lambda: GREEDY_CLIENTS in served.engine.order)
            waited = served.engine.order.index(GREEDY_CLIENTS) - sent_after[0]
            # The client waits at most for the rest of the current iteration and for one more iteration.
            assert waited <= 2 * GREEDY_CLIENTS * requests_per_turn_max

    asyncio.run(scenario())


def test_clients_that_pipeline_are_served_round_robin(monkeypatch: pytest.MonkeyPatch) -> None:
    # Raise the time limit of a turn: on a busy machine it would limit the number of requests.
    monkeypatch.setattr(connection_module, "turn_seconds_max", WAIT_SECONDS)

    async def scenario() -> None:
        with serving(GREEDY_CLIENTS) as served:
            for client in served.clients:
                client.sendall(FRAME * REQUESTS_EACH)
            await until(lambda: len(served.engine.order) >= GREEDY_CLIENTS * REQUESTS_EACH // 2)
            executed = Counter(served.engine.order)
            assert max(executed.values()) - min(executed[number] for number in range(GREEDY_CLIENTS)) <= (
                2 * requests_per_turn_max
            )

    asyncio.run(scenario())


@pytest.mark.parametrize("connections", [1, 3])
def test_every_pipelined_request_gets_its_response_although_the_client_reads_late(connections: int) -> None:
    async def scenario() -> None:
        requests = 50_000
        with serving(connections) as served:
            for client in served.clients:
                client.setblocking(False)
            received = [0] * connections
            unsent = [memoryview(FRAME * requests)] * connections
            async with asyncio.timeout(WAIT_SECONDS):
                while min(received) < requests * len(RESPONSE):
                    for number, client in enumerate(served.clients):
                        with suppress(BlockingIOError):
                            while unsent[number]:
                                unsent[number] = unsent[number][client.send(unsent[number]) :]
                                await asyncio.sleep(0)
                        with suppress(BlockingIOError):
                            received[number] += len(client.recv(1 << 16))
                    await asyncio.sleep(0)
            assert received == [requests * len(RESPONSE)] * connections
            assert Counter(served.engine.order) == dict.fromkeys(range(connections), requests)
            assert served.memory.reserved_bytes == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("connections", [held_senders_max, held_senders_max + 1, 2 * held_senders_max + 9])
def test_every_client_gets_its_response_when_more_are_ready_than_hold_responses(connections: int) -> None:
    async def scenario() -> None:
        with serving(connections) as served:
            for client in served.clients:
                client.setblocking(False)
            for rounds in (1, 2):
                for client in served.clients:
                    client.send(FRAME)
                await until(lambda rounds=rounds: len(served.engine.order) == rounds * connections)  # type: ignore[misc]
                unanswered = set(range(connections))

                def receive(unanswered: set[int] = unanswered) -> bool:
                    for number in list(unanswered):
                        with suppress(BlockingIOError):
                            assert served.clients[number].recv(100) == RESPONSE
                            unanswered.discard(number)
                    return not unanswered

                # All requests are executed. The broker flushes the responses at the end of the iteration.
                for _ in range(3):
                    await asyncio.sleep(0)
                assert receive(), f"no response to {sorted(unanswered)}"

    asyncio.run(scenario())
