"""Topics whose old records are kept because their configs may have been lost.

When entries of the metadata journal are damaged, the configs in effect may be older ones, or defaults. Retention would
then delete records that the lost config kept. Every topic that existed is put on hold, in a file of the data directory.
A topic is released when its configs are set again, all of them when the operator removes the file.
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
        """Read the file. A damaged one holds every topic. Raises StorageError."""
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
        """Hold these topics too. Durable when it returns; a hold that cannot be stored lasts until the broker stops."""
        self._topics |= {str(topic_id): name for topic_id, name in topics.items()}
        self._try_to_store()

    def covers(self, topic_id: uuid.UUID) -> bool:
        return self._holds_all or str(topic_id) in self._topics

    def release(self, topic_id: uuid.UUID) -> None:
        """The topic's configs were set, or the topic was deleted."""
        name = self._topics.pop(str(topic_id), None)
        if name is not None:
            logger.info("%s: retention goes on, its configs were set", name)
            self._try_to_store()

    def refresh(self) -> None:
        """Called before each round of retention: see whether the operator has removed the file."""
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
