"""Events during an in-flight produce request with acks=all, before the fsync of its batch."""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.broker.engine import Engine, Reply
from headgate.broker.log.files import LogFile
from headgate.broker.node.opening import open_broker
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.settings import BrokerSettings
from tests.wire.entities import API_KEYS, Plain, decode_response, encode_request
from tests.wire.raw_client import request_header
from tests.wire.record_batches import Batch
from tests.wire.transcript import produce_body

VERSION = 9
SYNC_SECONDS_MAX = 10


class Disk:
    """Blocks fsync of topic files until the test releases it. Fsync of the `failing` topic fails."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.failing = ""

    def sync(self, file: LogFile, real: Callable[[LogFile], None]) -> None:
        if "__cluster_metadata" not in str(file.path):
            assert self.free.wait(SYNC_SECONDS_MAX)
        if self.failing and file.path.parent.name.startswith(self.failing):
            raise StorageError("fsync failed", 5)
        real(file)


class Asked:
    def __init__(self, data: Path) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.broker = open_broker(data, BrokerSettings(), self.posted.put)
        self.engine = Engine(self.broker)

    def send(self, body: Plain) -> Deferred[Reply]:
        header = request_header(API_KEYS["produce"], VERSION, 7, flexible=True)
        reply = self.engine.execute(memoryview(header + encode_request("produce", VERSION, body)), "127.0.0.1", 1)
        assert isinstance(reply, Deferred)
        return reply

    def answer(self, reply: Deferred[Reply]) -> dict[str, Plain]:
        """Wait for the response. Return the partition response of each topic by topic name."""
        ready: list[Reply] = []
        reply.then(ready.append)
        while not ready:
            self.posted.get(timeout=SYNC_SECONDS_MAX)()
        assert isinstance(ready[0], bytes)
        responses = decode_response("produce", VERSION, ready[0][9:])["responses"]
        return {topic["name"]: topic["partition_responses"][0] for topic in responses}

    def delete(self, name: str) -> None:
        topic = self.broker.topics.find(name)
        assert topic is not None
        self.broker.delete_topic(topic)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk, real = Disk(), LogFile.sync
    disk.free.set()
    monkeypatch.setattr(LogFile, "sync", lambda file: disk.sync(file, real))
    return disk


@pytest.fixture
def asked(tmp_path: Path, disk: Disk) -> Iterator[Asked]:
    asked = Asked(tmp_path / "data")
    for name in ("kept", "gone"):
        asked.broker.topic_store.create(name, 1, {})
    yield asked
    disk.failing = ""
    disk.free.set()
    asked.broker.close()


def to_both() -> Plain:
    body = produce_body("kept", Batch())
    body["topic_data"] += produce_body("gone", Batch())["topic_data"]
    return body


def test_a_topic_deleted_meanwhile_is_unknown_and_no_fault_of_the_disk(
    asked: Asked, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.free.clear()
    reply = asked.send(to_both())
    asked.delete("gone")
    disk.free.set()
    answer = asked.answer(reply)
    assert answer["gone"]["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (answer["kept"]["error_code"], answer["kept"]["base_offset"]) == ("NONE", 0)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_so_it_is_for_a_producer_that_repeats_its_request(asked: Asked, disk: Disk) -> None:
    assert asked.answer(asked.send(produce_body("gone", Batch())))["gone"]["base_offset"] == 0
    disk.free.clear()
    # During the fsync for the second request, the third request waits for the next fsync.
    waiting = [asked.send(produce_body("gone", Batch())) for _ in range(2)]
    asked.delete("gone")
    disk.free.set()
    assert [asked.answer(reply)["gone"]["error_code"] for reply in waiting] == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2


def test_a_topic_that_is_recreated_meanwhile_gets_no_records_of_the_request(asked: Asked, disk: Disk) -> None:
    disk.free.clear()
    reply = asked.send(produce_body("gone", Batch()))
    waiting = asked.send(produce_body("gone", Batch()))
    asked.delete("gone")
    disk.free.set()
    made_again = asked.broker.topic_store.create("gone", 1, {})
    assert asked.answer(reply)["gone"]["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert asked.answer(waiting)["gone"]["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert made_again.partitions[0].log.log_end_offset == 0
    assert asked.answer(asked.send(produce_body("gone", Batch())))["gone"]["base_offset"] == 0


def test_a_disk_that_fails_one_partition_fails_no_other(asked: Asked, disk: Disk) -> None:
    disk.failing = "gone"
    answer = asked.answer(asked.send(to_both()))
    assert answer["gone"]["error_code"] == "KAFKA_STORAGE_ERROR"
    assert (answer["kept"]["error_code"], answer["kept"]["base_offset"]) == ("NONE", 0)


def test_a_batch_that_is_rejected_at_once_gets_its_own_error(asked: Asked, disk: Disk) -> None:
    disk.failing = "kept"
    body = produce_body("kept", Batch())
    body["topic_data"] += produce_body("gone", Batch(crc=1))["topic_data"]
    answer = asked.answer(asked.send(body))
    assert answer["gone"]["error_code"] == "CORRUPT_MESSAGE"
    assert answer["kept"]["error_code"] == "KAFKA_STORAGE_ERROR"
