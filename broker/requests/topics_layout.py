"""The layout that Produce and Fetch responses share: an array of topics, each with an array of partitions."""

from typing import NamedTuple
from uuid import UUID

from kio.index import load_response_schema

from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.templates import ArrayTemplate, item_type
from headgate.broker.state.topics import Partition, Topic
from headgate.wire.entities import entity_encoder

_TOPICS = "responses"


class FieldNames(NamedTuple):
    """The names of the fields that differ between the two APIs."""

    topic_name: str
    partitions: str


class TopicsLayout:
    """The response of one API at one version, as templates."""

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
        """The bytes of a topic before the number of its partitions. An unknown topic has the name or id of the
        request."""
        if topic is None:
            requested: Answer = {self._names.topic_name: requested_name, "topic_id": requested_id}
            return self._any_topic.head_of(entity_encoder(self._topic_schema)(requested))
        key = (self.api_key, self.version)
        head = topic.templates.get(key)
        if head is None:
            head = topic.templates[key] = self._topic_template(topic.name, topic.topic_id).head
        return head

    def around(self, partition: Partition) -> tuple[bytes, bytes]:
        """The bytes before and behind the partition in a response that contains nothing else."""
        before = self.response.head + self.response.length(1) + self.topic_head(partition.topic)
        return before + self.topic_length(1), self.topic_tail + self.response.tail

    def failed_partition(self, index: int, behind_index: bytes) -> bytes:
        """The index is the first field. A request can name thousands of partitions that do not exist, so the fields
        behind the index are encoded once for all of them."""
        return index.to_bytes(4, signed=True) + behind_index

    def encode_behind_index(self, fields: Answer) -> bytes:
        return entity_encoder(self.partition_schema)(fields)[4:]
