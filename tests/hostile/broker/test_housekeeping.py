"""Housekeeping: timers continue after a failure, memory of closed clients is freed, long-running work is sliced."""

import asyncio
import json
import struct
from collections.abc import Generator
from pathlib import Path

import pytest

from headgate.broker.engine import Engine
from headgate.broker.log.checked_file import read_checked
from headgate.broker.log.producer_state import ProducerStates, producers_max
from headgate.broker.node.opening import open_broker
from headgate.broker.protocol.outcomes import Answer, Disconnect
from headgate.broker.runtime import clock as clocks
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices, slice_ms_max
from headgate.broker.server import server as server_module
from headgate.broker.server.server import Server
from headgate.broker.state.settings import BrokerSettings
from headgate.wire.record_batch import read_header
from tests.faults.in_process import InProcessBroker
from tests.manual_clock import ManualClock
from tests.wire.entities import API_KEYS, encode_request
from tests.wire.raw_client import request_header
from tests.wire.record_batches import Batch


def test_a_planned_call_that_fails_keeps_no_other_from_being_made() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    made: list[str] = []

    def fails() -> None:
        raise RuntimeError("on purpose")

    timers.after(1, fails)
    timers.after(2, lambda: made.append("second"))
    clock.advance(5)
    timers.run_due()
    assert made == ["second"]
    assert timers.next_deadline_ms() is None


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers(ManualClock())
    kept = timers.after(10, lambda: None)
    for _ in range(100 * clocks.cancelled_timers_min):
        timers.after(2**31, lambda: None).cancel()
    assert len(timers._heap) < 3 * clocks.cancelled_timers_min
    assert timers.next_deadline_ms() == kept.deadline_ms


def test_housekeeping_goes_on_after_a_round_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    broker = open_broker(tmp_path, BrokerSettings({}), lambda callback: callback(), clock=clock)
    rounds: list[int] = []

    def fails() -> None:
        rounds.append(clock.monotonic_ms())
        raise StorageError("no")

    monkeypatch.setattr(broker.directory, "remove_set_aside", fails)
    for _ in range(3):
        clock.advance(broker.settings.log_retention_check_interval_ms)
        broker.timers.run_due()
        broker.removal.join(10)
    assert len(rounds) == 3
    monkeypatch.undo()
    broker.close()


@pytest.fixture
def in_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run long-running work in one time slice, even on a slow machine."""
    monkeypatch.setattr("headgate.broker.runtime.time_slicing.slice_ms_max", 60_000)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_checkpoint_writes_the_recovery_points_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_slice: None, acks: int
) -> None:
    with InProcessBroker(tmp_path) as running:
        topics = [{"name": f"t{number}", "num_partitions": 1, "replication_factor": 1} for number in range(20)]
        running.ask("create_topics", 5, {"topics": topics})
        for number in range(20):
            produce_to(running, f"t{number}", acks)
        written: list[dict[str, int]] = []
        monkeypatch.setattr(running.broker.directory, "write_recovery_points", written.append)
        running.broker.checkpoints.run()
        while not written:
            running._posted.get(timeout=10)()
        assert {f"t{number}-0": 1 for number in range(20)}.items() <= written[0].items()
        assert len(written) == 1
        monkeypatch.undo()


def test_a_recreated_topic_has_no_records_of_the_deleted_one(tmp_path: Path, in_one_slice: None) -> None:
    with InProcessBroker(tmp_path) as running:
        for name in ("kept", "t"):
            create(running, name)
            produce_to(running, name, -1)
        running.broker.checkpoints.run()
        assert recovery_points(tmp_path) == {"kept-0": 1, "t-0": 1, "__cluster_metadata-0": 2}
        running.ask("delete_topics", 5, {"topic_names": ["t"]})
        create(running, "t")
        assert recovery_points(tmp_path) == {"kept-0": 1, "__cluster_metadata-0": 2}


def test_a_checkpoint_forgets_topics_that_are_gone(tmp_path: Path, in_one_slice: None) -> None:
    with InProcessBroker(tmp_path) as running:
        for name in ("kept", "t"):
            create(running, name)
            produce_to(running, name, -1)
        running.broker.checkpoints.run()
        running.ask("delete_topics", 5, {"topic_names": ["t"]})
        running.broker.checkpoints.run()
        assert "t-0" not in recovery_points(tmp_path)


def test_a_checkpoint_under_way_leaves_a_new_topic_alone(tmp_path: Path, in_one_slice: None) -> None:
    with InProcessBroker(tmp_path) as running:
        create(running, "t")
        produce_to(running, "t", 1)
        running.broker.checkpoints.run()
        running.ask("delete_topics", 5, {"topic_names": ["t"]})
        create(running, "t")
        running._posted.get(timeout=10)()
        assert {path.suffix for path in (tmp_path / "t-0").iterdir()} <= {".log", ".metadata"}
        assert "t-0" not in recovery_points(tmp_path)


def create(running: InProcessBroker, name: str) -> None:
    running.ask("create_topics", 5, {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}]})


def produce_to(running: InProcessBroker, name: str, acks: int) -> None:
    data = [{"name": name, "partition_data": [{"index": 0, "records": Batch().encode()}]}]
    running.ask("produce", 7, {"acks": acks, "topic_data": data})


def recovery_points(data: Path) -> dict[str, int]:
    stored = read_checked(data / "recovery-points")
    assert stored is not None
    points: dict[str, int] = json.loads(stored.content)
    return points


def test_an_abandoned_long_poll_leaves_no_waiter_and_no_timer(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as running:
        running.ask("create_topics", 5, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]})
        wanted = {"partition": 0, "partition_max_bytes": 1000}
        topics = [{"topic": "t", "partitions": [wanted]}]
        body = {"max_wait": 2**31 - 1, "min_bytes": 1, "max_bytes": 1000, "topics": topics}
        frame = request_header(API_KEYS["fetch"], 11, 7, flexible=False) + encode_request("fetch", 11, body)
        reply = Engine(running.broker).execute(memoryview(frame), "127.0.0.1", 1)
        assert isinstance(reply, Deferred)
        topic = running.broker.topics.find("t")
        assert topic is not None
        assert len(topic.partitions[0].waiters) == 1
        reply.abandon()
        assert not topic.partitions[0].waiters
        data = [{"name": "t", "partition_data": [{"index": 0, "records": Batch().encode()}]}]
        assert running.ask("produce", 7, {"acks": 1, "topic_data": data})["responses"]


def test_long_work_is_done_in_slices() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    slices = TimeSlices(clock, timers, Disconnect("failed"))

    def work(steps: int) -> Generator[None, None, Answer]:
        for _ in range(steps):
            clock.advance(slice_ms_max // 2 + 1)
            yield
        return {"done": steps}

    assert slices.run(work(1)) == {"done": 1}
    promise = slices.run(work(7))
    assert isinstance(promise, Deferred)
    slice_count = 0
    while not promise.done:
        timers.run_due()
        slice_count += 1
    assert slice_count >= 3


def test_long_work_that_fails_ends_the_connection() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    slices = TimeSlices(clock, timers, Disconnect("failed"))

    def work() -> Generator[None, None, Answer]:
        clock.advance(slice_ms_max)
        yield
        raise RuntimeError("half way")

    promise = slices.run(work())
    assert isinstance(promise, Deferred)
    outcomes: list[Answer | Disconnect] = []
    promise.then(outcomes.append)
    timers.run_due()
    assert isinstance(outcomes[0], Disconnect)


def test_made_up_producers_are_forgotten_from_the_oldest_on() -> None:
    states = ProducerStates()
    header = read_header(Batch(producer_id=0, producer_epoch=0, base_sequence=0).encode())
    for number in range(producers_max + 10):
        states.record(header._replace(producer_id=number), number, number)
    assert len(states.by_id) <= producers_max
    assert 0 not in states.by_id
    assert producers_max + 9 in states.by_id


def test_stalled_clients_make_room_for_active_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "partial_requests_bytes_max", 4 * 1024 * 1024)
    monkeypatch.setattr(server_module, "stalled_request_ms_min", 100)

    async def scenario() -> tuple[bytes, bytes]:
        server = Server(tmp_path, BrokerSettings({}), "127.0.0.1", 0)
        address = server.start()
        half = struct.pack(">i", 50_000_000) + bytes(1024 * 1024)
        stalled = [await asyncio.open_connection(*address) for _ in range(2)]
        for _, writer in stalled:
            writer.write(half)
            await writer.drain()
        await asyncio.sleep(0.3)
        reader, sender = await asyncio.open_connection(*address)
        topic = encode_request("metadata", 1, {"topics": []})
        frame = request_header(3, 1, 9, flexible=False) + topic + bytes(3 * 1024 * 1024)
        sender.write(struct.pack(">i", len(frame)) + frame)
        answer = await asyncio.wait_for(reader.readexactly(8), 10)
        ended = await asyncio.wait_for(stalled[0][0].read(), 10)
        for _, writer in [*stalled, (reader, sender)]:
            writer.close()
        server.stop()
        return answer, ended

    answer, ended = asyncio.run(scenario())
    assert struct.unpack_from(">i", answer, 4) == (9,)
    assert ended == b""
