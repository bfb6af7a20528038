"""Periodic compaction of `__consumer_offsets`: while commits are always pending, and on a full disk."""

import queue
from collections.abc import Callable
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.log import journal as journal_module
from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.node.broker import Broker
from headgate.broker.node.journal_compaction import compaction_check_interval_ms
from headgate.broker.node.opening import open_broker
from headgate.broker.state.groups.messages import CommitRequest, PartitionCommit
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topic_names import OFFSETS_TOPIC
from tests.manual_clock import ManualClock
from tests.unit.broker.log.logs import NOW_MS

PARTITIONS = 50
COMMITS = 40


class CommittingBroker:
    """A broker whose flushes complete only when the test runs `complete_one_flush`."""

    def __init__(self, data: Path) -> None:
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.clock = ManualClock(NOW_MS)
        self.broker: Broker = open_broker(data, BrokerSettings(), self._posted.put, clock=self.clock)

    def commit(self, number: int) -> None:
        partitions = [PartitionCommit("t", index, 0, -1, str(number)) for index in range(PARTITIONS)]
        self.broker.groups.commit(CommitRequest("group", "", None, -1, None, ErrorCode.illegal_generation, partitions))

    def check_compaction(self) -> None:
        self.clock.advance(compaction_check_interval_ms)
        self.broker.timers.run_due()

    def complete_one_flush(self) -> None:
        self._posted.get(timeout=10)()
        self.broker.timers.run_due()

    @property
    def log(self) -> PartitionLog:
        topic = self.broker.topics.find(OFFSETS_TOPIC)
        assert topic is not None
        return topic.partitions[0].log

    def crash(self) -> None:
        self.broker.group_commit.stop()
        self.broker.directory.close(clean=False)


@pytest.fixture
def committing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommittingBroker:
    monkeypatch.setattr(journal_module, "compact_bytes_min", 10_000)
    monkeypatch.setattr(journal_module, "snapshot_batch_entries", 20)
    committing = CommittingBroker(tmp_path)
    committing.broker.topic_store.create("t", PARTITIONS, {})
    for number in range(COMMITS):
        committing.commit(number)
    return committing


def test_constant_commits_do_not_delay_compaction(committing: CommittingBroker, tmp_path: Path) -> None:
    committing.check_compaction()
    number = COMMITS
    while committing.log.log_start_offset == 0:
        # There is always a commit whose flush is pending.
        committing.commit(number)
        number += 1
        committing.complete_one_flush()
        assert committing.log.flushed_offset < committing.log.log_end_offset
        assert number < 10 * COMMITS, "the journal was not compacted"
    committing.crash()
    again = CommittingBroker(tmp_path)
    stored = {key.partition: value.metadata for key, value in again.broker.groups._offsets.newest()}
    assert stored == dict.fromkeys(range(PARTITIONS), str(number - 1))
    again.crash()


def test_a_full_disk_delays_compaction(committing: CommittingBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiskReserve, "has_space", lambda reserve: False)
    committing.check_compaction()
    assert len(committing.log.segments) == 1
    monkeypatch.undo()
    committing.check_compaction()
    assert len(committing.log.segments) == 2
    committing.crash()
