"""More partitions and segments than file descriptors: every request succeeds, before and after a restart."""

import os
import sys
from pathlib import Path

from tests.live.headgate import START_SECONDS_MAX, HeadgateBroker
from tests.live.ports import accepts
from tests.live.process import ServerProcess
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

NONE = "NONE"


class LimitedBroker(HeadgateBroker):
    """A broker whose process is limited to `descriptors_max` file descriptors."""

    def __init__(self, folder: Path, descriptors_max: int) -> None:
        super().__init__(folder)
        self._descriptors_max = descriptors_max

    def start(self) -> None:
        limit = self._descriptors_max
        command = [sys.executable, "-m", "headgate.broker", "--data-dir", str(self.data), "--listen", self.address]
        code = (
            f"import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit})); "
            f"os.execv({command[0]!r}, {command!r})"
        )
        self.process = ServerProcess([sys.executable, "-c", code], self.folder / "broker.log", cwd=Path.cwd())
        self.process.start(lambda: accepts(self.address), START_SECONDS_MAX)

    @property
    def descriptors(self) -> int:
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def create_topic(connection: RawConnection, name: str, partitions: int, **configs: str) -> None:
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": settings,
    }
    answer = connection.ask("create_topics", 5, {"topics": [topic], "timeout": 30_000, "validate_only": False})
    assert answer["topics"][0]["error_code"] == NONE


def produce_to_each(
    connection: RawConnection, topic: str, partitions: int, value: bytes, acks: int
) -> list[tuple[str, int]]:
    """Produce one record to each partition in one request. Return (error code, base offset) for each partition."""
    records = Batch(records=[NewRecord(value)]).encode()
    data = [{"index": index, "records": records} for index in range(partitions)]
    topic_data = [{"name": topic, "partition_data": data}]
    body = {"transactional_id": None, "acks": acks, "timeout": 30_000, "topic_data": topic_data}
    answer = connection.ask("produce", 9, body)
    return [(part["error_code"], part["base_offset"]) for part in answer["responses"][0]["partition_responses"]]


def values_of_each(connection: RawConnection, topic: str, partitions: int) -> list[list[str]]:
    asked = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in range(partitions)]
    body = {
        "max_wait": 0, "min_bytes": 1, "max_bytes": 50_000_000, "session_epoch": -1, "rack_id": "",
        "topics": [{"topic": topic, "partitions": asked}], "forgotten_topics_data": [],
    }  # fmt: skip
    answer = connection.ask("fetch", 11, body)
    found = []
    for part in answer["responses"][0]["partitions"]:
        assert part["error_code"] == NONE
        found.append([record["value"] for batch in part["records"] or [] for record in batch["records"]])
    return found


def test_more_partitions_than_descriptors(tmp_path: Path) -> None:
    partitions = 300
    broker = LimitedBroker(tmp_path, 256)
    broker.start()
    with RawConnection(broker.address) as connection:
        create_topic(connection, "wide", partitions)
        for number, acks in enumerate((1, -1)):
            stored = produce_to_each(connection, "wide", partitions, b"%d" % number, acks)
            assert stored == [(NONE, number)] * partitions
        assert values_of_each(connection, "wide", partitions) == [["0", "1"]] * partitions
        assert broker.descriptors < 240
    for end in (broker.kill, broker.stop):
        end()
        broker.start()
        with RawConnection(broker.address) as connection:
            assert values_of_each(connection, "wide", partitions) == [["0", "1"]] * partitions
            assert broker.descriptors < 240
    broker.stop()
    assert "Too many open files" not in (tmp_path / "broker.log").read_text()


def test_more_segments_than_descriptors(tmp_path: Path) -> None:
    segments = 300
    broker = LimitedBroker(tmp_path, 256)
    broker.start()
    with RawConnection(broker.address) as connection:
        # Each record exceeds the segment size, so each record gets its own segment.
        create_topic(connection, "long", 1, internal_segment_bytes="100")
        for number in range(segments):
            assert produce_to_each(connection, "long", 1, b"%03d" % number * 40, acks=-1 if number % 3 else 1) == [
                (NONE, number)
            ]
        expected = [f"{number:03d}" * 40 for number in range(segments)]
        assert read_all(connection, segments) == expected
    broker.kill()
    broker.start()
    with RawConnection(broker.address) as connection:
        assert read_all(connection, segments) == expected
        assert produce_to_each(connection, "long", 1, b"last", -1) == [(NONE, segments)]
    broker.stop()


def read_all(connection: RawConnection, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        asked = [{"partition": 0, "fetch_offset": len(found), "partition_max_bytes": 1 << 20}]
        body = {
            "max_wait": 0, "min_bytes": 1, "max_bytes": 50_000_000, "session_epoch": -1, "rack_id": "",
            "topics": [{"topic": "long", "partitions": asked}], "forgotten_topics_data": [],
        }  # fmt: skip
        (part,) = connection.ask("fetch", 11, body)["responses"][0]["partitions"]
        assert part["error_code"] == NONE
        found += [record["value"] for batch in part["records"] for record in batch["records"]]
    return found
