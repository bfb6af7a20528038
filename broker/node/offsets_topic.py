"""The topic `__consumer_offsets`: the journal of the group coordinator. The first entry creates the topic."""

import logging
from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.journal import Entry, Journal
from headgate.broker.node.error_codes import code_of
from headgate.broker.node.topic_recovery import default_overrides
from headgate.broker.node.topic_store import TopicStore
from headgate.broker.runtime.clock import Clock
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.settings import BrokerSettings
from headgate.broker.state.topic_names import OFFSETS_TOPIC
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker")


class OffsetsTopic:
    """Implements `broker.state.groups.journal.Journal`."""

    def __init__(
        self,
        topics: Topics,
        store: TopicStore,
        settings: BrokerSettings,
        clock: Clock,
        group_commit: GroupCommit,
        reserve: DiskReserve,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._group_commit = group_commit
        self._reserve = reserve
        topic = topics.find(OFFSETS_TOPIC)
        self.journal = None if topic is None else self._journal_of(topic)
        """None until the topic exists."""

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        try:
            self._reserve.check_space()
            if self.journal is None:
                overrides = default_overrides(OFFSETS_TOPIC, self._settings)
                self.journal = self._journal_of(self._store.create(OFFSETS_TOPIC, 1, overrides))
            appended = self.journal.append(entries)
        except StorageError as error:
            logger.error("cannot store group state: %s", error)
            return Deferred.of(code_of(error))
        return appended.map(lambda error: ErrorCode.none if error is None else code_of(error))

    def _journal_of(self, topic: Topic) -> Journal:
        return Journal(topic.partitions[0].log, self._clock, group_commit=self._group_commit)
