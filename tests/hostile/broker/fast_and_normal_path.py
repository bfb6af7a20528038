"""Sends the same requests to two brokers: one uses the fast paths, the other always takes the normal path."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from headgate.broker.log.region import Region
from headgate.broker.requests.payload import Payload
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.topics import Partition
from tests.faults.in_process import InProcessBroker

TOPIC = "orders"


class Side:
    """One of the two brokers."""

    def __init__(self, data: Path, *, forgets: bool) -> None:
        self.broker = InProcessBroker(data)
        self._forgets = forgets

    def open(self) -> None:
        self.broker.__enter__()
        wanted = {"name": TOPIC, "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
        self.broker.ask("create_topics", 5, {"topics": [wanted], "timeout": 1_000, "validate_only": False})
        topic = self.broker.broker.topics.find(TOPIC)
        assert topic is not None
        self.topic_id = topic.topic_id

    def answer(self, frame: bytes) -> bytes | str:
        """Return the bytes that the socket would get, or the type of the reply if there is no response yet."""
        engine = self.broker._engine
        if self._forgets:
            engine._produce_fast_path._known.clear()
            engine._produce_fast_path._last.clear()
            engine._fetch_fast_path._last.clear()
        reply = engine.execute(memoryview(frame).toreadonly(), "127.0.0.1", 1)
        if isinstance(reply, Payload):
            return b"".join(chunk.content() if isinstance(chunk, Region) else chunk for chunk in reply.chunks)
        if isinstance(reply, Deferred):
            reply.abandon()
        return reply if isinstance(reply, bytes) else repr(type(reply))

    @property
    def partitions(self) -> list[Partition]:
        topic = self.broker.broker.topics.find(TOPIC)
        assert topic is not None
        return list(topic.partitions)


@contextmanager
def both_ways(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    # Both brokers use the same topic id, so that the same frame is valid for both.
    monkeypatch.setattr("uuid.uuid4", lambda: UUID("0a1b2c3d-4e5f-4061-8293-a4b5c6d7e8f9"))
    pair = Side(folder / "short", forgets=False), Side(folder / "long", forgets=True)
    for side in pair:
        side.open()
    yield pair
    for side in pair:
        side.broker.__exit__(None, None, None)


def mutations(frame: bytes, number: int, seed: int, position_of: Callable[[random.Random], int]) -> Iterator[bytes]:
    """Yield the frame with one byte replaced, removed, inserted or appended."""
    draw = random.Random(seed)
    for _ in range(number):
        position = position_of(draw)
        byte = bytes((draw.randrange(256),))
        kind = draw.choice(("set", "cut", "insert", "append"))
        if kind == "set":
            yield frame[:position] + byte + frame[position + 1 :]
        elif kind == "cut":
            yield frame[:position] + frame[position + 1 :]
        elif kind == "insert":
            yield frame[:position] + byte + frame[position:]
        else:
            yield frame + byte
