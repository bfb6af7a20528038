"""The broker without sockets: its data directory, its state and its background work.

`broker.node.opening.open_broker` recovers the data directory and builds a Broker. `broker.server` drives it: it passes
requests to `broker.engine`, runs `timers`, and provides `post` for the results of other threads.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.disk_reserve import DiskReserve
from headgate.broker.log.group_commit import GroupCommit
from headgate.broker.log.page_cache import ColdReads
from headgate.broker.log.retention_hold import RetentionHold
from headgate.broker.node.checkpoints import Checkpoints
from headgate.broker.node.file_removal import FileRemoval
from headgate.broker.node.metadata_journal import MetadataJournal
from headgate.broker.node.retention import Retention
from headgate.broker.node.topic_store import TopicStore
from headgate.broker.node.unsupported_features import UnsupportedFeatures
from headgate.broker.protocol.outcomes import Disconnect
from headgate.broker.runtime.background_calls import BackgroundCalls
from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.runtime.errors import StorageError
from headgate.broker.runtime.time_slicing import TimeSlices
from headgate.broker.state.groups.coordinator import GroupCoordinator
from headgate.broker.state.producer_ids import ProducerIds
from headgate.broker.state.settings import BrokerSettings, Scope
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker")


@dataclass(slots=True, eq=False, kw_only=True)
class Broker:
    settings: BrokerSettings
    node_id: int
    cluster_id: str
    address: tuple[str, int]
    """The listen address of the server."""

    clock: Clock
    timers: Timers
    slices: TimeSlices[Disconnect]
    unsupported: UnsupportedFeatures

    directory: DataDirectory
    reserve: DiskReserve
    group_commit: GroupCommit
    cold_reads: ColdReads
    record_checks: BackgroundCalls

    topics: Topics
    topic_store: TopicStore
    groups: GroupCoordinator
    producer_ids: ProducerIds
    metadata: MetadataJournal

    retention_hold: RetentionHold
    retention: Retention
    checkpoints: Checkpoints
    removal: FileRemoval

    def advertised(self) -> tuple[str, int]:
        """Return the address that clients connect to: the first advertised listener, or the listen address."""
        for listener in self.settings.advertised_listeners or ():
            host, _, port = listener.rpartition("://")[2].rpartition(":")
            return host.strip("[]"), int(port)
        return self.address

    def set_topic_overrides(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Replace the configs of a topic. Raises StorageError, InvalidConfig."""
        self.topic_store.set_overrides(topic, overrides)
        self.retention_hold.release(topic.topic_id)

    def set_broker_overrides(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        """Replace the dynamic broker configs of a scope. Raises StorageError, InvalidConfig."""
        self.settings.alter(scope, overrides, self.metadata.save_broker_overrides)
        self.topics.apply(self.settings)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and its committed offsets. Raises StorageError."""
        self.topic_store.delete(topic)
        self.groups.on_topic_deleted(topic.name)
        self.removal.start_soon()
        self.retention_hold.release(topic.topic_id)

    def close(self) -> None:
        """Flush all logs and mark the directory as clean, so that the next start needs no recovery."""
        self.group_commit.stop()
        self.cold_reads.stop()
        self.record_checks.stop()
        self.removal.join()
        clean = True
        points: dict[str, int] = {}
        for log in (self.metadata.log, *self.topics.logs()):
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
