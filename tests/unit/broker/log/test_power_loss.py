"""Power cuts at random moments. Synced writes survive. Unsynced writes survive in part, in any order, or not at all.

The test records the writes and syncs of a log and replays them up to a random moment. The replay loses, tears or keeps
each unsynced write at random. Then the test opens the log as after a reboot.
"""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headgate.broker.log import checked_file, files, index, snapshots
from headgate.broker.log.files import LogFile
from headgate.broker.log.partition_log import PartitionLog
from tests.unit.broker.log.logs import POWER_CUT, append, assert_dense, numbered, open_at

# A disk keeps or loses whole sectors.
SECTOR_BYTES = 512


@dataclass
class Disk:
    """Records all disk operations of a log, in order."""

    events: list[tuple[str, Path, int, bytes]] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    """(number of events so far, durable log end offset at that time)"""

    def record(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write, sync, replace = LogFile.write, LogFile.sync, files.replace_file

        def recorded_write(file: LogFile, position: int, head: bytes, rest: memoryview) -> int:
            self.events.append(("write", file.path, position, b"".join((head, rest))))
            return write(file, position, head, rest)

        def recorded_sync(file: LogFile) -> None:
            sync(file)
            self.events.append(("sync", file.path, 0, b""))

        def recorded_replace(path: Path, content: bytes, *, durable: bool = True) -> None:
            replace(path, content, durable=durable)
            self.events.append(("replace" if durable else "replace-later", path, 0, content))

        monkeypatch.setattr(LogFile, "write", recorded_write)
        monkeypatch.setattr(LogFile, "sync", recorded_sync)
        monkeypatch.setattr(checked_file, "replace_file", recorded_replace)
        monkeypatch.setattr(snapshots, "replace_file", recorded_replace)
        monkeypatch.setattr(index, "replace_file", recorded_replace)

    def after_power_cut(self, moment: int, target: Path, randomness: random.Random) -> None:
        """Write a possible disk state after a power cut at `moment` events."""
        synced: dict[Path, int] = {}
        for number, (kind, path, _, _) in enumerate(self.events[:moment]):
            if kind == "sync":
                synced[path] = number
        target.mkdir()
        for number, (kind, path, position, content) in enumerate(self.events[:moment]):
            copy = target / path.name
            if kind == "write":
                if number < synced.get(path, -1) or randomness.random() < 0.4:
                    _overwrite(copy, position, content)
                else:
                    _tear(copy, position, content, randomness)
            elif kind == "replace" or (kind == "replace-later" and randomness.random() < 0.5):
                copy.write_bytes(content)


def _overwrite(path: Path, position: int, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.pwrite(fd, content, position)
    os.close(fd)


def _tear(path: Path, position: int, content: bytes, randomness: random.Random) -> None:
    """Write some sectors of a write, and sometimes only extend the file length."""
    if randomness.random() < 0.3:
        return
    for start in range(0, len(content), SECTOR_BYTES):
        if randomness.random() < 0.5:
            _overwrite(path, position + start, content[start : start + SECTOR_BYTES])
    if randomness.random() < 0.5:
        _overwrite(path, position + len(content) - 1, b"\x00")


def sync(log: PartitionLog) -> None:
    for file in log.unflushed_files():
        file.sync()
    log.flushed_offset = log.log_end_offset


@pytest.mark.parametrize("seed", range(6))
def test_nothing_acknowledged_is_lost_whenever_the_power_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    randomness = random.Random(seed)
    disk = Disk()
    disk.record(monkeypatch)
    log = open_at(tmp_path / "log", internal_segment_bytes="4000", index_interval_bytes="500")
    recovery_points = [(0, 0)]
    for _ in range(40):
        for _ in range(randomness.randint(1, 4)):
            append(log, numbered(log.log_end_offset, randomness.choice((1, 3, 30))))
        if randomness.random() < 0.6:
            sync(log)
            disk.acknowledged.append((len(disk.events), log.log_end_offset))
            if randomness.random() < 0.2:
                log.checkpoint()
                recovery_points.append((len(disk.events), log.flushed_offset))
    monkeypatch.undo()
    for trial in range(60):
        moment = randomness.randint(1, len(disk.events))
        kept = max((offset for number, offset in disk.acknowledged if number <= moment), default=0)
        # The recovery point may reach the disk some time after the flush that it describes.
        known = [offset for number, offset in recovery_points if number <= moment]
        directory = tmp_path / f"after-{trial}"
        disk.after_power_cut(moment, directory, randomness)
        recovered = open_at(directory, POWER_CUT, recovery_point=randomness.choice(known))
        assert recovered.log_end_offset >= kept, f"moment {moment}"
        assert_dense(recovered)
        append(recovered, numbered(recovered.log_end_offset))
        end = recovered.log_end_offset
        recovered.close()
        again = open_at(directory)
        assert again.log_end_offset == end
        assert_dense(again)
