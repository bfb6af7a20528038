"""The fast path for repeated Fetch requests returns the same responses as the normal path."""

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

VERSIONS = range(4, 19)
MUTATIONS = 400
BATCHES, RECORDS_EACH = 40, 5
END = BATCHES * RECORDS_EACH
BATCH_BYTES = len(Batch(records=[NewRecord(bytes(90))] * RECORDS_EACH).encode())


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    with both_ways(tmp_path, monkeypatch) as pair:
        for side in pair:
            for _ in range(BATCHES):
                produce(side)
        yield pair


def produce(side: Side) -> None:
    batch = Batch(records=[NewRecord(bytes(90), timestamp=1_700_000_000_000)] * RECORDS_EACH).encode()
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}
    body = {"transactional_id": None, "acks": 1, "timeout": 1_000, "topic_data": [topic]}
    (answer,) = side.broker.ask("produce", 9, body)["responses"][0]["partition_responses"]
    assert answer["error_code"] == "NONE"


def frame_of(
    version: int,
    topic_id: UUID,
    offset: int,
    *,
    partition: int = 0,
    max_bytes: int = 3 * BATCH_BYTES,
    min_bytes: int = 1,
    epochs: tuple[int, int] = (-1, -1),
    rack: str = "",
) -> bytes:
    asked = {
        "partition": partition,
        "current_leader_epoch": epochs[0],
        "fetch_offset": offset,
        "last_fetched_epoch": epochs[1],
        "log_start_offset": -1,
        "partition_max_bytes": max_bytes,
    }
    body = {
        "replica_id": -1,
        "max_wait": 500,
        "min_bytes": min_bytes,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "topic_id": str(topic_id), "partitions": [asked]}],
        "forgotten_topics_data": [],
        "rack_id": rack,
    }
    flexible = request_is_flexible("fetch", version)
    return request_header(API_KEYS["fetch"], version, 77, flexible=flexible) + encode_request("fetch", version, body)


def learnt(side: Side) -> int:
    return len(side.broker._engine._fetch_fast_path._last)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_fetch_is_answered_as_the_first(
    version: int, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = sides[0]
    short.answer(frame_of(version, short.topic_id, 0))
    assert learnt(short) == 1
    # From here on, the normal path fails the test.
    with monkeypatch.context() as closed:
        closed.setattr("headgate.broker.engine.guarded", lambda *_: pytest.fail("the request was read again"))
        ours = [short.answer(frame_of(version, short.topic_id, offset)) for offset in range(0, END, 3)]
    assert ours == [sides[1].answer(frame_of(version, short.topic_id, offset)) for offset in range(0, END, 3)]
    assert all(isinstance(answer, bytes) and len(answer) > BATCH_BYTES for answer in ours)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_fast_path_rejects_unreadable_offsets_like_the_slow_path(version: int, sides: tuple[Side, Side]) -> None:
    for epochs in ((-1, -1), (0, 0), (5, -1), (-1, 7)):
        for offset in (-1, 0, 7, END - 1, END, END + 1, 2**63 - 1):
            for first in (0, offset):
                frame = frame_of(version, sides[0].topic_id, first, epochs=epochs)
                assert sides[0].answer(frame) == sides[1].answer(frame), (epochs, offset)


@pytest.mark.parametrize("max_bytes", [-1, 0, 1, BATCH_BYTES, BATCH_BYTES + 1, 2**31 - 1])
def test_the_fast_path_respects_the_limits(max_bytes: int, sides: tuple[Side, Side]) -> None:
    for min_bytes in (-1, 0, 1, BATCH_BYTES + 1, 2**31 - 1):
        for offset in (0, 0, 11, END - RECORDS_EACH, END - 1, END):
            frame = frame_of(12, sides[0].topic_id, offset, max_bytes=max_bytes, min_bytes=min_bytes)
            assert sides[0].answer(frame) == sides[1].answer(frame), (min_bytes, offset)


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_fetches_are_answered_alike(version: int, sides: tuple[Side, Side]) -> None:
    frame = frame_of(version, sides[0].topic_id, 20)

    def position_of(draw: random.Random) -> int:
        return draw.randrange(8, len(frame))

    for mutated in mutations(frame, MUTATIONS, version, position_of):
        sides[0].answer(frame)
        assert sides[0].answer(mutated) == sides[1].answer(mutated), mutated.hex()
        # Send it again: the fast path may have cached the request.
        assert sides[0].answer(mutated) == sides[1].answer(mutated), mutated.hex()


def test_a_fetch_from_another_partition_or_rack_is_another_fetch(sides: tuple[Side, Side]) -> None:
    for _ in range(2):
        for frame in (
            frame_of(12, sides[0].topic_id, 0),
            frame_of(12, sides[0].topic_id, 0, partition=1),
            frame_of(12, sides[0].topic_id, 0, partition=2),
            frame_of(12, sides[0].topic_id, 0, rack="r1"),
            frame_of(11, sides[0].topic_id, 0),
        ):
            assert sides[0].answer(frame) == sides[1].answer(frame)


def test_new_records_are_in_the_next_response(sides: tuple[Side, Side]) -> None:
    for offset in (END - 1, END, END + 1):
        frame = frame_of(12, sides[0].topic_id, offset, max_bytes=1 << 20)
        answers = [side.answer(frame) for side in sides]
        assert answers[0] == answers[1]
        for side in sides:
            produce(side)
        answers = [side.answer(frame) for side in sides]
        assert answers[0] == answers[1]
        assert isinstance(answers[0], bytes)


@pytest.mark.parametrize("version", [12, 18])
def test_a_deleted_or_recreated_topic_is_looked_up_again(version: int, sides: tuple[Side, Side]) -> None:
    frame = frame_of(version, sides[0].topic_id, 0)
    for side in sides:
        side.answer(frame)
        side.broker.ask("delete_topics", 4, {"topic_names": [TOPIC], "timeout": 1_000})
    answers = [side.answer(frame) for side in sides]
    assert answers[0] == answers[1]
    assert struct.pack(">h", 3 if version < 13 else 100) in answers[0]


def test_the_cache_is_bounded(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.dispatch.fetch_fast_path.entries_max", 5)
    engine = sides[0].broker._engine
    for connection in range(40):
        engine.execute(memoryview(frame_of(12, sides[0].topic_id, 0)).toreadonly(), "127.0.0.1", connection)
        assert 0 < learnt(sides[0]) <= 5
