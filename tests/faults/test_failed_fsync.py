"""A failed fsync, then a restart, then a power cut.

After a failed fsync, Linux marks the pages clean, so the next fsync succeeds without writing them. Records that are
acknowledged after the restart must still be on the disk, and so must all records before them.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.log.checked_file import write_checked
from tests.faults.in_process import InProcessBroker
from tests.faults.test_disk import KAFKA_STORAGE_ERROR, NONE, create_topic, fetch, produce


class PageCache:
    """Simulates the kernel's page cache for log files.

    Written bytes are dirty until the next sync. A sync marks them clean, even if it fails.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing: str | None = None
        """A substring of the path. The next sync of a matching file fails."""
        self._dirty: dict[Path, list[tuple[int, bytes]]] = {}
        self._disk: dict[Path, bytearray] = {}
        self._real = {name: getattr(os, name) for name in ("pwrite", "pwritev", "ftruncate", "fdatasync")}
        for name in self._real:
            monkeypatch.setattr(os, name, getattr(self, name))

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        self._dirty.setdefault(_path(fd), []).append((position, bytes(data)))
        return int(self._real["pwrite"](fd, data, position))

    def pwritev(self, fd: int, buffers: Any, position: int) -> int:
        self._dirty.setdefault(_path(fd), []).append((position, b"".join(map(bytes, buffers))))
        return int(self._real["pwritev"](fd, buffers, position))

    def ftruncate(self, fd: int, size: int) -> None:
        self._real["ftruncate"](fd, size)
        del self._disk.setdefault(_path(fd), bytearray())[size:]

    def fdatasync(self, fd: int) -> None:
        path = _path(fd)
        written = self._dirty.pop(path, [])
        if self.failing is not None and self.failing in str(path):
            self.failing = None
            raise OSError(errno.EIO, "Input/output error")
        disk = self._disk.setdefault(path, bytearray())
        for position, data in written:
            disk.extend(bytes(max(position + len(data) - len(disk), 0)))
            disk[position : position + len(data)] = data

    def cut_the_power(self, data: Path, survived: Path) -> None:
        """Copy a data directory in its state after a power cut and a reboot."""
        shutil.copytree(data, survived)
        for path in survived.rglob("*.log"):
            path.write_bytes(self._disk.get(data / path.relative_to(survived), b""))
        write_checked(survived / "boot-id", b"another boot")


def _path(fd: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{fd}"))


@pytest.fixture
def page_cache(monkeypatch: pytest.MonkeyPatch) -> PageCache:
    return PageCache(monkeypatch)


def test_records_acknowledged_after_a_failed_fsync_and_a_restart_survive_a_power_cut(
    tmp_path: Path, page_cache: PageCache
) -> None:
    data = tmp_path / "data"
    with InProcessBroker(data) as broker:
        create_topic(broker, "t")
        assert produce(broker, "t", b"first") == (NONE, 0)
        page_cache.failing = "t-0"
        assert produce(broker, "t", b"second")[0] == KAFKA_STORAGE_ERROR
    with InProcessBroker(data) as broker:
        assert fetch(broker, "t", 0) == (NONE, [(0, b"first"), (1, b"second")])
        assert produce(broker, "t", b"third") == (NONE, 2)
        broker.crash()
    page_cache.cut_the_power(data, tmp_path / "survived")
    with InProcessBroker(tmp_path / "survived") as broker:
        assert fetch(broker, "t", 0) == (NONE, [(0, b"first"), (1, b"second"), (2, b"third")])


def test_topics_created_after_a_failed_fsync_and_a_restart_survive_a_power_cut(
    tmp_path: Path, page_cache: PageCache
) -> None:
    data = tmp_path / "data"
    with InProcessBroker(data) as broker:
        create_topic(broker, "before")
        page_cache.failing = "__cluster_metadata"
        topic = {"name": "denied", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        answer = broker.ask("create_topics", 5, {"topics": [topic], "timeout": 10_000, "validate_only": False})
        assert answer["topics"][0]["error_code"] == KAFKA_STORAGE_ERROR
    with InProcessBroker(data) as broker:
        # CreateTopics returned an error, so the topic must not exist.
        assert broker.broker.topics.find("denied") is None
        create_topic(broker, "after")
        broker.crash()
    page_cache.cut_the_power(data, tmp_path / "survived")
    with InProcessBroker(tmp_path / "survived") as broker:
        assert [topic.name for topic in broker.broker.topics.all()] == ["before", "after"]


def test_commits_acknowledged_after_a_failed_fsync_and_a_restart_survive_a_power_cut(
    tmp_path: Path, page_cache: PageCache
) -> None:
    data = tmp_path / "data"
    with InProcessBroker(data) as broker:
        create_topic(broker, "t")
        for offset in range(8):
            assert produce(broker, "t", b"value") == (NONE, offset)
        assert commit(broker, "one", 5) == NONE
        page_cache.failing = "__consumer_offsets"
        assert commit(broker, "one", 6) != NONE
    with InProcessBroker(data) as broker:
        assert commit(broker, "two", 7) == NONE
        broker.crash()
    page_cache.cut_the_power(data, tmp_path / "survived")
    with InProcessBroker(tmp_path / "survived") as broker:
        offsets = {key.group_id: value.offset for key, value in broker.broker.groups._offsets.newest()}
        assert offsets["one"] in (5, 6)
        assert offsets["two"] == 7


def commit(broker: InProcessBroker, group: str, offset: int) -> str:
    partition = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    body = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": "t", "partitions": [partition]}],
    }
    answer = broker.ask("offset_commit", 8, body)
    code: str = answer["topics"][0]["partitions"][0]["error_code"]
    return code


def test_a_range_that_cannot_be_written_again_stops_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with InProcessBroker(tmp_path) as broker:
        for name in ("sick", "well"):
            create_topic(broker, name)
            assert produce(broker, name, b"before") == (NONE, 0)
        broker.crash()
    real = os.pwrite

    def fails_for_one(fd: int, data: Any, position: int) -> int:
        if "sick-0" in str(_path(fd)):
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, data, position)

    monkeypatch.setattr(os, "pwrite", fails_for_one)
    with InProcessBroker(tmp_path) as broker:
        assert produce(broker, "sick", b"lost?")[0] == KAFKA_STORAGE_ERROR
        assert fetch(broker, "sick", 0) == (NONE, [(0, b"before")])
        assert produce(broker, "well", b"fine") == (NONE, 1)


def test_only_data_after_the_recovery_point_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcessBroker(tmp_path) as broker:
        create_topic(broker, "t")
        for _ in range(50):
            assert produce(broker, "t", bytes(1000))[0] == NONE
    with InProcessBroker(tmp_path) as broker:
        assert produce(broker, "t", bytes(1000)) == (NONE, 50)
        broker.crash()
    written: list[int] = []
    real = os.pwrite

    def counted(fd: int, data: Any, position: int) -> int:
        if "t-0" in str(_path(fd)):
            written.append(len(data))
        return real(fd, data, position)

    monkeypatch.setattr(os, "pwrite", counted)
    for expected in (range(1000, 12_000), range(1)):
        written.clear()
        with InProcessBroker(tmp_path) as broker:
            assert sum(written) in expected
            points = broker.broker.directory
            broker.run_until(lambda points=points: points.recovery_points["t-0"] == 51, "no checkpoint after recovery")  # type: ignore[misc]
            broker.crash()
