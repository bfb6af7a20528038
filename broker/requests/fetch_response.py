"""The layout of a Fetch response: templates for each version, and the errors of a partition."""

from functools import cache, lru_cache

from kio.schema.errors import ErrorCode

from headgate.broker.log.region import Region
from headgate.broker.protocol.outcomes import Answer, Refusal
from headgate.broker.protocol.templates import NumbersTemplate, compact_length
from headgate.broker.requests.payload import Payload
from headgate.broker.requests.topics_layout import FieldNames, TopicsLayout
from headgate.broker.state.topics import Partition
from headgate.wire.entities import entity_encoder

API_KEY = 1
READ_COMMITTED = 1

# Marks the template of a response that contains only one partition.
_ALONE = 1


class Diverged(Exception):
    """The client's log diverges from this log (KIP-595). Contains the last common epoch and its end offset."""

    def __init__(self, partition: Partition, epoch: int, end_offset: int) -> None:
        super().__init__(f"epoch {epoch} ends at {end_offset}")
        self.partition = partition
        self.epoch = epoch
        self.end_offset = end_offset


class FetchLayout(TopicsLayout):
    """Response templates for one version."""

    def __init__(self, version: int) -> None:
        super().__init__(API_KEY, version, FieldNames("topic", "partitions"), {"aborted_transactions": None})
        # The records are the last field of a partition: length, bytes and, in flexible versions, empty tagged fields.
        self.no_records = b"\x01\x00" if self.is_flexible else b"\x00\x00\x00\x00"
        self.records_tail = b"\x00" if self.is_flexible else b""
        self._tail_alone = self.records_tail + self.topic_tail + self.response.tail

    def records_length(self, length: int) -> bytes:
        return compact_length(length) if self.is_flexible else length.to_bytes(4)

    def refusal(self, error: ErrorCode) -> bytes:
        return entity_encoder(self.schema)({"error_code": error, "responses": ()})

    def success(self, partition: Partition, isolation: int) -> bytes:
        """Encode a partition without an error, up to the length of its records."""
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
        """Build a complete response with the records of one partition."""
        key = (API_KEY, self.version, isolation, _ALONE)
        template = partition.templates.get(key)
        if template is None:
            before, _ = self.around(partition)
            template = partition.templates[key] = self._partition_template(partition, isolation).within(before, b"")
        head = self._filled(template, partition) + self.records_length(region.length)
        length = len(head) + region.length
        tail = self._tail_alone
        return Payload((head, region, tail), length + len(tail)) if tail else Payload((head, region), length)

    def _partition_template(self, partition: Partition, isolation: int) -> NumbersTemplate:
        template = NumbersTemplate(
            self.partition_schema,
            {
                "partition_index": partition.index,
                "error_code": ErrorCode.none,
                "aborted_transactions": () if isolation == READ_COMMITTED else None,
                "preferred_read_replica": -1,
                "records": b"",
            },
            ("high_watermark", "last_stable_offset", "log_start_offset"),
        )
        template.tail = template.tail.removesuffix(self.no_records)
        return template

    def diverging(self, divergence: Diverged) -> bytes:
        partition, log = divergence.partition, divergence.partition.log
        fields: Answer = {
            "partition_index": partition.index,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "log_start_offset": log.log_start_offset,
            "diverging_epoch": {"epoch": divergence.epoch, "end_offset": divergence.end_offset},
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": b"",
        }
        return entity_encoder(self.partition_schema)(fields)

    def failure(self, index: int, refusal: Refusal, partition: Partition | None) -> bytes:
        out_of_range = refusal.code is ErrorCode.offset_out_of_range and partition is not None
        start = partition.log.log_start_offset if out_of_range and partition is not None else -1
        return self.failed_partition(index, self._failure_behind_index(refusal.code, start))

    @lru_cache(maxsize=64)  # noqa: B019  # there is one layout per version, and it is never freed
    def _failure_behind_index(self, error: ErrorCode, log_start_offset: int) -> bytes:
        return self.encode_behind_index(
            {
                "partition_index": 0,
                "error_code": error,
                "high_watermark": -1,
                "last_stable_offset": -1,
                "log_start_offset": log_start_offset,
                "aborted_transactions": None,
                "preferred_read_replica": -1,
                "records": b"",
            }
        )


@cache
def fetch_layout(version: int) -> FetchLayout:
    return FetchLayout(version)
