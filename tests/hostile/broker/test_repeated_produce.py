"""The short way of a producer's next request: whatever comes, it is answered as the long way answers it."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from broker.state.topics import Partition
from tests.faults.in_process import InProcessBroker
from tests.wire.entities import API_KEYS, encode_request, request_is_flexible
from tests.wire.raw_client import request_header
from tests.wire.record_batches import Batch, NewRecord

VERSIONS = range(3, 14)
TOPIC = "orders"
MUTATIONS = 400


class Side:
    """One broker, and a frame for it."""

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
        engine = self.broker._engine
        if self._forgets:
            engine._repeated_produce._known.clear()
            engine._repeated_produce._last.clear()
        reply = engine.execute(memoryview(frame).toreadonly(), "127.0.0.1", 1)
        return reply if isinstance(reply, bytes) else repr(type(reply))

    def learnt(self) -> int:
        return len(self.broker._engine._repeated_produce._known)


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    # The same topic id on both sides, so that the same bytes mean the same.
    monkeypatch.setattr("uuid.uuid4", lambda: UUID("0a1b2c3d-4e5f-4061-8293-a4b5c6d7e8f9"))
    pair = Side(tmp_path / "short", forgets=False), Side(tmp_path / "long", forgets=True)
    for side in pair:
        side.open()
    yield pair
    for side in pair:
        side.broker.__exit__(None, None, None)


def frame_of(version: int, topic_id: UUID, batch: bytes, partition: int = 0, acks: int = 1) -> bytes:
    body = {
        "transactional_id": None,
        "acks": acks,
        "timeout": 30_000,
        "topic_data": [
            {"name": TOPIC, "topic_id": str(topic_id), "partition_data": [{"index": partition, "records": batch}]}
        ],
    }
    flexible = request_is_flexible("produce", version)
    return request_header(API_KEYS["produce"], version, 77, flexible=flexible) + encode_request(
        "produce", version, body
    )


def batch_of(count: int, value_bytes: int) -> bytes:
    return Batch(records=[NewRecord(bytes(value_bytes))] * count).encode()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_request_is_answered_as_the_first(version: int, sides: tuple[Side, Side]) -> None:
    short, long = sides
    for count, size in [(3, 10), (1, 0), (30, 100), (2, 70_000)]:
        for partition in (0, 1):
            answers = [
                side.answer(frame_of(version, side.topic_id, batch_of(count, size), partition)) for side in sides
            ]
            assert answers[0] == answers[1]
    assert (short.learnt(), long.learnt()) == (2, 1)
    assert [partition.log.log_end_offset for partition in topic_of(short)] == [36, 36]


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_requests_are_answered_alike(version: int, sides: tuple[Side, Side]) -> None:
    draw = random.Random(version)
    frames = [frame_of(version, side.topic_id, batch_of(3, 20)) for side in sides]
    assert sides[0].answer(frames[0]) == sides[1].answer(frames[1])
    size = len(frames[0])
    head = size - len(batch_of(3, 20))
    for _ in range(MUTATIONS):
        position = draw.randrange(8, head + 30 if draw.random() < 0.8 else size)
        byte = bytes((draw.randrange(256),))
        kind = draw.choice(("set", "cut", "insert", "append"))
        mutated = []
        for frame in frames:
            if kind == "set":
                changed = frame[:position] + byte + frame[position + 1 :]
            elif kind == "cut":
                changed = frame[:position] + frame[position + 1 :]
            elif kind == "insert":
                changed = frame[:position] + byte + frame[position:]
            else:
                changed = frame + byte
            mutated.append(changed)
        if not is_answered_at_once(mutated[0]):
            continue
        assert sides[0].answer(mutated[0]) == sides[1].answer(mutated[1]), (kind, position, byte)
    assert [p.log.log_end_offset for p in topic_of(sides[0])] == [p.log.log_end_offset for p in topic_of(sides[1])]


def is_answered_at_once(frame: bytes) -> bool:
    """acks=all waits for the disk, which is another test's."""
    return frame.count(struct.pack(">hi", -1, 30_000)) == 0


def topic_of(side: Side) -> list[Partition]:
    topic = side.broker.broker.topics.find(TOPIC)
    assert topic is not None
    return list(topic.partitions)


def test_a_topic_that_was_deleted_is_not_written_to(sides: tuple[Side, Side]) -> None:
    for side in sides:
        frame = frame_of(9, side.topic_id, batch_of(1, 1))
        side.answer(frame)
        side.answer(frame)
        side.broker.ask("delete_topics", 4, {"topic_names": [TOPIC], "timeout": 1_000})
    answers = [side.answer(frame_of(9, side.topic_id, batch_of(1, 1))) for side in sides]
    assert answers[0] == answers[1]
    assert struct.pack(">h", 3) in answers[0]


def test_a_batch_refused_on_the_short_way_gets_its_reason(sides: tuple[Side, Side]) -> None:
    for side in sides:
        side.answer(frame_of(9, side.topic_id, batch_of(3, 20)))
    bad = Batch(records=[NewRecord(b"v")] * 3, crc=5).encode()
    answers = [side.answer(frame_of(9, side.topic_id, bad)) for side in sides]
    assert answers[0] == answers[1]
    assert b"checksum" in answers[0]


def test_a_disk_that_fails_is_told_on_the_short_way_too(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """acks=all waits for the disk: a producer's next request as its first."""
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": batch_of(1, 1)}]}
    body = {"transactional_id": None, "acks": -1, "timeout": 1_000, "topic_data": [topic]}
    short = sides[0]
    for _ in range(2):
        (answer,) = short.broker.ask("produce", 9, body)["responses"][0]["partition_responses"]
        assert answer["error_code"] == "NONE"
    assert short.learnt() == 1

    def fail(descriptor: int) -> None:
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr("os.fdatasync", fail)
    (answer,) = short.broker.ask("produce", 9, body)["responses"][0]["partition_responses"]
    assert (answer["error_code"], answer["base_offset"]) == ("KAFKA_STORAGE_ERROR", -1)


def test_what_is_remembered_is_bounded(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.handlers.produce_again.remembered_max", 5)
    short = sides[0]
    for number in range(40):
        frame = frame_of(9, short.topic_id, batch_of(1, 1))
        name = f"client-{number}".encode()
        old = struct.unpack_from(">h", frame, 8)[0]
        short.answer(frame[:8] + struct.pack(">h", len(name)) + name + frame[10 + max(old, 0) :])
        assert 0 < short.learnt() <= 5
