"""The topic configs: names, types, defaults and limits of Kafka 4.3."""

from headgate.broker.state.configs.definition import Definition, index
from headgate.broker.state.configs.values import (
    LONG_MAX,
    Check,
    ConfigType,
    InvalidConfig,
    Value,
    at_least,
    between,
    between_or,
    each_of,
    one_of,
    throttled_replicas,
)

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

SEGMENT_BYTES_MIN = 1_048_576
"""Kafka's minimum since 4.0. Smaller segments would need one open file per few records."""


def no_tiered_storage(name: str, value: Value) -> None:
    if value:
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def topic(
    name: str, type: ConfigType, default: Value, check: Check | None = None, *broker_names: str, hidden: bool = False
) -> Definition:
    """A topic config. `broker_names` are the broker configs that supply the default."""
    return Definition(name, type, default, check, broker_names=broker_names, hidden=hidden)


TOPIC_CONFIGS = index(
    topic("cleanup.policy", LIST, ("delete",), each_of(*CLEANUP_POLICIES), "log.cleanup.policy"),
    topic("compression.gzip.level", INT, -1, between_or(1, 9, -1), "compression.gzip.level"),
    topic("compression.lz4.level", INT, 9, between(1, 17), "compression.lz4.level"),
    topic("compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES), "compression.type"),
    topic("compression.zstd.level", INT, 3, between(-131_072, 22), "compression.zstd.level"),
    topic("delete.retention.ms", LONG, 86_400_000, at_least(0), "log.cleaner.delete.retention.ms"),
    topic("file.delete.delay.ms", LONG, 60_000, at_least(0), "log.segment.delete.delay.ms"),
    topic("flush.messages", LONG, LONG_MAX, at_least(1), "log.flush.interval.messages"),
    topic("flush.ms", LONG, LONG_MAX, at_least(0), "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    topic("follower.replication.throttled.replicas", LIST, (), throttled_replicas),
    topic("index.interval.bytes", INT, 4096, at_least(0), "log.index.interval.bytes"),
    topic("internal.segment.bytes", INT, None, at_least(1), hidden=True),
    topic("leader.replication.throttled.replicas", LIST, (), throttled_replicas),
    topic("local.retention.bytes", LONG, -2, at_least(-2), "log.local.retention.bytes"),
    topic("local.retention.ms", LONG, -2, at_least(-2), "log.local.retention.ms"),
    topic("max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), "log.cleaner.max.compaction.lag.ms"),
    topic("max.message.bytes", INT, 1_048_588, at_least(0), "message.max.bytes"),
    topic("message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), "log.message.timestamp.after.max.ms"),
    topic("message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), "log.message.timestamp.before.max.ms"),
    topic("message.timestamp.type", STRING, "CreateTime", one_of(*TIMESTAMP_TYPES), "log.message.timestamp.type"),
    topic("min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), "log.cleaner.min.cleanable.ratio"),
    topic("min.compaction.lag.ms", LONG, 0, at_least(0), "log.cleaner.min.compaction.lag.ms"),
    topic("min.insync.replicas", INT, 1, at_least(1), "min.insync.replicas"),
    topic("preallocate", BOOLEAN, False, None, "log.preallocate"),
    topic("remote.log.copy.disable", BOOLEAN, False),
    topic("remote.log.delete.on.disable", BOOLEAN, False),
    topic("remote.storage.enable", BOOLEAN, False, no_tiered_storage),
    topic("retention.bytes", LONG, -1, None, "log.retention.bytes"),
    topic(
        "retention.ms",
        LONG,
        604_800_000,
        at_least(-1),
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ),
    topic("segment.bytes", INT, 1_073_741_824, at_least(SEGMENT_BYTES_MIN), "log.segment.bytes"),
    topic("segment.index.bytes", INT, 10_485_760, at_least(4), "log.index.size.max.bytes"),
    topic("segment.jitter.ms", LONG, 0, at_least(0), "log.roll.jitter.ms", "log.roll.jitter.hours"),
    topic("segment.ms", LONG, 604_800_000, at_least(1), "log.roll.ms", "log.roll.hours"),
    topic("unclean.leader.election.enable", BOOLEAN, False, None, "unclean.leader.election.enable"),
)
