"""Threads validate large batches. Meanwhile the broker serves other clients and keeps the request order."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.requests.batch_verification import LargeBatch, Verified
from headgate.broker.requests.record_rules import inline_records_max
from tests.unit.broker.server.server_thread import SECONDS_MAX, ServerThread, eventually, serving
from tests.wire.entities import Plain
from tests.wire.raw_client import ConnectionClosed, RawConnection
from tests.wire.record_batches import Batch, NewRecord

TOPIC = "compacted"
LARGE_COUNT = inline_records_max + 1
NOW = 1_700_000_000_000


def large(codec: str = "none", key: bytes | None = b"key", sequence: int = -1) -> bytes:
    return batch_of(LARGE_COUNT, codec, key, sequence)


def small(sequence: int = -1) -> bytes:
    return batch_of(1, "none", b"key", sequence)


def batch_of(count: int, codec: str, key: bytes | None, sequence: int) -> bytes:
    """Return a batch. If `sequence` is not negative, the batch comes from an idempotent producer."""
    producer_id, epoch = (-1, -1) if sequence < 0 else (7, 0)
    records = [NewRecord(b"value", key=key, timestamp=NOW)] * count
    batch = Batch(records, codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return batch.encode()


class Gate:
    """Blocks the threads that validate records until the test opens the gate."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Semaphore(0)
        self.opened = threading.Event()
        verify = LargeBatch.verify

        def gated(batch: LargeBatch) -> Verified | Refusal:
            self.reached.release()
            assert self.opened.wait(SECONDS_MAX)
            return verify(batch)

        monkeypatch.setattr(LargeBatch, "verify", gated)

    def wait(self) -> None:
        assert self.reached.acquire(timeout=SECONDS_MAX)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


def request(batch: bytes, acks: int = 1, topic: str = TOPIC) -> Plain:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    return {"acks": acks, "timeout": 1000, "topic_data": data}


def partition_of(answer: Plain) -> Plain:
    partition: Plain = answer["responses"][0]["partition_responses"][0]
    return partition


def create(client: RawConnection, name: str = TOPIC, **configs: str) -> None:
    entries = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": entries}
    (created,) = client.ask("create_topics", 7, {"topics": [topic]})["topics"]
    assert created["error_code"] == "NONE"


def log_of(server: ServerThread, name: str = TOPIC) -> PartitionLog:
    topic = server.server.broker.topics.find(name)
    assert topic is not None
    return topic.partitions[0].log


@pytest.fixture
def server(tmp_path: Path, gate: Gate) -> Iterator[ServerThread]:
    with serving(tmp_path) as server:
        try:
            with RawConnection(server.address) as client:
                create(client, cleanup_policy="compact")
                create(client, "plain")
            yield server
        finally:
            gate.opened.set()


@pytest.fixture
def producer(server: ServerThread) -> Iterator[RawConnection]:
    with RawConnection(server.address) as connection:
        yield connection


@pytest.fixture
def other(server: ServerThread) -> Iterator[RawConnection]:
    with RawConnection(server.address) as connection:
        yield connection


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_other_clients_are_served_while_a_large_batch_is_checked(
    server: ServerThread, gate: Gate, producer: RawConnection, other: RawConnection, codec: str
) -> None:
    producer.send("produce", 9, request(large(codec)))
    gate.wait()
    for number in range(20):
        # Same topic: the event loop validates small batches.
        assert partition_of(other.ask("produce", 9, request(small(), acks=-1)))["base_offset"] == number
    gate.opened.set()
    assert partition_of(producer.receive())["base_offset"] == 20
    assert log_of(server).log_end_offset == 20 + LARGE_COUNT


@pytest.mark.parametrize("acks", [1, -1])
def test_requests_behind_a_large_batch_do_not_overtake_it(
    server: ServerThread, gate: Gate, producer: RawConnection, other: RawConnection, acks: int
) -> None:
    assert partition_of(producer.ask("produce", 9, request(small(), acks)))["base_offset"] == 0
    producer.send("produce", 9, request(large(sequence=0), acks))
    for number in range(30):
        producer.send("produce", 9, request(small(LARGE_COUNT + number), acks))
    producer.send("produce", 9, request(large(sequence=LARGE_COUNT + 30), acks))
    producer.send("list_offsets", 7, latest_offset())
    gate.wait()
    # The pipelined requests arrive long before the responses to the other client.
    for _ in range(20):
        other.ask("produce", 9, request(small(), topic="plain"))
    assert log_of(server).log_end_offset == 1
    gate.opened.set()
    answers = [partition_of(producer.receive()) for _ in range(32)]
    assert [answer["error_code"] for answer in answers] == ["NONE"] * 32
    expected = [1, *range(1 + LARGE_COUNT, 31 + LARGE_COUNT), 31 + LARGE_COUNT]
    assert [answer["base_offset"] for answer in answers] == expected
    (listed,) = producer.receive()["topics"][0]["partitions"]
    assert listed["offset"] == 31 + 2 * LARGE_COUNT


def latest_offset() -> Plain:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return {"replica_id": -1, "isolation_level": 0, "topics": [{"name": TOPIC, "partitions": [partition]}]}


@pytest.mark.parametrize("acks", [0, 1])
def test_a_client_that_disconnects_during_the_check_has_its_requests_executed_in_order(
    server: ServerThread, gate: Gate, other: RawConnection, acks: int
) -> None:
    with RawConnection(server.address) as producer:
        producer.send("produce", 9, request(large(), acks))
        producer.send("produce", 9, request(small(), acks))
        gate.wait()
    assert partition_of(other.ask("produce", 9, request(small(), topic="plain")))["error_code"] == "NONE"
    gate.opened.set()
    eventually(lambda: log_of(server).log_end_offset == LARGE_COUNT + 1)
    eventually(lambda: len(server.server._connections) == 1)
    assert server.server._reserved_bytes == 0


def test_a_connection_that_the_server_closes_during_the_check_appends_nothing(
    server: ServerThread, gate: Gate, producer: RawConnection, other: RawConnection
) -> None:
    producer.send("produce", 9, request(large()))
    gate.wait()
    before = dict(server.server._connections)
    assert partition_of(other.ask("produce", 9, request(small(), topic="plain")))["error_code"] == "NONE"
    (connection,) = [each for each in before.values() if each._blocking_bytes]
    server.call(lambda: connection.close("test"))
    with pytest.raises(ConnectionClosed):
        producer.receive()
    gate.opened.set()
    # The second large batch passes through the same threads after the first batch.
    assert partition_of(other.ask("produce", 9, request(large())))["base_offset"] == 0
    assert log_of(server).log_end_offset == LARGE_COUNT
    assert server.server._reserved_bytes == 0


def test_a_server_stops_during_the_check(tmp_path: Path, gate: Gate) -> None:
    server = ServerThread(tmp_path)
    with RawConnection(server.address) as producer:
        create(producer, cleanup_policy="compact")
        log = log_of(server)
        producer.send("produce", 9, request(large()))
        gate.wait()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        with pytest.raises(ConnectionClosed):
            producer.receive()
        gate.opened.set()
        stopping.join(SECONDS_MAX)
        assert not stopping.is_alive()
        assert log.log_end_offset == 0


def test_a_topic_that_is_deleted_during_the_check_is_unknown(
    gate: Gate, producer: RawConnection, other: RawConnection
) -> None:
    producer.send("produce", 9, request(large()))
    gate.wait()
    other.ask("delete_topics", 4, {"topic_names": [TOPIC], "timeout": 1000})
    gate.opened.set()
    assert partition_of(producer.receive())["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_settings_that_change_during_the_check_apply(
    server: ServerThread, gate: Gate, producer: RawConnection, other: RawConnection
) -> None:
    create(other, "checked", message_timestamp_before_max_ms=str(2**62))
    producer.send("produce", 9, request(large(key=None), topic="checked"))
    gate.wait()
    policy = {"name": "cleanup.policy", "config_operation": 0, "value": "compact"}
    resource = {"resource_type": 2, "resource_name": "checked", "configs": [policy]}
    other.ask("incremental_alter_configs", 1, {"resources": [resource], "validate_only": False})
    gate.opened.set()
    assert partition_of(producer.receive())["error_code"] == "INVALID_RECORD"
    assert log_of(server, "checked").log_end_offset == 0


def test_a_check_that_fails_closes_the_connection(
    server: ServerThread, producer: RawConnection, other: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(batch: LargeBatch) -> Verified | Refusal:
        raise RuntimeError("a defect")

    monkeypatch.setattr(LargeBatch, "verify", broken)
    producer.send("produce", 9, request(large()))
    with pytest.raises(ConnectionClosed):
        producer.receive()
    assert partition_of(other.ask("produce", 9, request(small())))["base_offset"] == 0


def test_keyless_records_of_large_batches_are_refused_one_by_one(gate: Gate, producer: RawConnection) -> None:
    gate.opened.set()
    refused = partition_of(producer.ask("produce", 9, request(large("zstd", key=None))))
    assert refused["error_code"] == "INVALID_RECORD"
    assert [fault["batch_index"] for fault in refused["record_errors"]] == list(range(LARGE_COUNT))


def test_one_request_with_large_and_small_batches_appends_all_of_them(
    server: ServerThread, gate: Gate, producer: RawConnection
) -> None:
    body = request(large())
    body["topic_data"] += request(small(), topic="plain")["topic_data"]
    body["topic_data"] += request(large(), topic="missing")["topic_data"]
    producer.send("produce", 9, body)
    gate.wait()
    assert log_of(server, "plain").log_end_offset == 0
    gate.opened.set()
    answers = {topic["name"]: topic["partition_responses"][0] for topic in producer.receive()["responses"]}
    assert {name: answer["error_code"] for name, answer in answers.items()} == {
        TOPIC: "NONE",
        "plain": "NONE",
        "missing": "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert log_of(server).log_end_offset == LARGE_COUNT
    assert log_of(server, "plain").log_end_offset == 1
