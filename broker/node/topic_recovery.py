"""Recovers the topics at startup: from the metadata journal, and from directories that the journal does not contain.

Recovery assigns an unknown directory to a topic by its `partition.metadata`, or by its name. Therefore the loss of the
journal loses configs, but no records.
"""

import logging
import uuid
from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile
from headgate.broker.log.directory import DataDirectory, topic_of
from headgate.broker.node.partition_opening import PartitionOpening
from headgate.broker.state.configs.values import InvalidConfig
from headgate.broker.state.metadata_image import MetadataImage, TopicEntry, TopicKey
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topic_names import METADATA_TOPIC, OFFSETS_TOPIC, topic_name_fault
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker.topics")


def default_overrides(name: str, settings: BrokerSettings) -> dict[str, str]:
    """Return the configs of a new internal topic, or of a topic whose configs are lost."""
    if name != OFFSETS_TOPIC:
        return {}
    segment_bytes = str(settings.offsets_topic_segment_bytes)
    return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment_bytes}


class TopicRecovery:
    def __init__(
        self, topics: Topics, directory: DataDirectory, settings: BrokerSettings, opening: PartitionOpening
    ) -> None:
        self._topics = topics
        self._directory = directory
        self._settings = settings
        self._opening = opening
        self.restored: list[Topic] = []
        """Topics that were not in the journal."""
        self.invalid: list[Topic] = []
        """Topics with the default configs, because the stored ones are invalid."""

    def recover(self, image: MetadataImage, *, is_damaged: bool) -> None:
        """Open all partitions. If `is_damaged` is True, entries may be missing from the image."""
        known = {key[0]: key for key in image.topics}
        in_journal = set(image.topics)
        for path in self._directory.partition_paths():
            named = topic_of(path)
            if named is None or named[0] == METADATA_TOPIC:
                continue
            key = self._find_owner(path, named[0], known.get(named[0]), image, is_damaged=is_damaged)
            if key is not None:
                known[named[0]] = key
                image.topics[key].partitions = max(image.topics[key].partitions, named[1] + 1)
        for key, entry in image.topics.items():
            topic = self._open(key, entry)
            self._topics.add(topic)
            if key not in in_journal:
                self.restored.append(topic)

    def _open(self, key: TopicKey, entry: TopicEntry) -> Topic:
        topic = Topic(*key, entry.overrides, self._settings.topic_settings({}))
        try:
            topic.settings = self._settings.topic_settings(entry.overrides)
        except InvalidConfig as error:
            logger.error("topic %s has configs that are no longer valid, using defaults: %s", key[0], error)
            self.invalid.append(topic)
        self._opening.open_existing(topic, entry.partitions)
        return topic

    def _find_owner(
        self, path: Path, name: str, known: TopicKey | None, image: MetadataImage, *, is_damaged: bool
    ) -> TopicKey | None:
        """Return the topic of a directory, or None. Adds missing topics to the image and repairs `partition.metadata`.

        `known` is the topic with this name in the image.
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
                image.topics[known] = TopicEntry(1, default_overrides(name, self._settings))
                logger.error("%s: %s, nor is topic %s in the metadata; it gets the new id %s", path.name, fault, *known)
            logger.error("%s: %s; written again", path.name, fault)
            self._directory.repair_note(path, *known)
            return known
        key = (noted.topic, noted.topic_id)
        if known is None:
            logger.warning("topic %s is not in the metadata; taking it back from %s", name, path.name)
            image.topics[key] = TopicEntry(1, default_overrides(name, self._settings))
        elif key != known and is_damaged:
            # The journal has lost entries, so trust the directory.
            logger.error("topic %s has the id %s, not %s as in the metadata; its configs are lost", *key, known[1])
            image.topics[key] = TopicEntry(image.topics.pop(known).partitions, default_overrides(name, self._settings))
        elif key != known:
            logger.error("%s: partition.metadata names topic id %s; it belongs to %s", path.name, key[1], known[1])
            self._directory.repair_note(path, *known)
            return known
        return key

    def _is_worth_keeping(self, path: Path, name: str, image: MetadataImage) -> bool:
        """Whether a directory without `partition.metadata` and without a topic contains records of a lost topic."""
        if topic_name_fault(name) is not None or not any(file.stat().st_size for file in path.glob("*.log")):
            return False
        if name in image.deleted_names:
            logger.error("%s holds records, but its topic was deleted: they are not served, and not removed", path.name)
            return False
        return True
