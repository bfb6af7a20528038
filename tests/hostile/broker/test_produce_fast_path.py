"""The fast path for repeated Produce requests returns the same responses as the normal path."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.hostile.broker.fast_and_normal_path import TOPIC, Side, both_ways, mutations
from tests.wire.entities import API_KEYS, encode_request, request_is_flexible
from tests.wire.raw_client import request_header
from tests.wire.record_batches import Batch, NewRecord

VERSIONS = range(3, 14)
MUTATIONS = 400


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    with both_ways(tmp_path, monkeypatch) as pair:
        yield pair


def learnt(side: Side) -> int:
    return len(side.broker._engine._produce_fast_path._known)


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
    assert (learnt(short), learnt(long)) == (2, 1)
    assert [partition.log.log_end_offset for partition in short.partitions] == [36, 36]


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_requests_are_answered_alike(version: int, sides: tuple[Side, Side]) -> None:
    frame = frame_of(version, sides[0].topic_id, batch_of(3, 20))
    assert sides[0].answer(frame) == sides[1].answer(frame)
    size = len(frame)
    head = size - len(batch_of(3, 20))

    def position_of(draw: random.Random) -> int:
        return draw.randrange(8, head + 30 if draw.random() < 0.8 else size)

    for mutated in mutations(frame, MUTATIONS, version, position_of):
        if is_answered_at_once(mutated):
            assert sides[0].answer(mutated) == sides[1].answer(mutated), mutated.hex()
    assert [p.log.log_end_offset for p in sides[0].partitions] == [p.log.log_end_offset for p in sides[1].partitions]


def is_answered_at_once(frame: bytes) -> bool:
    """Exclude acks=all requests: they wait for fsync, which another test covers."""
    return frame.count(struct.pack(">hi", -1, 30_000)) == 0


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


def test_the_fast_path_reports_a_failed_disk(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    """acks=all waits for fsync on the fast path too."""
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": batch_of(1, 1)}]}
    body = {"transactional_id": None, "acks": -1, "timeout": 1_000, "topic_data": [topic]}
    short = sides[0]
    for _ in range(2):
        (answer,) = short.broker.ask("produce", 9, body)["responses"][0]["partition_responses"]
        assert answer["error_code"] == "NONE"
    assert learnt(short) == 1

    def fail(descriptor: int) -> None:
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr("os.fdatasync", fail)
    (answer,) = short.broker.ask("produce", 9, body)["responses"][0]["partition_responses"]
    assert (answer["error_code"], answer["base_offset"]) == ("KAFKA_STORAGE_ERROR", -1)


def test_the_cache_is_bounded(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.dispatch.produce_fast_path.entries_max", 5)
    short = sides[0]
    for number in range(40):
        frame = frame_of(9, short.topic_id, batch_of(1, 1))
        name = f"client-{number}".encode()
        old = struct.unpack_from(">h", frame, 8)[0]
        short.answer(frame[:8] + struct.pack(">h", len(name)) + name + frame[10 + max(old, 0) :])
        assert 0 < learnt(short) <= 5
