"""New topics and partitions, whoever asks for them: names by Kafka's rules, and bounds on how many there may be.

One object serves one request, so that a request cannot make more partitions than a request may.
"""

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headgate.broker.node.unsupported_features import Feature
from headgate.broker.protocol.refusal import Refusal
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.topic_names import INTERNAL_TOPICS, METADATA_TOPIC, TakenNames, topic_name_fault
from headgate.broker.state.topics import Topic, finish

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

REQUEST_PARTITIONS_MAX = 10_000
"""Kafka's own bound: a request makes its partitions one after the other, and others wait for it."""


AUTO_CREATED_MAX = 100
"""Topics that one Metadata request brings into being. The client asks again for the rest, as it does in Kafka."""


def report_compaction(broker: "Broker", topic: Topic) -> None:
    """Log that `cleanup.policy=compact` has no effect. Internal topics are compacted by their journals."""
    if topic.settings.is_compacted and not topic.internal:
        broker.unsupported.report(Feature.COMPACTION, f"topic {topic.name}")


class TopicCreation:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._partitions_left = REQUEST_PARTITIONS_MAX
        self._auto_creations_left = AUTO_CREATED_MAX
        # Looked up only when a topic is to be made: most Metadata requests make none.
        self._taken: TakenNames | None = None

    def auto_creating(self, name: str) -> Generator[None, None, None]:
        """Create, in steps, the topic that a client named before anybody created it. Raises Refusal."""
        self.check_name(name)
        if self._auto_creations_left == 0:
            raise Refusal(ErrorCode.leader_not_available, "Too many topics to create for one request: ask again.")
        self._auto_creations_left -= 1
        yield from self.creating(name, self._broker.settings.num_partitions, {})

    def check_name(self, name: str) -> None:
        """Raises Refusal unless a topic of this name can be made."""
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
        """Create, in steps, a topic whose name and configs are checked. Raises Refusal."""
        self.take(already=0, total=partition_count)
        try:
            self._broker.check_space()
            steps = self._broker.topics.creating(name, partition_count, overrides)
            # In one go: the group coordinator creates its topic too, and does not wait.
            topic = finish(steps) if name in INTERNAL_TOPICS else (yield from steps)
        except StorageError as error:
            raise Refusal(ErrorCode.kafka_storage_error, str(error)) from error
        self.reserve(name)
        report_compaction(self._broker, topic)
        return topic

    def reserve(self, name: str) -> None:
        """From now on the request's other names are held against this one, too."""
        if self._taken is not None:
            self._taken.add(name)

    def adding_partitions(self, topic: Topic, total: int) -> Generator[None, None, None]:
        """Add partitions in steps. Raises Refusal."""
        self.take(already=len(topic.partitions), total=total)
        try:
            self._broker.check_space()
            yield from self._broker.topics.adding_partitions(topic, total)
        except StorageError as error:
            raise Refusal(ErrorCode.kafka_storage_error, str(error)) from error

    def take(self, *, already: int, total: int) -> None:
        """Count new partitions; raises Refusal when a topic that has `already` so many may not have `total`."""
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
