"""The broker without Linux features (epoll, fdatasync, sendfile, pwritev, fallocate, RWF_NOWAIT), as on macOS."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate.broker.runtime.system_calls import PORTABLE_VARIABLE
from tests.live.headgate import START_SECONDS_MAX, HeadgateBroker
from tests.live.ports import accepts
from tests.live.process import ServerProcess
from tests.wire.entities import Plain
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

TOPIC = "portable"
CLIENTS = 20
# Larger than a socket buffer, so that the broker sends each response in several writes.
LARGE_VALUE = os.urandom(1 << 21).hex().encode()
SETTINGS = ("--set", "message.max.bytes=8000000", "--set", "socket.send.buffer.bytes=65536")

FEATURES = {
    "os": ("fdatasync", "sendfile", "pwritev", "preadv", "posix_fallocate", "RWF_NOWAIT"),
    "select": ("epoll",),
    "socket": ("MSG_MORE",),
}
WITHOUT_FEATURES = "; ".join(
    ["import os, runpy, select, socket, sys"]
    + [f"del {module}.{name}" for module, names in FEATURES.items() for name in names]
    + ["sys.argv[0] = 'headgate.broker'", "runpy.run_module('headgate.broker', run_name='__main__')"]
)


class PortableBroker(HeadgateBroker):
    """A broker without Linux features.

    If `is_forced`, the environment variable disables the features. Otherwise the test deletes them from the process.
    """

    def __init__(self, folder: Path, *, is_forced: bool) -> None:
        super().__init__(folder)
        self._is_forced = is_forced

    def start(self) -> None:
        program = ["-m", "headgate.broker"] if self._is_forced else ["-c", WITHOUT_FEATURES]
        command = [sys.executable, *program, "--data-dir", str(self.data), "--listen", self.address, *SETTINGS]
        environment = {PORTABLE_VARIABLE: "1"} if self._is_forced else {}
        self.process = ServerProcess(command, self.folder / "broker.log", cwd=Path.cwd(), environment=environment)
        self.process.start(lambda: accepts(self.address), START_SECONDS_MAX)


@pytest.fixture(params=["forced", "missing"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PortableBroker]:
    broker = PortableBroker(tmp_path, is_forced=request.param == "forced")
    broker.start()
    yield broker
    broker.stop()


def produce(connection: RawConnection, values: list[bytes], acks: int) -> int:
    batch = Batch([NewRecord(value) for value in values]).encode()
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    answer = connection.ask("produce", 7, {"acks": acks, "topic_data": data})
    (partition,) = answer["responses"][0]["partition_responses"]
    assert partition["error_code"] == "NONE"
    return int(partition["base_offset"])


def fetch_body(offset: int, max_wait: int = 0) -> Plain:
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 10_000_000}
    topics = [{"topic": TOPIC, "partitions": [asked]}]
    return {"max_wait": max_wait, "min_bytes": 1, "max_bytes": 10_000_000, "topics": topics}


def values_in(answer: Plain) -> list[str]:
    (partition,) = answer["responses"][0]["partitions"]
    assert partition["error_code"] == "NONE"
    return [record["value"] for batch in partition["records"] for record in batch["records"]]


def test_a_broker_without_linux_features_serves_and_survives_kill(broker: PortableBroker) -> None:
    with RawConnection(broker.address, 60) as client:
        client.ask("create_topics", 5, {"topics": [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]})
        assert produce(client, [b"first", b"second"], acks=1) == 0
        assert produce(client, [LARGE_VALUE], acks=-1) == 2
        assert values_in(client.ask("fetch", 11, fetch_body(0)))[:2] == ["first", "second"]
    broker.kill()
    broker.start()
    with RawConnection(broker.address, 60) as client:
        assert values_in(client.ask("fetch", 11, fetch_body(0)))[:2] == ["first", "second"]
        assert values_in(client.ask("fetch", 11, fetch_body(2))) == [LARGE_VALUE.decode()]
        assert produce(client, [b"after"], acks=-1) == 3


def test_many_clients_of_a_broker_without_epoll_wait_for_records_at_once(broker: PortableBroker) -> None:
    with ExitStack() as stack:
        writer, *readers = (stack.enter_context(RawConnection(broker.address, 60)) for _ in range(CLIENTS + 1))
        writer.ask("create_topics", 5, {"topics": [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]})
        for reader in readers:
            reader.send("fetch", 11, fetch_body(0, max_wait=60_000))
        produce(writer, [LARGE_VALUE], acks=1)
        answers = [reader.receive() for reader in readers]
        assert all(values_in(answer) == [LARGE_VALUE.decode()] for answer in answers)
        # Responses to pipelined requests keep the request order.
        for offset in range(30):
            writer.send(
                "list_offsets", 5, {"topics": [{"name": TOPIC, "partitions": [{"timestamp": -1 - offset % 2}]}]}
            )
        offsets = [writer.receive()["topics"][0]["partitions"][0]["offset"] for _ in range(30)]
        assert offsets == [1, 0] * 15
