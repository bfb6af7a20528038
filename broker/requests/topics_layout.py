"""The layout that Produce and Fetch responses share: an array of topics, each with an array of partitions."""

from typing import NamedTuple
from uuid import UUID

from kio.index import load_response_schema

from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.templates import ArrayTemplate, item_type
from headgate.broker.state.topics import Partition, Topic
from headgate.wire.entities import entity_encoder

_TOPICS = "responses"


class FieldNames(NamedTuple):
    """Names of the fields that differ between the two APIs."""

    topic_name: str
    partitions: str


class TopicsLayout:
    """Response templates for one API and version."""

    def __init__(self, api_key: int, version: int, names: FieldNames, sample_partition: Answer) -> None:
        self.api_key = api_key
        self.version = version
        self._names = names
        self._sample_partition = sample_partition
        self.schema = load_response_schema(api_key, version)
        self._topic_schema = item_type(self.schema, _TOPICS)
        self.partition_schema = item_type(self._topic_schema, names.partitions)
        self.response = ArrayTemplate(self.schema, {}, _TOPICS, {names.partitions: ()})
        self._any_topic = probe = self._topic_template("", None)
        self.topic_tail = probe.tail
        self.topic_length = probe.length
        self.is_flexible = probe.flexible

    def _topic_template(self, name: str, topic_id: object) -> ArrayTemplate:
        fields: Answer = {self._names.topic_name: name, "topic_id": topic_id}
        return ArrayTemplate(self._topic_schema, fields, self._names.partitions, self._sample_partition)

    def topic_head(self, topic: Topic | None, requested_name: str = "", requested_id: UUID | None = None) -> bytes:
        """Encode a topic up to the number of its partitions. An unknown topic gets the name or id of the request."""
        if topic is None:
            requested: Answer = {self._names.topic_name: requested_name, "topic_id": requested_id}
            return self._any_topic.head_of(entity_encoder(self._topic_schema)(requested))
        key = (self.api_key, self.version)
        head = topic.templates.get(key)
        if head is None:
            head = topic.templates[key] = self._topic_template(topic.name, topic.topic_id).head
        return head

    def around(self, partition: Partition) -> tuple[bytes, bytes]:
        """Return the bytes before and after the partition in a response with only one partition."""
        before = self.response.head + self.response.length(1) + self.topic_head(partition.topic)
        return before + self.topic_length(1), self.topic_tail + self.response.tail

    def failed_partition(self, index: int, behind_index: bytes) -> bytes:
        """Encode a failed partition from its index and `behind_index`, the encoded fields after the index.

        A request can contain thousands of unknown partitions. They share the same encoded fields.
        """
        return index.to_bytes(4, signed=True) + behind_index

    def encode_behind_index(self, fields: Answer) -> bytes:
        return entity_encoder(self.partition_schema)(fields)[4:]
