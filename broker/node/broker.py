"""The broker put together: its data directory, topics, groups and the work that comes round by itself.

Knows no socket. `broker.server` drives it: requests through `broker.engine`, time through `timers`, results of other
threads through `post`.
"""

import errno
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kio.schema.errors import ErrorCode

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.identity import read_identity
from headgate.broker.log.journal import Entry, Journal
from headgate.broker.log.log_deletion import confirm_times
from headgate.broker.log.page_cache import ColdReads
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.producer_id_block import read_block_end
from headgate.broker.log.recovery import open_log
from headgate.broker.log.retention_hold import RetentionHold
from headgate.broker.node.unsupported_features import UnsupportedFeatures
from headgate.broker.protocol.entities import Answer, ApiVersionRange
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.runtime.background_calls import BackgroundCalls
from headgate.broker.runtime.clock import Clock, SystemClock, Timers
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices, Work
from headgate.broker.runtime.worker_threads import Post
from headgate.broker.state.groups.coordinator import GroupCoordinator
from headgate.broker.state.metadata_image import replay
from headgate.broker.state.producer_ids import ProducerIds, ends_agree, far_ahead
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topics import OFFSETS_TOPIC, Topic, Topics

logger = logging.getLogger("headgate.broker")

METADATA_LOG = "__cluster_metadata"

# How far a recovery after a crash has to read back, at most, is what was written in this time (Kafka's default).
checkpoint_interval_ms = 60_000

# How far the wall clock may run ahead of the monotonic clock between two rounds of retention. More than any correction
# by NTP; a machine that was suspended waits for a round.
clock_jump_ms_max = 600_000

# How exactly flush.ms is kept.
flush_check_interval_ms = 1_000

# How long the files of a deleted topic stay, so that one thread removes those of many topics.
removal_delay_ms = 100

# How long a stop waits for the removal of deleted topics.
removal_seconds_max = 1.0

# Threads that check the records of large batches. Each needs up to 128 MiB for decompressed records.
record_check_threads = 2

# How often the journals look whether compaction is due.
compaction_check_interval_ms = 5_000


class Broker:
    def __init__(self, data_directory: Path, settings: BrokerSettings, post: Post, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.timers = Timers(self.clock)
        self.unsupported = UnsupportedFeatures(self.clock)
        self.slices = TimeSlices(self.clock, self.timers, Disconnect("the request failed; see the traceback above"))
        self.directory = DataDirectory(data_directory)
        self.reserve = self.directory.reserve
        self.retention_hold = RetentionHold(data_directory)
        self.group_commit = GroupCommit(post)
        self.cold_reads = ColdReads(post)
        self.record_checks = BackgroundCalls(post, "record-check", record_check_threads)
        self.node_id = settings.node_id
        self.cluster_id = ""
        self.address: tuple[str, int] = ("127.0.0.1", 9092)
        """Where the server listens; set by it."""
        self.api_versions: tuple[ApiVersionRange, ...] = ()
        """What the engine speaks; set by it."""
        self.topics: Topics
        self.groups: GroupCoordinator
        self.producer_ids: ProducerIds
        self._metadata: Journal
        self._offsets: Journal | None = None
        self._removal: threading.Thread | None = None
        self._removal_planned = False
        self._is_retaining = False
        self._clock_offset_ms = self.clock.wall_ms() - self.clock.monotonic_ms()

    def open(self) -> None:
        """Take the data directory, recover what it holds and start the housekeeping. Raises BrokerError."""
        directory = self.directory
        directory.open()
        self.settings.locate(*self.address, str(directory.path))
        directory.remove_set_aside()
        self.cluster_id, leader_epoch = read_identity(
            directory.path,
            directory.partition_paths(),
            stopped_cleanly=directory.last_run.stopped_cleanly,
            store=self.reserve.write,
        )
        self.topics = Topics(directory, self.settings, self.clock, leader_epoch)
        self._metadata = Journal(self._open_internal_log(METADATA_LOG, leader_epoch), self.clock, self.topics.snapshot)
        self._metadata.reserve = self.reserve
        self._load_metadata()
        self.settings.journal = self.topics
        self.producer_ids = ProducerIds(self.topics.allocate_producer_ids)
        self.groups = GroupCoordinator(self.clock, self.timers, self, self.settings)
        if self.topics.find(OFFSETS_TOPIC) is not None:
            self._load_groups(self._offsets_journal())
        self.topics.on_delete.append(lambda topic: self.groups.on_topic_deleted(topic.name))
        self.topics.on_delete.append(lambda _: self._remove_soon())
        self.topics.on_delete.append(lambda topic: self.retention_hold.release(topic.topic_id))
        self.topics.on_configs_set.append(lambda topic: self.retention_hold.release(topic.topic_id))
        self.group_commit.start()
        # A crash may have come between the end of a topic and that of its offsets.
        self.groups.forget_topics(lambda name: self.topics.find(name) is not None)
        if not directory.last_run.stopped_cleanly:
            self.groups.limit_offsets(self.topics.end_offset)
        self.timers.after(self.settings.log_retention_check_interval_ms, self._retention)
        # After a crash, at once and in slices: the next recovery then starts where this one ended.
        is_behind = any(directory.recovery_points.get(log.name, 0) != log.log_end_offset for log in self._logs())
        self.timers.after(0 if is_behind else checkpoint_interval_ms, self._checkpoint)
        self.timers.after(compaction_check_interval_ms, self._compact_journals)
        self.timers.after(flush_check_interval_ms, self._flush_due)

    def _load_metadata(self) -> None:
        """Replay the metadata journal. If it is damaged, assume whatever deletes nothing and repeats no producer id."""
        journal, directory = self._metadata, self.directory
        self.topics.journal = journal
        image = replay(journal.entries())
        damage = [*journal.damage, *image.unreadable]
        if journal.log.log_end_offset == 0 and any(
            path != journal.log.directory for path in directory.partition_paths()
        ):
            damage.append("the metadata journal is lost")
        for each in damage:
            logger.error("metadata: %s", each)
        self.topics.load(image, is_damaged=bool(damage))
        self.topics.next_producer_id = self._first_producer_id(image.producer_ids_end, is_damaged=bool(damage))
        self.retention_hold.load()
        if damage:
            logger.error("configs may be lost: every topic keeps its old records until they are set or confirmed")
            self.retention_hold.place({topic.topic_id: topic.name for topic in self.topics.all()})
            journal.replace_damaged()

    def _first_producer_id(self, journal_end: int | None, *, is_damaged: bool) -> int:
        try:
            file_end = read_block_end(self.directory.path)
        except DamagedFile as error:
            logger.error("%s", error)
            file_end, is_damaged = None, True
        ends = [end for end in (journal_end, file_end) if end is not None]
        if not is_damaged and ends_agree(journal_end, file_end):
            return max(ends, default=0)
        seen = (producer_id for log in self.topics.logs() for producer_id in log.producers.by_id)
        first = far_ahead(ends, seen, self.clock.wall_ms())
        logger.warning("the last producer id may be lost: ids go on at %d, beyond every id that was given out", first)
        return first

    def _load_groups(self, journal: Journal) -> None:
        self.groups.load(journal.entries())
        if journal.damage:
            logger.error("%s: commits are lost; the groups go on from older ones", journal.log.name)
            journal.replace_damaged()

    def close(self) -> None:
        """Flush everything and leave the directory so that the next start is instant."""
        self.group_commit.stop()
        self.cold_reads.stop()
        self.record_checks.stop()
        if self._removal is not None:
            # What it does not get done is done at the next start.
            self._removal.join(removal_seconds_max)
        clean = True
        points: dict[str, int] = {}
        for log in self._logs():
            points[log.name] = self.directory.recovery_points.get(log.name, 0)
            try:
                self.reserve.use(log.close)
                points[log.name] = log.flushed_offset
                clean = clean and log.failure is None
            except StorageError as error:
                logger.error("%s was not closed cleanly: %s", log.name, error)
                clean = False
        try:
            self.reserve.use(lambda: self.directory.write_recovery_points(points))
        except StorageError as error:
            logger.error("the next start has to recover more: %s", error)
            clean = False
        try:
            self.directory.close(clean=clean)
        except StorageError as error:
            logger.error("the next start has to recover: %s", error)

    def advertised(self) -> tuple[str, int]:
        """The address that clients are told to connect to."""
        for listener in self.settings.advertised_listeners or ():
            host, _, port = listener.rpartition("://")[2].rpartition(":")
            return host.strip("[]"), int(port)
        return self.address

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        """The groups' journal (`broker.state.groups.journal.Journal`): the topic `__consumer_offsets`."""
        try:
            self.check_space()
            return self._offsets_journal().append(entries)
        except StorageError as error:
            logger.error("cannot keep group state: %s", error)
            return Deferred.of(ErrorCode.kafka_storage_error)

    def check_space(self) -> None:
        """Raises StorageError while the disk is full and the broker is read-only."""
        if not self.reserve.has_space():
            raise StorageError("the disk is full: the broker is read-only until there is space", errno.ENOSPC)

    def _offsets_journal(self) -> Journal:
        if self._offsets is None:
            topic = self.topics.find(OFFSETS_TOPIC)
            if topic is None:
                topic = self.topics.create_offsets_topic()
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
        if not self._is_retaining and not self._clock_has_jumped():
            self._is_retaining = True
            self.retention_hold.refresh()
            self.slices.run(self._retain())

    def _clock_has_jumped(self) -> bool:
        """Whether the wall clock has moved ahead of the monotonic one since the last round: retention then waits for
        the next round, because a clock that is wrong for a moment would delete everything."""
        before, self._clock_offset_ms = self._clock_offset_ms, self.clock.wall_ms() - self.clock.monotonic_ms()
        jump_ms = self._clock_offset_ms - before
        if jump_ms > clock_jump_ms_max:
            logger.warning("the clock has jumped ahead by %d s: retention waits for one round", jump_ms // 1000)
        return jump_ms > clock_jump_ms_max

    def _retain(self) -> Work[Answer]:
        """Remove old segments one by one: removing a large file takes a while, and other requests come in between."""
        try:
            for partition in [partition for topic in self.topics.all() for partition in topic.partitions]:
                yield
                log = partition.log
                removed = 0
                while self._may_delete(partition.topic):
                    yield from self._confirm_times(log)
                    if not self._may_delete(partition.topic) or not self._removes_segment(log):
                        break
                    removed += 1
                    yield
                if removed:
                    logger.info("%s: retention removed %d segments", log.name, removed)
                log.producers.expire(self.clock.wall_ms() - self.settings.producer_id_expiration_ms)
            self._remove_set_aside()
        finally:
            self._is_retaining = False
        return {}

    def _confirm_times(self, log: PartitionLog) -> Iterator[None]:
        try:
            yield from confirm_times(log, self.clock.wall_ms())
        except (StorageError, OSError) as error:
            # The segment may be gone by now. It stays unconfirmed, so retention leaves it alone.
            logger.error("%s: cannot read the oldest segment: %s", log.name, error)

    def _may_delete(self, topic: Topic) -> bool:
        """Whether retention applies to the topic: it exists, and its configs are known."""
        exists = self.topics.find_by_id(topic.topic_id) is not None
        return exists and not self.retention_hold.covers(topic.topic_id)

    def _removes_segment(self, log: PartitionLog) -> bool:
        """Remove the oldest segment if retention asks for it; whether it did."""
        try:
            return self.reserve.use(partial(log.apply_retention, self.clock.wall_ms(), segments_max=1)) > 0
        except StorageError as error:
            log.fail(error)
            return False

    def _remove_soon(self) -> None:
        """Delete the files of a topic that was just deleted, together with those of topics deleted with it."""
        if not self._removal_planned:
            self._removal_planned = True
            self.timers.after(removal_delay_ms, self._remove_set_aside)

    def _remove_set_aside(self) -> None:
        """Delete the files of deleted topics, in a thread: nobody knows them any more, and there may be terabytes."""
        self._removal_planned = False
        if self._removal is not None and self._removal.is_alive():
            self._remove_soon()
        else:
            self._removal = threading.Thread(target=self._remove, name="removal", daemon=True)
            self._removal.start()

    def _remove(self) -> None:
        try:
            self.directory.remove_set_aside()
        except (StorageError, OSError) as error:
            logger.error("deleted topics still take room: %s", error)

    def _flush_due(self) -> None:
        """flush.ms: what has waited that long goes to the disk although nobody waits for it."""
        self.reserve.has_space()
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
        self.slices.run(self._checkpoint_each(logs))

    def _checkpoint_each(self, logs: Sequence[PartitionLog]) -> Work[Answer]:
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
