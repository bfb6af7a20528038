"""Retention hold: stops retention for topics whose configs may be lost.

If entries of the metadata journal are damaged, the effective configs may be older values or defaults. Retention could
then delete records that the lost config would keep. The broker places a hold on every existing topic and stores it in a
file of the data directory. Setting the configs of a topic releases that topic. Removing the file releases all topics.
"""

import json
import logging
import uuid
from collections.abc import Mapping
from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked
from headgate.broker.log.files import remove_file
from headgate.broker.runtime.errors import StorageError

logger = logging.getLogger("headgate.broker.log")


class RetentionHold:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "retention-hold"
        self._topics: dict[str, str] = {}
        self._holds_all = False
        self._is_stored = True

    def load(self) -> None:
        """Read the file. A damaged file holds every topic. Raises StorageError."""
        try:
            stored = read_checked(self.path)
            if stored is None:
                return
            topics = json.loads(stored.content).get("topics")
            if not stored.is_checked or not isinstance(topics, dict):
                raise DamagedFile(self.path)
            self._topics = topics
        except (DamagedFile, ValueError, AttributeError) as error:
            logger.error("%s: %s; retention deletes nothing until the file is removed", self.path.name, error)
            self._holds_all = True

    def place(self, topics: Mapping[uuid.UUID, str]) -> None:
        """Add topics to the hold and store it durably. If the write fails, the hold lasts until the broker stops.

        `refresh` retries a failed write.
        """
        self._topics |= {str(topic_id): name for topic_id, name in topics.items()}
        self._try_to_store()

    def covers(self, topic_id: uuid.UUID) -> bool:
        return self._holds_all or str(topic_id) in self._topics

    def release(self, topic_id: uuid.UUID) -> None:
        """Release a topic. Call this after its configs are set or the topic is deleted."""
        name = self._topics.pop(str(topic_id), None)
        if name is not None:
            logger.info("%s: retention goes on, its configs were set", name)
            self._try_to_store()

    def refresh(self) -> None:
        """Release all topics if the operator has removed the file. Called before each retention run."""
        if not (self._topics or self._holds_all):
            return
        if not self._is_stored:
            self._try_to_store()
        if self.path.exists() or not self._is_stored:
            names = "all topics" if self._holds_all else ", ".join(sorted(self._topics.values())[:20])
            logger.warning(
                "retention is on hold for %s: configs may have been lost. Set the configs of a topic again to release"
                " it, or remove %s to release all.",
                names,
                self.path,
            )
        else:
            logger.info("%s was removed: retention goes on", self.path.name)
            self._topics, self._holds_all = {}, False

    def _try_to_store(self) -> None:
        try:
            if self._topics:
                write_checked(self.path, json.dumps({"topics": self._topics, "version": 1}).encode())
            else:
                remove_file(self.path)
            self._is_stored = True
        except StorageError as error:
            self._is_stored = False
            logger.error("the change of the hold on retention does not survive a restart yet: %s", error)
