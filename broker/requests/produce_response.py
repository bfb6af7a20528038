"""The layout of a Produce response: templates for each version, and the errors of a partition."""

from functools import cache, lru_cache

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.outcomes import RecordError, Refusal
from headgate.broker.protocol.templates import NumbersTemplate
from headgate.broker.requests.topics_layout import FieldNames, TopicsLayout
from headgate.broker.state.topics import Partition

API_KEY = 0
START_OFFSET_SINCE_VERSION = 5

# Marks the template of a response that contains only one partition.
_WHOLE = 1


class ProduceLayout(TopicsLayout):
    """Response templates for one version."""

    def __init__(self, version: int) -> None:
        super().__init__(API_KEY, version, FieldNames("name", "partition_responses"), {"index": 0})

    def success(self, partition: Partition, offset: int, append_time: int) -> bytes:
        template = self._success_template(partition)
        return self._filled(template, offset, append_time, partition.log.log_start_offset)

    def whole_success(self, partition: Partition, offset: int, append_time: int) -> bytes:
        """Build the complete response to a request with one batch that was appended."""
        key = (API_KEY, self.version, _WHOLE)
        template = partition.templates.get(key)
        if template is None:
            template = partition.templates[key] = self._success_template(partition).within(*self.around(partition))
        return self._filled(template, offset, append_time, partition.log.log_start_offset)

    def _success_template(self, partition: Partition) -> NumbersTemplate:
        key = (API_KEY, self.version, 0)
        template = partition.templates.get(key)
        if template is None:
            template = partition.templates[key] = NumbersTemplate(
                self.partition_schema,
                {"index": partition.index, "error_code": ErrorCode.none},
                ("base_offset", "log_append_time", "log_start_offset"),
            )
        return template

    def _filled(self, template: NumbersTemplate, offset: int, append_time: int, start_offset: int) -> bytes:
        if self.version >= START_OFFSET_SINCE_VERSION:
            return template.head + template.pack(offset, append_time, start_offset) + template.tail
        return template.head + template.pack(offset, append_time) + template.tail

    def whole_failure(self, partition: Partition, refusal: Refusal) -> bytes:
        before, behind = self.around(partition)
        return before + self.failure(partition.index, refusal) + behind

    def failure(self, index: int, refusal: Refusal) -> bytes:
        behind_index = self._failure_behind_index(refusal.code, refusal.message, tuple(refusal.record_errors))
        return self.failed_partition(index, behind_index)

    @lru_cache(maxsize=64)  # noqa: B019  # there is one layout per version, and it is never freed
    def _failure_behind_index(
        self, error: ErrorCode, message: str | None, record_errors: tuple[RecordError, ...]
    ) -> bytes:
        return self.encode_behind_index(
            {
                "index": 0,
                "error_code": error,
                "base_offset": -1,
                "log_append_time": None,
                "log_start_offset": -1,
                "record_errors": tuple(
                    {"batch_index": fault.batch_index, "batch_index_error_message": fault.message}
                    for fault in record_errors
                ),
                "error_message": message,
            }
        )


@cache
def produce_layout(version: int) -> ProduceLayout:
    return ProduceLayout(version)
