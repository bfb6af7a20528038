"""Opens a data directory: recovers its content, builds the Broker and starts the background work."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.identity import read_identity
from headgate.broker.log.journal import Journal
from headgate.broker.log.page_cache import ColdReads
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.producer_id_block import read_block_end
from headgate.broker.log.recovery import open_log
from headgate.broker.log.retention_hold import RetentionHold
from headgate.broker.node.broker import Broker
from headgate.broker.node.checkpoints import Checkpoints
from headgate.broker.node.file_removal import FileRemoval
from headgate.broker.node.journal_compaction import JournalCompaction
from headgate.broker.node.metadata_journal import MetadataJournal
from headgate.broker.node.offsets_topic import OffsetsTopic
from headgate.broker.node.partition_opening import PartitionOpening
from headgate.broker.node.retention import Retention
from headgate.broker.node.scheduled_flush import ScheduledFlush
from headgate.broker.node.topic_recovery import TopicRecovery
from headgate.broker.node.topic_store import TopicStore
from headgate.broker.node.unsupported_features import UnsupportedFeatures
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.runtime.background_calls import BackgroundCalls
from headgate.broker.runtime.clock import Clock, SystemClock, Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices
from headgate.broker.runtime.worker_threads import Post
from headgate.broker.state.configs.values import InvalidConfig
from headgate.broker.state.groups.coordinator import GroupCoordinator
from headgate.broker.state.metadata_image import MetadataImage, replay
from headgate.broker.state.producer_ids import ProducerIds, ends_agree, far_ahead, largest_seen
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topic_names import METADATA_TOPIC
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker")

# Threads that check the records of large batches. Each thread needs up to 128 MiB for decompressed records.
record_check_threads = 2

DEFAULT_ADDRESS = ("127.0.0.1", 9092)


def open_broker(
    data_directory: Path,
    settings: BrokerSettings,
    post: Post,
    *,
    address: tuple[str, int] = DEFAULT_ADDRESS,
    clock: Clock | None = None,
) -> Broker:
    """Lock the data directory, recover its content and start the background work. Raises BrokerError."""
    directory = DataDirectory(data_directory)
    directory.open()
    try:
        return _recover(directory, settings, post, address, clock or SystemClock())
    except BaseException:
        directory.close(clean=False)
        raise


def _recover(
    directory: DataDirectory, settings: BrokerSettings, post: Post, address: tuple[str, int], clock: Clock
) -> Broker:
    settings.locate(*address, str(directory.path))
    directory.remove_set_aside()
    cluster_id, leader_epoch = read_identity(
        directory.path,
        directory.partition_paths(),
        stopped_cleanly=directory.last_run.stopped_cleanly,
        store=directory.reserve.write,
    )
    timers = Timers(clock)
    slices = TimeSlices(clock, timers, Disconnect("the request failed; see the traceback above"))
    group_commit = GroupCommit(post)
    hold = RetentionHold(directory.path)
    topics = Topics()
    opening = PartitionOpening(topics, directory, clock, leader_epoch)
    journal = Journal(_open_metadata_log(directory, settings, clock, leader_epoch), clock, reserve=directory.reserve)
    metadata = _recover_metadata(journal, directory, settings, topics, opening, hold, clock)
    store = TopicStore(topics, directory, metadata, opening, settings)
    offsets = OffsetsTopic(topics, store, settings, clock, group_commit, directory.reserve)
    groups = GroupCoordinator(clock, timers, offsets, settings)
    _recover_groups(groups, offsets, topics, group_commit, is_clean=directory.last_run.stopped_cleanly)
    removal = FileRemoval(directory, timers)
    retention = Retention(topics, hold, removal, directory.reserve, settings, slices, clock, timers)
    checkpoints = Checkpoints(lambda: [metadata.log, *topics.logs()], directory, group_commit, slices, timers)
    retention.start()
    checkpoints.start()
    JournalCompaction(metadata, offsets, groups, directory.reserve, slices, timers).start()
    ScheduledFlush(topics, directory.reserve, group_commit, clock, timers).start()
    return Broker(
        settings=settings,
        node_id=settings.node_id,
        cluster_id=cluster_id,
        address=address,
        clock=clock,
        timers=timers,
        slices=slices,
        unsupported=UnsupportedFeatures(clock),
        directory=directory,
        reserve=directory.reserve,
        group_commit=group_commit,
        cold_reads=ColdReads(post),
        record_checks=BackgroundCalls(post, "record-check", record_check_threads),
        topics=topics,
        topic_store=store,
        groups=groups,
        producer_ids=ProducerIds(metadata.allocate_producer_ids),
        metadata=metadata,
        retention_hold=hold,
        retention=retention,
        checkpoints=checkpoints,
        removal=removal,
    )


def _open_metadata_log(
    directory: DataDirectory, settings: BrokerSettings, clock: Clock, leader_epoch: int
) -> PartitionLog:
    path = directory.path / f"{METADATA_TOPIC}-0"
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot create {path.name}: {error.strerror}", error.errno) from error
    recovery_point = directory.recovery_points.get(path.name, 0)
    # Each entry is on the disk before the next one is written. So even a power cut tears only the last entry.
    last_run = replace(directory.last_run, same_boot=True)
    return open_log(path, settings.topic_settings({}), last_run, recovery_point, leader_epoch, clock.wall_ms())


def _recover_metadata(
    journal: Journal,
    directory: DataDirectory,
    settings: BrokerSettings,
    topics: Topics,
    opening: PartitionOpening,
    hold: RetentionHold,
    clock: Clock,
) -> MetadataJournal:
    """Replay the metadata journal and open all topics.

    Suspends retention for topics whose configs may be lost: for all topics if the journal is damaged. New producer ids
    then skip all earlier ids.
    """
    image = replay(journal.entries())
    damage = [*journal.damage, *image.unreadable]
    if journal.log.log_end_offset == 0 and any(path != journal.log.directory for path in directory.partition_paths()):
        damage.append("the metadata journal is lost")
    for each in damage:
        logger.error("metadata: %s", each)
    are_configs_known = not damage
    for scope, overrides in image.broker_overrides.items():
        try:
            settings.restore(scope, overrides)
        except InvalidConfig as error:
            logger.error("ignoring stored broker configs that are no longer valid: %s", error)
            are_configs_known = False
    recovery = TopicRecovery(topics, directory, settings, opening)
    recovery.recover(image, is_damaged=bool(damage))
    first_producer_id = _first_producer_id(image, directory, topics, clock, is_damaged=bool(damage))
    metadata = MetadataJournal(journal, directory, topics, settings, first_producer_id)
    hold.load()
    # A crash while a topic is created leaves a topic without records.
    restored = (topic for topic in recovery.restored if any(part.log.log_end_offset for part in topic.partitions))
    _hold_uncertain(hold, [*restored, *recovery.invalid] if are_configs_known else list(topics.all()))
    if damage:
        metadata.replace_damaged()
    else:
        _save_restored(metadata, recovery.restored)
    return metadata


def _hold_uncertain(hold: RetentionHold, topics: list[Topic]) -> None:
    """Suspend retention for topics whose configs may be lost."""
    if topics:
        names = ", ".join(sorted(topic.name for topic in topics)[:20])
        logger.error("configs may be lost: retention is on hold for %s until the configs are set or confirmed", names)
        hold.place({topic.topic_id: topic.name for topic in topics})


def _save_restored(metadata: MetadataJournal, topics: Iterable[Topic]) -> None:
    """Add restored topics to the journal, so that the next start knows them."""
    try:
        for topic in topics:
            metadata.save_topic(topic, len(topic.partitions))
    except StorageError as error:
        logger.warning("the next start restores topics again: %s", error)


def _first_producer_id(
    image: MetadataImage, directory: DataDirectory, topics: Topics, clock: Clock, *, is_damaged: bool
) -> int:
    journal_end = image.producer_ids_end
    try:
        file_end = read_block_end(directory.path)
    except DamagedFile as error:
        logger.error("%s", error)
        file_end, is_damaged = None, True
    ends = [end for end in (journal_end, file_end) if end is not None]
    seen = largest_seen(producer_id for log in topics.logs() for producer_id in log.producers.by_id)
    end = max(ends, default=0)
    if not is_damaged and ends_agree(journal_end, file_end) and seen < end:
        return end
    first = far_ahead(ends, seen, clock.wall_ms())
    logger.warning("the last producer id may be lost: new ids start at %d, above all allocated ids", first)
    return first


def _recover_groups(
    groups: GroupCoordinator, offsets: OffsetsTopic, topics: Topics, group_commit: GroupCommit, *, is_clean: bool
) -> None:
    journal = offsets.journal
    if journal is not None:
        groups.load(journal.entries())
        if journal.damage:
            logger.error("%s: commits are lost; the groups go on from older ones", journal.log.name)
            journal.replace_damaged(groups.snapshot)
    group_commit.start()
    # A crash may have happened after the deletion of a topic and before the deletion of its offsets.
    groups.forget_topics(lambda name: topics.find(name) is not None)
    if not is_clean:
        groups.limit_offsets(topics.end_offset)
