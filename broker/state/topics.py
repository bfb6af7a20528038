"""Topics and their partitions: which exist, under which id, with which settings.

Kept in the metadata journal; a change is durable before it is visible. A directory that the journal does not know is
taken back in by the note inside it, or by its name, so that losing the journal loses settings and never records.
"""

import logging
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.directory import DataDirectory, topic_of
from headgate.broker.log.journal import Journal
from headgate.broker.log.partition_log import PartitionLog
from headgate.broker.log.producer_id_block import write_block_end
from headgate.broker.log.recovery import LastRun, open_log
from headgate.broker.protocol.templates import NumbersTemplate
from headgate.broker.runtime.clock import Clock
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.configs.effective import TopicSettings
from headgate.broker.state.configs.values import InvalidConfig
from headgate.broker.state.metadata_image import (
    MetadataImage,
    TopicEntry,
    TopicKey,
    broker_entry,
    producer_ids_entry,
    topic_entry,
    topic_key,
)
from headgate.broker.state.settings import BrokerSettings, Scope
from headgate.broker.state.topic_names import INTERNAL_TOPICS, METADATA_TOPIC, topic_name_fault

logger = logging.getLogger("headgate.broker.topics")

T = TypeVar("T")

# Partitions that are created, or opened, between two requests of other clients: some milliseconds.
partitions_per_step = 16

OFFSETS_TOPIC = "__consumer_offsets"


class Partition:
    """One partition as the rest of the broker sees it."""

    __slots__ = ("index", "log", "templates", "topic", "waiters")

    def __init__(self, topic: "Topic", index: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        log.on_visible = self.notify
        self.waiters: dict[object, Callable[[int], None]] = {}
        """Long polls to call when bytes arrive, with how many."""
        self.templates: dict[tuple[int, ...], NumbersTemplate] = {}
        """Responses about this partition, prepared per API, version and isolation level."""

    @property
    def leader_epoch(self) -> int:
        return self.log.leader_epoch

    def notify(self, arrived_bytes: int) -> None:
        for callback in list(self.waiters.values()):
            callback(arrived_bytes)


class Topic:
    __slots__ = ("name", "overrides", "partitions", "settings", "templates", "topic_id")

    def __init__(self, name: str, topic_id: uuid.UUID, overrides: Mapping[str, str], settings: TopicSettings) -> None:
        self.name = name
        self.topic_id = topic_id
        self.overrides = dict(overrides)
        self.settings = settings
        self.partitions: list[Partition] = []
        self.templates: dict[tuple[int, int], bytes] = {}
        """The topic's name or id as responses begin with it, per API and version."""

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class Topics:
    """Every topic of the broker, by name and by id."""

    def __init__(self, directory: DataDirectory, settings: BrokerSettings, clock: Clock, leader_epoch: int) -> None:
        self.journal: Journal | None = None
        self.on_delete: list[Callable[[Topic], None]] = []
        self.on_configs_set: list[Callable[[Topic], None]] = []
        self.next_producer_id = 0
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._leader_epoch = leader_epoch
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._being_opened: dict[uuid.UUID, tuple[Topic, int]] = {}
        """Topics that are in the journal with more partitions than are open yet, and the number of those."""
        self.partition_count = 0
        settings.on_change.append(self._settings_changed)

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def find_by_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return self._by_id.get(topic_id) if topic_id is not None else None

    def all(self) -> Iterable[Topic]:
        return self._by_name.values()

    def logs(self) -> Iterator[PartitionLog]:
        for topic in self._by_name.values():
            for partition in topic.partitions:
                yield partition.log

    def end_offset(self, name: str, index: int) -> int | None:
        """The end of a partition's log; None if there is no such partition."""
        topic = self._by_name.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index].log.log_end_offset

    def load(self, image: MetadataImage, *, is_damaged: bool) -> None:
        """Open every partition of the topics in `image` and of the directories that it does not know.

        `is_damaged` says that entries may be missing from the image.
        """
        for scope, overrides in image.broker_overrides.items():
            self._restore_settings(scope, overrides)
        known = {key[0]: key for key in image.topics}
        for path in self._directory.partition_paths():
            named = topic_of(path)
            if named is None or named[0] == METADATA_TOPIC:
                continue
            key = self._find_owner(path, named[0], known.get(named[0]), image, is_damaged=is_damaged)
            if key is not None:
                known[named[0]] = key
                image.topics[key].partitions = max(image.topics[key].partitions, named[1] + 1)
        for (name, topic_id), entry in image.topics.items():
            self._open(name, topic_id, entry)

    def _restore_settings(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        try:
            self._settings.restore(scope, overrides)
        except InvalidConfig as error:
            logger.error("ignoring stored broker configs that are no longer valid: %s", error)

    def _find_owner(
        self, path: Path, name: str, known: TopicKey | None, image: MetadataImage, *, is_damaged: bool
    ) -> TopicKey | None:
        """The topic of a directory: taken into the image if it is not there, and noted in the directory.

        None if the directory belongs to no topic. `known` is the topic of this name, if there is one.
        """
        try:
            noted, fault = self._directory.owner(path), "its partition.metadata is missing"
        except DamagedFile as error:
            noted, fault = None, str(error)
        if noted is not None and noted.topic_id in image.deleted:
            self._directory.set_aside(path)
            return None
        if noted is None:
            if known is None:
                if not self._is_worth_keeping(path, name, image):
                    return None
                known = (name, uuid.uuid4())
                image.topics[known] = TopicEntry(1, self._default_overrides(name))
                logger.error("%s: %s, nor is topic %s in the metadata; it gets the new id %s", path.name, fault, *known)
            logger.error("%s: %s; written again", path.name, fault)
            self._directory.repair_note(path, *known)
            return known
        key = (noted.topic, noted.topic_id)
        if known is None:
            logger.warning("topic %s is not in the metadata; taking it back from %s", name, path.name)
            image.topics[key] = TopicEntry(1, self._default_overrides(name))
        elif key != known and is_damaged:
            # The journal has lost entries: the directory knows better which topic was there last.
            logger.error("topic %s has the id %s, not %s as in the metadata; its configs are lost", *key, known[1])
            image.topics[key] = TopicEntry(image.topics.pop(known).partitions, self._default_overrides(name))
        elif key != known:
            logger.error("%s: partition.metadata names topic id %s; it belongs to %s", path.name, key[1], known[1])
            self._directory.repair_note(path, *known)
            return known
        return key

    def _is_worth_keeping(self, path: Path, name: str, image: MetadataImage) -> bool:
        """Whether a directory without a note and without a topic holds records that somebody may miss."""
        if topic_name_fault(name) is not None or not any(file.stat().st_size for file in path.glob("*.log")):
            return False
        if name in image.deleted_names:
            logger.error("%s holds records, but its topic was deleted: they are not served, and not removed", path.name)
            return False
        return True

    def _default_overrides(self, name: str) -> dict[str, str]:
        """Configs of a topic that was found without any."""
        if name != OFFSETS_TOPIC:
            return {}
        segment_bytes = str(self._settings.offsets_topic_segment_bytes)
        return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment_bytes}

    def create_offsets_topic(self) -> Topic:
        return self.create(OFFSETS_TOPIC, 1, self._default_overrides(OFFSETS_TOPIC))

    def _open(self, name: str, topic_id: uuid.UUID, entry: TopicEntry) -> Topic:
        try:
            settings = self._settings.topic_settings(entry.overrides)
        except InvalidConfig as error:
            logger.error("topic %s has configs that are no longer valid, using defaults: %s", name, error)
            settings = self._settings.topic_settings({})
        topic = Topic(name, topic_id, entry.overrides, settings)
        self._open_partitions(topic, entry.partitions, self._directory.last_run)
        self._by_name[name] = topic
        self._by_id[topic_id] = topic
        return topic

    def _open_partitions(self, topic: Topic, total: int, last_run: LastRun) -> None:
        for index in range(len(topic.partitions), total):
            path = self._directory.partition_path(topic.name, index)
            recovery_point = self._directory.recovery_points.get(path.name, 0)
            if not path.exists():
                logger.error("%s: the directory is missing; the partition starts empty", path.name)
                self._directory.create_partitions(topic.name, topic.topic_id, range(index, index + 1))
            log = open_log(
                path,
                topic.settings,
                last_run,
                recovery_point,
                self._leader_epoch,
                self._clock.wall_ms(),
            )
            topic.partitions.append(Partition(topic, index, log))
            self.partition_count += 1

    def create(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Topic:
        """Create a topic in one go. Raises StorageError, InvalidConfig; the caller has checked name and count."""
        return finish(self.creating(name, partition_count, overrides))

    def creating(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Generator[None, None, Topic]:
        """Create a topic in steps. It is visible after the last one. Raises as `create` does."""
        topic = Topic(name, uuid.uuid4(), overrides, self._settings.topic_settings(overrides))
        yield from self._adding(topic, partition_count)
        self._by_name[name] = topic
        self._by_id[topic.topic_id] = topic
        return topic

    def adding_partitions(self, topic: Topic, total: int) -> Generator[None, None, None]:
        """Add partitions to a topic in steps. Raises StorageError."""
        yield from self._adding(topic, total)

    def _adding(self, topic: Topic, total: int) -> Generator[None, None, None]:
        """Directories first, then the journal. What an error leaves is removed, so that no later start takes it in."""
        new = range(len(topic.partitions), total)
        try:
            for start in range(new.start, new.stop, partitions_per_step):
                self._directory.create_partitions(
                    topic.name, topic.topic_id, range(start, min(start + partitions_per_step, total))
                )
                yield
            self._save(topic, total)
        except StorageError:
            for index in new:
                self._directory.set_aside(self._directory.partition_path(topic.name, index))
            raise
        self._being_opened[topic.topic_id] = (topic, total)
        for start in range(new.start, new.stop, partitions_per_step):
            yield
            self._open_partitions(
                topic, min(start + partitions_per_step, total), LastRun(stopped_cleanly=True, same_boot=True)
            )
        self._being_opened.pop(topic.topic_id, None)

    def set_overrides(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        settings = self._settings.topic_settings(overrides)
        before, topic.overrides = topic.overrides, dict(overrides)
        try:
            self._save(topic, self._being_opened.get(topic.topic_id, (topic, len(topic.partitions)))[1])
        except Exception:
            topic.overrides = before
            raise
        self._apply(topic, settings)
        for callback in self.on_configs_set:
            callback(topic)

    def delete(self, topic: Topic) -> None:
        """Durable when it returns. The files are set aside here and removed by housekeeping."""
        assert self.journal is not None
        self.journal.append_now([(topic_key(topic.name, topic.topic_id), None)])
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self._being_opened.pop(topic.topic_id, None)
        self.partition_count -= len(topic.partitions)
        for partition in topic.partitions:
            partition.log.discard()
            self._directory.set_aside(partition.log.directory)
            partition.notify(0)
        for callback in self.on_delete:
            callback(topic)

    def allocate_producer_ids(self, count: int) -> range:
        """Allocate a new block of producer ids. Its end is stored durably in two places."""
        assert self.journal is not None
        block = range(self.next_producer_id, self.next_producer_id + count)
        write_block_end(self._directory.path, block.stop)
        self.journal.append_now([producer_ids_entry(block.stop)])
        self.next_producer_id = block.stop
        return block

    def save_broker_overrides(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        assert self.journal is not None
        self.journal.append_now([broker_entry(scope, overrides)])

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        """The live state, for the journal's compaction."""
        for topic in self._by_name.values():
            if topic.topic_id not in self._being_opened:
                yield topic_entry(topic.name, topic.topic_id, len(topic.partitions), topic.overrides)
        for topic, total in self._being_opened.values():
            yield topic_entry(topic.name, topic.topic_id, total, topic.overrides)
        for scope in Scope:
            yield broker_entry(scope, self._settings.dynamic(scope))
        yield producer_ids_entry(self.next_producer_id)

    def _save(self, topic: Topic, partition_count: int) -> None:
        assert self.journal is not None
        self.journal.append_now([topic_entry(topic.name, topic.topic_id, partition_count, topic.overrides)])

    def _settings_changed(self) -> None:
        for topic in self._by_name.values():
            self._apply(topic, self._settings.topic_settings(topic.overrides))

    def _apply(self, topic: Topic, settings: TopicSettings) -> None:
        topic.settings = settings
        for partition in topic.partitions:
            partition.log.settings = settings


def finish(steps: Generator[None, None, T]) -> T:
    """Do all steps without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
