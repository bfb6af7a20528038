"""The layout of a Fetch response: templates for each version, and the errors of a partition."""

from functools import cache, lru_cache

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from headgate.broker.log.region import Region
from headgate.broker.protocol.entities import Answer, Request
from headgate.broker.protocol.payload import Payload
from headgate.broker.protocol.templates import ArrayTemplate, NumbersTemplate, compact_length, encode, item_type
from headgate.broker.state.topics import Partition, Topic

API_KEY = 1
READ_COMMITTED = 1

# Marks the template of an answer that holds one partition and nothing else.
_ALONE = 1


class Refused(Exception):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


class Diverged(Exception):
    """The log that the client has is not a part of this one: the last epoch of both, and where it ends here."""

    def __init__(self, partition: Partition, epoch: int, end_offset: int) -> None:
        super().__init__(f"epoch {epoch} ends at {end_offset}")
        self.partition = partition
        self.epoch = epoch
        self.end_offset = end_offset


class ResponseLayout:
    """The response at one version, as templates."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._schema = load_response_schema(API_KEY, version)
        self._topic_schema = item_type(self._schema, "responses")
        self._partition_schema = item_type(self._topic_schema, "partitions")
        self.response = ArrayTemplate(self._schema, {}, "responses", {"partitions": ()})
        self._any_topic = probe = self._topic_template("", None)
        self.topic_tail = probe.tail
        self.topic_length = probe.length
        # The records are a partition's last field: a length, the bytes and, in flexible versions, no tagged fields.
        self._flexible = probe.flexible
        self._empty = b"\x01\x00" if self._flexible else b"\x00\x00\x00\x00"
        self.records_tail = b"\x00" if self._flexible else b""
        self.no_records = self._empty
        self._tail_alone = self.records_tail + self.topic_tail + self.response.tail

    def records_length(self, length: int) -> bytes:
        return compact_length(length) if self._flexible else length.to_bytes(4)

    def refusal(self, error: ErrorCode) -> bytes:
        return encode(self._schema, {"error_code": error, "responses": ()})

    def _topic_template(self, name: str, topic_id: object) -> ArrayTemplate:
        fields: Answer = {"topic": name, "topic_id": topic_id}
        return ArrayTemplate(self._topic_schema, fields, "partitions", {"aborted_transactions": None})

    def topic_head(self, topic: Topic | None, wanted: Request) -> bytes:
        if topic is None:
            named = {"topic": getattr(wanted, "topic", ""), "topic_id": getattr(wanted, "topic_id", None)}
            return self._any_topic.head_of(encode(self._topic_schema, named))
        key = (API_KEY, self.version)
        head = topic.templates.get(key)
        if head is None:
            head = topic.templates[key] = self._topic_template(topic.name, topic.topic_id).head
        return head

    def success(self, partition: Partition, isolation: int) -> bytes:
        """A partition without an error, up to the length of its records."""
        key = (API_KEY, self.version, isolation)
        template = partition.templates.get(key)
        if template is None:
            template = partition.templates[key] = self._partition_template(partition, isolation)
        return self._filled(template, partition)

    def _filled(self, template: NumbersTemplate, partition: Partition) -> bytes:
        log = partition.log
        end = log.high_watermark
        if self.version >= 5:
            return template.head + template.pack(end, end, log.log_start_offset) + template.tail
        return template.head + template.pack(end, end) + template.tail

    def alone(self, partition: Partition, isolation: int, region: Region) -> Payload:
        """An answer with the records of one partition, as a whole."""
        key = (API_KEY, self.version, isolation, _ALONE)
        template = partition.templates.get(key)
        if template is None:
            before = self.response.head + self.response.length(1) + self.topic_head(partition.topic, None)
            template = self._partition_template(partition, isolation).within(before + self.topic_length(1), b"")
            partition.templates[key] = template
        head = self._filled(template, partition) + self.records_length(region.length)
        length = len(head) + region.length
        tail = self._tail_alone
        return Payload((head, region, tail), length + len(tail)) if tail else Payload((head, region), length)

    def _partition_template(self, partition: Partition, isolation: int) -> NumbersTemplate:
        template = NumbersTemplate(
            self._partition_schema,
            {
                "partition_index": partition.index,
                "error_code": ErrorCode.none,
                "aborted_transactions": () if isolation == READ_COMMITTED else None,
                "preferred_read_replica": -1,
                "records": b"",
            },
            ("high_watermark", "last_stable_offset", "log_start_offset"),
        )
        template.tail = template.tail.removesuffix(self._empty)
        return template

    def parting(self, parting: Diverged) -> bytes:
        partition, log = parting.partition, parting.partition.log
        fields: Answer = {
            "partition_index": partition.index,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "log_start_offset": log.log_start_offset,
            "diverging_epoch": {"epoch": parting.epoch, "end_offset": parting.end_offset},
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": b"",
        }
        return encode(self._partition_schema, fields)

    def failure(self, index: int, refusal: Refused, partition: Partition | None) -> bytes:
        out_of_range = refusal.error is ErrorCode.offset_out_of_range and partition is not None
        start = partition.log.log_start_offset if out_of_range and partition is not None else -1
        # The index is the first field. A request can name thousands of partitions that do not exist.
        return index.to_bytes(4, signed=True) + self._failure_behind_index(refusal.error, start)

    @lru_cache(maxsize=64)  # noqa: B019  # there is one shape per version, for good
    def _failure_behind_index(self, error: ErrorCode, log_start_offset: int) -> bytes:
        failure = {
            "partition_index": 0,
            "error_code": error,
            "high_watermark": -1,
            "last_stable_offset": -1,
            "log_start_offset": log_start_offset,
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": b"",
        }
        return encode(self._partition_schema, failure)[4:]


@cache
def response_layout(version: int) -> ResponseLayout:
    return ResponseLayout(version)
