"""Topics and their partitions: which exist, under which id, with which settings.

Kept in the metadata journal; a change is durable before it is visible. A directory that the journal does not know is
taken back in by the note inside it, so that losing the journal loses settings and never records.
"""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from broker.clock import Clock
from broker.log.directory import DataDirectory
from broker.log.journal import Journal
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LastRun, open_log
from broker.protocol.templates import NumbersTemplate
from broker.settings import BrokerSettings, Scope
from broker.state.configs.effective import TopicSettings
from broker.state.configs.values import InvalidConfig
from broker.state.topic_names import INTERNAL_TOPICS

logger = logging.getLogger("headgate.broker.topics")

_TOPIC_KEY = b"topic\x00"
_BROKER_KEY = b"broker\x00"
_PRODUCER_IDS_KEY = b"producer-ids"


class _TopicEntry(msgspec.Struct):
    partitions: int
    overrides: dict[str, str]


class Partition:
    """One partition as the rest of the broker sees it."""

    __slots__ = ("index", "log", "templates", "topic", "waiters")

    def __init__(self, topic: "Topic", index: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.log = log
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
        self.next_producer_id = 0
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._leader_epoch = leader_epoch
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
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

    def load(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replay the metadata journal and open every partition."""
        known: dict[tuple[str, uuid.UUID], _TopicEntry] = {}
        deleted: set[uuid.UUID] = set()
        for key, value in entries:
            if key.startswith(_TOPIC_KEY):
                identity = _split_topic_key(key)
                if value is None:
                    known.pop(identity, None)
                    deleted.add(identity[1])
                else:
                    known[identity] = msgspec.json.decode(value, type=_TopicEntry)
            elif key.startswith(_BROKER_KEY):
                overrides = msgspec.json.decode(value or b"{}", type=dict[str, str])
                self._restore_settings(Scope(key[len(_BROKER_KEY) :].decode()), overrides)
            elif key == _PRODUCER_IDS_KEY and value is not None:
                self.next_producer_id = int(value)
        self._adopt_unknown(known, deleted)
        for (name, topic_id), entry in known.items():
            self._open(name, topic_id, entry)

    def _restore_settings(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        try:
            self._settings.restore(scope, overrides)
        except InvalidConfig as error:
            logger.error("ignoring stored broker configs that are no longer valid: %s", error)

    def _adopt_unknown(self, known: dict[tuple[str, uuid.UUID], _TopicEntry], deleted: set[uuid.UUID]) -> None:
        for path in self._directory.partition_paths():
            owner = self._directory.owner(path)
            if owner is None or owner[0].startswith("__cluster_metadata"):
                continue
            name, topic_id, index = owner
            if topic_id in deleted:
                self._directory.set_aside(path)
                continue
            entry = known.get((name, topic_id))
            if entry is None:
                if any(known_name == name for known_name, _ in known):
                    continue
                logger.warning("topic %s is not in the metadata; taking it back from %s", name, path.name)
                known[name, topic_id] = _TopicEntry(index + 1, {})
            elif index >= entry.partitions:
                entry.partitions = index + 1

    def _open(self, name: str, topic_id: uuid.UUID, entry: _TopicEntry) -> Topic:
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
            if not path.exists():
                self._directory.create_partitions(topic.name, topic.topic_id, range(index, index + 1))
            log = open_log(
                path,
                topic.settings,
                last_run,
                self._directory.recovery_points.get(path.name, 0),
                self._leader_epoch,
                self._clock.wall_ms(),
            )
            topic.partitions.append(Partition(topic, index, log))
            self.partition_count += 1

    def create(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Topic:
        """Raises StorageError, InvalidConfig; the caller has checked name and count."""
        topic = Topic(name, uuid.uuid4(), overrides, self._settings.topic_settings(overrides))
        self._directory.create_partitions(name, topic.topic_id, range(partition_count))
        self._save(topic, partition_count)
        self._open_partitions(topic, partition_count, LastRun(stopped_cleanly=True, same_boot=True))
        self._by_name[name] = topic
        self._by_id[topic.topic_id] = topic
        return topic

    def add_partitions(self, topic: Topic, total: int) -> None:
        self._directory.create_partitions(topic.name, topic.topic_id, range(len(topic.partitions), total))
        self._save(topic, total)
        self._open_partitions(topic, total, LastRun(stopped_cleanly=True, same_boot=True))

    def set_overrides(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        settings = self._settings.topic_settings(overrides)
        before, topic.overrides = topic.overrides, dict(overrides)
        try:
            self._save(topic, len(topic.partitions))
        except Exception:
            topic.overrides = before
            raise
        self._apply(topic, settings)

    def delete(self, topic: Topic) -> None:
        """Durable when it returns. The files are set aside here and removed by housekeeping."""
        assert self.journal is not None
        self.journal.append_now([(_topic_key(topic), None)])
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self.partition_count -= len(topic.partitions)
        for partition in topic.partitions:
            partition.log.is_deleted = True
            self._directory.set_aside(partition.log.directory)
            partition.notify(0)
        for callback in self.on_delete:
            callback(topic)

    def allocate_producer_ids(self, count: int) -> range:
        """A block of producer ids that nobody had before, durably."""
        assert self.journal is not None
        block = range(self.next_producer_id, self.next_producer_id + count)
        self.journal.append_now([(_PRODUCER_IDS_KEY, str(block.stop).encode())])
        self.next_producer_id = block.stop
        return block

    def save_broker_overrides(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        assert self.journal is not None
        self.journal.append_now([(_BROKER_KEY + scope.value.encode(), msgspec.json.encode(dict(overrides)))])

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        """The live state, for the journal's compaction."""
        for topic in self._by_name.values():
            entry = _TopicEntry(len(topic.partitions), dict(topic.overrides))
            yield _topic_key(topic), msgspec.json.encode(entry)
        for scope in Scope:
            yield _BROKER_KEY + scope.value.encode(), msgspec.json.encode(dict(self._settings.dynamic(scope)))
        yield _PRODUCER_IDS_KEY, str(self.next_producer_id).encode()

    def _save(self, topic: Topic, partition_count: int) -> None:
        assert self.journal is not None
        entry = _TopicEntry(partition_count, dict(topic.overrides))
        self.journal.append_now([(_topic_key(topic), msgspec.json.encode(entry))])

    def _settings_changed(self) -> None:
        for topic in self._by_name.values():
            self._apply(topic, self._settings.topic_settings(topic.overrides))

    def _apply(self, topic: Topic, settings: TopicSettings) -> None:
        topic.settings = settings
        for partition in topic.partitions:
            partition.log.settings = settings


def _topic_key(topic: Topic) -> bytes:
    return _TOPIC_KEY + topic.name.encode() + b"\x00" + topic.topic_id.bytes


def _split_topic_key(key: bytes) -> tuple[str, uuid.UUID]:
    return key[len(_TOPIC_KEY) : -17].decode(), uuid.UUID(bytes=key[-16:])
