"""Creates topics and partitions for one request: checks names by Kafka's rules, and limits the number of partitions."""

from collections.abc import Generator, Mapping

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.node.error_codes import refusal_of
from headgate.broker.node.topic_store import finish
from headgate.broker.node.unsupported_features import Feature
from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.topic_names import INTERNAL_TOPICS, METADATA_TOPIC, TakenNames, topic_name_fault
from headgate.broker.state.topics import Topic

REQUEST_PARTITIONS_MAX = 10_000
"""Kafka's limit. Other requests that create topics or partitions wait until this request is complete."""

AUTO_CREATED_MAX = 100
"""Limit on the topics that one Metadata request creates. As in Kafka, the client retries for the other topics."""


def report_compaction(broker: Broker, topic: Topic) -> None:
    """Log that `cleanup.policy=compact` has no effect. Internal topics are excluded: their journals compact them."""
    if topic.settings.is_compacted and not topic.internal:
        broker.unsupported.report(Feature.COMPACTION, f"topic {topic.name}")


class TopicCreation:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions_left = REQUEST_PARTITIONS_MAX
        self._auto_creations_left = AUTO_CREATED_MAX
        # Built for the first new topic, because most Metadata requests create no topic.
        self._taken: TakenNames | None = None

    def auto_creating(self, name: str) -> Generator[None, None, None]:
        """Create a topic that does not exist, in steps, for a Metadata request. Raises Refusal."""
        self.check_name(name)
        if self._auto_creations_left == 0:
            raise Refusal(ErrorCode.leader_not_available, "Too many topics to create for one request: ask again.")
        self._auto_creations_left -= 1
        yield from self.creating(name, self._broker.settings.num_partitions, {})

    def check_name(self, name: str) -> None:
        """Check that a topic with this name can be created. Raises Refusal."""
        topics = self._broker.topics
        fault = topic_name_fault(name)
        if fault is not None:
            raise Refusal(ErrorCode.invalid_topic_exception, fault)
        if name == METADATA_TOPIC:
            raise Refusal(ErrorCode.invalid_request, f"Creation of internal topic {name} is prohibited.")
        if topics.find(name) is not None:
            raise Refusal(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
        if self._taken is None:
            self._taken = TakenNames(topic.name for topic in topics.all())
        other = self._taken.colliding_with(name)
        if other is not None:
            raise Refusal(ErrorCode.invalid_topic_exception, f"Topic '{name}' collides with existing topic: {other}")

    def creating(self, name: str, partition_count: int, overrides: Mapping[str, str]) -> Generator[None, None, Topic]:
        """Create a topic in steps. The caller checks name and configs. Raises Refusal."""
        self.take(already=0, total=partition_count)
        try:
            self._broker.reserve.check_space()
            steps = self._broker.topic_store.creating(name, partition_count, overrides)
            # Create internal topics without yielding: the group coordinator creates the same topics and does not wait.
            topic = finish(steps) if name in INTERNAL_TOPICS else (yield from steps)
        except StorageError as error:
            raise refusal_of(error) from error
        self.reserve(name)
        report_compaction(self._broker, topic)
        return topic

    def reserve(self, name: str) -> None:
        """Include this name in the collision check for later names of the request."""
        if self._taken is not None:
            self._taken.add(name)

    def adding_partitions(self, topic: Topic, total: int) -> Generator[None, None, None]:
        """Add partitions in steps. Raises Refusal."""
        self.take(already=len(topic.partitions), total=total)
        try:
            self._broker.reserve.check_space()
            yield from self._broker.topic_store.adding_partitions(topic, total)
        except StorageError as error:
            raise refusal_of(error) from error

    def take(self, *, already: int, total: int) -> None:
        """Count the new partitions of a topic that grows from `already` to `total`. Raises Refusal above a limit."""
        settings = self._broker.settings
        new = total - already
        if new > self._partitions_left:
            raise Refusal(ErrorCode.policy_violation, "Excessively large number of partitions per request.")
        if total > settings.headgate_topic_partitions_max:
            maximum = settings.headgate_topic_partitions_max
            raise Refusal(
                ErrorCode.invalid_partitions,
                f"{total} partitions: headgate.topic.partitions.max={maximum}.",
            )
        count, maximum = self._broker.topics.partition_count, settings.headgate_partitions_max
        if count + new > maximum:
            raise Refusal(
                ErrorCode.invalid_partitions,
                f"There are {count} partitions: headgate.partitions.max={maximum}.",
            )
        self._partitions_left -= new
