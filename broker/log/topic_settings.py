"""The configs of a topic as typed values, like Kafka's `LogConfig`. `broker.state.configs.effective` computes them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Each attribute is a config name with underscores. The last three attributes are derived from other configs."""

    cleanup_policy: tuple[str, ...]
    compression_type: str
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int

    is_compacted: bool
    deletes_old_segments: bool
    uses_log_append_time: bool
