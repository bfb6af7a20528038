"""The broker put together: its data directory, topics, groups and the work that comes round by itself.

Knows no socket. `broker.server` drives it: requests through `broker.engine`, time through `timers`, results of other
threads through `post`.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kio.schema.errors import ErrorCode

from broker.clock import Clock, SystemClock, Timers
from broker.deferred import Deferred
from broker.errors import StorageError
from broker.log.directory import DataDirectory
from broker.log.group_commit import GroupCommit, Post
from broker.log.journal import Entry, Journal
from broker.log.partition_log import PartitionLog
from broker.log.recovery import open_log
from broker.settings import BrokerSettings
from broker.state.groups.coordinator import GroupCoordinator
from broker.state.producer_ids import ProducerIds
from broker.state.topics import Partition, Topics
from broker.turns import Work, in_turns, turn_ms_max

logger = logging.getLogger("headgate.broker")

METADATA_LOG = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"

# How far a recovery after a crash has to read back, at most, is what was written in this time (Kafka's default).
checkpoint_interval_ms = 60_000

# How exactly flush.ms is kept.
flush_check_interval_ms = 1_000

# How long a stop waits for the removal of deleted topics.
removal_seconds_max = 1.0

# How often the journals look whether compaction is due.
compaction_check_interval_ms = 5_000


class Broker:
    def __init__(self, data_directory: Path, settings: BrokerSettings, post: Post, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.timers = Timers(self.clock)
        self.directory = DataDirectory(data_directory)
        self.group_commit = GroupCommit(post)
        self.node_id = settings.node_id
        self.cluster_id = ""
        self.address: tuple[str, int] = ("127.0.0.1", 9092)
        """Where the server listens; set by it."""
        self.api_versions: Sequence[Mapping[str, int]] = ()
        """What the engine speaks; set by it."""
        self.topics: Topics
        self.groups: GroupCoordinator
        self.producer_ids: ProducerIds
        self._metadata: Journal
        self._offsets: Journal | None = None
        self._removal: threading.Thread | None = None

    def open(self) -> None:
        """Take the data directory, recover what it holds and start the housekeeping. Raises BrokerError."""
        directory = self.directory
        directory.open()
        self.settings.locate(*self.address, str(directory.path))
        directory.remove_set_aside()
        self.cluster_id, leader_epoch = directory.identity()
        self.topics = Topics(directory, self.settings, self.clock, leader_epoch)
        self._metadata = Journal(self._open_internal_log(METADATA_LOG, leader_epoch), self.clock, self.topics.snapshot)
        self.topics.journal = self._metadata
        self.topics.load(self._metadata.entries())
        self.settings.journal = self.topics
        self.producer_ids = ProducerIds(self.topics.allocate_producer_ids)
        self.groups = GroupCoordinator(self.clock, self.timers, self, self.settings)
        if self.topics.find(OFFSETS_TOPIC) is not None:
            self.groups.load(self._offsets_journal().entries())
        self.topics.on_delete.append(lambda topic: self.groups.on_topic_deleted(topic.name))
        self.group_commit.start()
        # A crash may have come between the end of a topic and that of its offsets.
        self.groups.forget_topics(lambda name: self.topics.find(name) is not None)
        self.timers.after(self.settings.log_retention_check_interval_ms, self._retention)
        self.timers.after(checkpoint_interval_ms, self._checkpoint)
        self.timers.after(compaction_check_interval_ms, self._compact_journals)
        self.timers.after(flush_check_interval_ms, self._flush_due)

    def close(self) -> None:
        """Flush everything and leave the directory so that the next start is instant."""
        self.group_commit.stop()
        if self._removal is not None:
            # What it does not get done is done at the next start.
            self._removal.join(removal_seconds_max)
        clean = True
        points: dict[str, int] = {}
        for log in self._logs():
            try:
                log.close()
                clean = clean and log.failure is None
            except StorageError as error:
                logger.error("%s was not closed cleanly: %s", log.name, error)
                clean = False
            points[log.name] = log.flushed_offset
        self.directory.write_recovery_points(points)
        self.directory.close(clean=clean)

    def advertised(self) -> tuple[str, int]:
        """The address that clients are told to connect to."""
        for listener in self.settings.advertised_listeners or ():
            host, _, port = listener.rpartition("://")[2].rpartition(":")
            return host.strip("[]"), int(port)
        return self.address

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        """The groups' journal (`broker.state.groups.journal.Journal`): the topic `__consumer_offsets`."""
        try:
            return self._offsets_journal().append(entries)
        except StorageError as error:
            logger.error("cannot keep group state: %s", error)
            return Deferred.of(ErrorCode.kafka_storage_error)

    def _offsets_journal(self) -> Journal:
        if self._offsets is None:
            topic = self.topics.find(OFFSETS_TOPIC)
            if topic is None:
                segment_bytes = str(self.settings.offsets_topic_segment_bytes)
                overrides = {
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": segment_bytes,
                }
                topic = self.topics.create(OFFSETS_TOPIC, 1, overrides)
            self._offsets = Journal(topic.partitions[0].log, self.clock, self.groups.snapshot)
            self._offsets.group_commit = self.group_commit
        return self._offsets

    def _open_internal_log(self, name: str, leader_epoch: int) -> PartitionLog:
        path = self.directory.path / f"{name}-0"
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot create {path.name}: {error.strerror}", error.errno) from error
        return open_log(
            path,
            self.settings.topic_settings({}),
            self.directory.last_run,
            self.directory.recovery_points.get(path.name, 0),
            leader_epoch,
            self.clock.wall_ms(),
        )

    def _logs(self) -> list[PartitionLog]:
        return [self._metadata.log, *self.topics.logs()]

    def _retention(self) -> None:
        # The next round first: whatever happens in this one, the housekeeping goes on.
        self.timers.after(self.settings.log_retention_check_interval_ms, self._retention)
        self._retain(iter([partition for topic in self.topics.all() for partition in topic.partitions]))

    def _retain(self, partitions: Iterator[Partition]) -> None:
        """Trim logs for a turn, then go on later: removing large files takes a while, and others wait meanwhile."""
        until_ms = self.clock.monotonic_ms() + turn_ms_max
        now_ms = self.clock.wall_ms()
        for partition in partitions:
            log = partition.log
            if self.topics.find_by_id(partition.topic.topic_id) is None:
                continue
            try:
                removed = log.apply_retention(now_ms)
            except StorageError as error:
                log.fail(error)
                continue
            if removed:
                logger.info("%s: retention removed %d segments", log.name, removed)
            log.producers.expire(now_ms - self.settings.producer_id_expiration_ms)
            if self.clock.monotonic_ms() >= until_ms:
                self.timers.after(0, lambda: self._retain(partitions))
                return
        self._remove_set_aside()

    def _remove_set_aside(self) -> None:
        """Delete the files of deleted topics, in a thread: nobody knows them any more, and there may be terabytes."""
        if self._removal is None or not self._removal.is_alive():
            self._removal = threading.Thread(target=self._remove, name="removal", daemon=True)
            self._removal.start()

    def _remove(self) -> None:
        try:
            self.directory.remove_set_aside()
        except (StorageError, OSError) as error:
            logger.error("deleted topics still take room: %s", error)

    def _flush_due(self) -> None:
        """flush.ms: what has waited that long goes to the disk although nobody waits for it."""
        now_ms = self.clock.monotonic_ms()
        for log in self.topics.logs():
            if log.flushed_offset == log.log_end_offset:
                log.unflushed_since_ms = now_ms
            elif now_ms - log.unflushed_since_ms >= log.settings.flush_ms:
                log.unflushed_since_ms = now_ms
                self.group_commit.flush(log)
        self.timers.after(flush_check_interval_ms, self._flush_due)

    def _checkpoint(self) -> None:
        """Note for each log what is on the disk, so that a recovery starts there; what is not yet is flushed first."""
        self.timers.after(checkpoint_interval_ms, self._checkpoint)
        known = self.directory.recovery_points
        logs = [log for log in self._logs() if log.failure is None and known.get(log.name, 0) != log.log_end_offset]
        in_turns(self, self._checkpoint_each(logs))

    def _checkpoint_each(self, logs: Sequence[PartitionLog]) -> Work:
        points: dict[PartitionLog, int] = {}
        left = len(logs)

        def flushed(log: PartitionLog, error: StorageError | None) -> None:
            nonlocal left
            left -= 1
            try:
                if error is None and not log.is_deleted:
                    log.checkpoint()
                    points[log] = log.flushed_offset
                if left == 0 and points:
                    # Once for all of them: it is on the disk when it returns, and everybody waits for that.
                    self._write_recovery_points(points)
            except StorageError as failure:
                log.fail(failure)

        for log in logs:
            yield
            self.group_commit.flush(log).then(partial(flushed, log))
        return {}

    def _write_recovery_points(self, points: Mapping[PartitionLog, int]) -> None:
        # Without those of topics that are gone, or they would add up, and meet a later topic of the same name.
        names = {log.name for log in self._logs()}
        known = {name: point for name, point in self.directory.recovery_points.items() if name in names}
        reached = {log.name: point for log, point in points.items() if not log.is_deleted}
        self.directory.write_recovery_points({**known, **reached})

    def _compact_journals(self) -> None:
        self.timers.after(compaction_check_interval_ms, self._compact_journals)
        for journal in (self._metadata, self._offsets):
            if journal is not None:
                try:
                    journal.compact_if_due()
                except StorageError as error:
                    journal.log.fail(error)
