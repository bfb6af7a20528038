"""Many clients that are ready in the same event-loop iteration."""

import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import ConnectionClosed, RawConnection

CLIENTS = 100
METADATA = 9
UNKNOWN_API_FRAME = struct.pack(">hhih", 9_999, 0, 77, -1)


@contextmanager
def held_still(broker: HeadgateBroker) -> Iterator[None]:
    """Suspend the broker with SIGSTOP. All requests sent meanwhile are ready when the broker resumes."""
    assert broker.process is not None
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        yield
        time.sleep(0.2)
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


def ask_for(topic: str) -> dict[str, object]:
    return {"topics": [{"name": topic}], "allow_auto_topic_creation": False}


def test_clients_that_ask_at_once_each_get_their_own_answers_in_order(attacked: HeadgateBroker) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawConnection(attacked.address)) for _ in range(CLIENTS)]
        with held_still(attacked):
            for number, client in enumerate(clients):
                for turn in range(number % 4 + 1):
                    client.send("metadata", METADATA, ask_for(f"absent-{number}-{turn}"))
        for number, client in enumerate(clients):
            for turn in range(number % 4 + 1):
                assert client.receive()["topics"][0]["name"] == f"absent-{number}-{turn}"


def test_an_answer_is_sent_although_the_next_request_of_the_same_turn_ends_the_connection(
    attacked: HeadgateBroker,
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawConnection(attacked.address)) for _ in range(CLIENTS)]
        with held_still(attacked):
            for number, client in enumerate(clients):
                client.send("metadata", METADATA, ask_for(f"absent-{number}"))
                client.send_frame(UNKNOWN_API_FRAME)
        for number, client in enumerate(clients):
            assert client.receive()["topics"][0]["name"] == f"absent-{number}"
            with pytest.raises(ConnectionClosed):
                client.receive_frame()


def test_disconnected_clients_in_the_queue_affect_no_other_client(attacked: HeadgateBroker) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawConnection(attacked.address)) for _ in range(CLIENTS)]
        with held_still(attacked):
            for client in clients:
                client.send("metadata", METADATA, ask_for("absent"))
            for number, client in enumerate(clients):
                if number % 2:
                    client.reset()
        for number, client in enumerate(clients):
            if not number % 2:
                assert client.receive()["topics"][0]["name"] == "absent"
