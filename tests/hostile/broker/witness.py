"""A well-behaved client that runs next to the hostile clients. They must not disturb it or lose its records.

It produces numbered records one by one and reads each record back. The time limit of a response is generous, because
the suite shares two cores with other processes. The limit detects a broker that hangs.
"""

import contextlib
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

TOPIC = "witness"
ANSWER_SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.01


class Witness:
    def __init__(self, broker: HeadgateBroker) -> None:
        self._broker = broker
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness")
        self._failure: BaseException | None = None
        self.acknowledged: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        with RawConnection(self._broker.address) as connection:
            create_topic(connection, TOPIC)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if error is None:
            self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise AssertionError(f"a well-behaved client was disturbed: {self._failure!r}") from self._failure
        assert self.acknowledged, "the well-behaved client never got to produce"
        with RawConnection(self._broker.address) as connection:
            for offset, value in self.acknowledged.items():
                assert read_value(connection, TOPIC, offset) == value

    def _run(self) -> None:
        try:
            with RawConnection(self._broker.address, ANSWER_SECONDS_MAX) as connection:
                number = 0
                is_last = False
                # Produce once more after the attack, to check that the broker still works.
                while not is_last:
                    is_last = self._stopping.wait(PAUSE_SECONDS)
                    number += 1
                    value = f"{time.monotonic_ns()} {number}".encode()
                    offset = produce_one(connection, TOPIC, value, acks=-1 if number % 8 == 0 else 1)
                    assert read_value(connection, TOPIC, offset) == value
                    self.acknowledged[offset] = value
        except BaseException as failure:
            self._failure = failure


def create_topic(connection: RawConnection, name: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic unless it exists. In config names, underscores stand for dots."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }
    (answer,) = connection.ask("create_topics", 7, {"topics": [topic]})["topics"]
    assert answer["error_code"] in {"NONE", "TOPIC_ALREADY_EXISTS"}, answer


def produce(connection: RawConnection, topic: str, batch: bytes, acks: int = 1, version: int = 9) -> dict[str, object]:
    """Produce a batch to partition 0. Return the response for the partition."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = connection.ask("produce", version, {"acks": acks, "timeout": 1000, "topic_data": data})
    partition: dict[str, object] = answer["responses"][0]["partition_responses"][0]
    return partition


def produce_one(connection: RawConnection, topic: str, value: bytes, acks: int = 1) -> int:
    answer = produce(connection, topic, Batch([NewRecord(value)]).encode(), acks)
    assert answer["error_code"] == "NONE", answer
    offset = answer["base_offset"]
    assert isinstance(offset, int)
    return offset


def fetch(connection: RawConnection, topic: str, offset: int, max_bytes: int = 1 << 20) -> dict[str, object]:
    wanted = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}]
    body = {"max_wait": 0, "min_bytes": 1, "max_bytes": max_bytes, "topics": [{"topic": topic, "partitions": wanted}]}
    answer = connection.ask("fetch", 12, body)
    partition: dict[str, object] = answer["responses"][0]["partitions"][0]
    return partition


def read_value(connection: RawConnection, topic: str, offset: int) -> bytes:
    answer = fetch(connection, topic, offset, 200)
    assert answer["error_code"] == "NONE", answer
    batches = answer["records"]
    assert isinstance(batches, list)
    value = batches[0]["records"][0]["value"]
    return value if isinstance(value, bytes) else str(value).encode("latin-1")


def resident_bytes(broker: HeadgateBroker, field: str = "VmHWM") -> int:
    """Return the resident memory of the broker: the peak (VmHWM) or the current value (VmRSS)."""
    assert broker.process is not None
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field} in the process status")


def log_of(broker: HeadgateBroker) -> str:
    with contextlib.suppress(FileNotFoundError):
        return (broker.folder / "broker.log").read_text(errors="replace")
    return ""
