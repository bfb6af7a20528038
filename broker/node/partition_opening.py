"""Opens the logs of a topic's partitions."""

import logging

from headgate.broker.log.directory import DataDirectory
from headgate.broker.log.recovery import LastRun, open_log
from headgate.broker.runtime.clock import Clock
from headgate.broker.state.topics import Topic, Topics

logger = logging.getLogger("headgate.broker.topics")


class PartitionOpening:
    def __init__(self, topics: Topics, directory: DataDirectory, clock: Clock, leader_epoch: int) -> None:
        self._topics = topics
        self._directory = directory
        self._clock = clock
        self._leader_epoch = leader_epoch

    def open_new(self, topic: Topic, total: int) -> None:
        """Open partitions whose directories were just created, until the topic has `total`."""
        self._open(topic, total, LastRun(stopped_cleanly=True, same_boot=True))

    def open_existing(self, topic: Topic, total: int) -> None:
        """Open partitions of an earlier run, with recovery if it did not stop cleanly."""
        self._open(topic, total, self._directory.last_run)

    def _open(self, topic: Topic, total: int, last_run: LastRun) -> None:
        for index in range(len(topic.partitions), total):
            path = self._directory.partition_path(topic.name, index)
            recovery_point = self._directory.recovery_points.get(path.name, 0)
            if not path.exists():
                logger.error("%s: the directory is missing; the partition starts empty", path.name)
                self._directory.create_partitions(topic.name, topic.topic_id, range(index, index + 1))
            now_ms = self._clock.wall_ms()
            log = open_log(path, topic.settings, last_run, recovery_point, self._leader_epoch, now_ms)
            self._topics.add_partition(topic, log)
