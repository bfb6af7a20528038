"""The topic configs: names, types, defaults and limits of Kafka 4.3."""

from headgate.broker.state.configs.definition import Definition, index
from headgate.broker.state.configs.values import (
    INT_MAX,
    LONG_MAX,
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

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

SEGMENT_BYTES_MIN = 1_048_576
"""Kafka's minimum since 4.0. Smaller segments would need one open file per few records."""

ONE_NODE = "there is one broker"
NO_TIERS = "tiered storage is not supported"
NO_RECOMPRESSION = "batches are stored as sent"
NOT_COMPACTED = "compaction is not supported"


def no_tiered_storage(name: str, value: Value) -> None:
    if value:
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


TOPIC_CONFIGS = index(
    Definition(
        "cleanup.policy",
        ConfigType.LIST,
        ("delete",),
        "The policy for old records. `delete` deletes expired segments. `compact` is accepted, but the broker does not "
        "compact: it keeps all records. Both can be combined. With an empty list, the broker keeps all records.",
        each_of(*CLEANUP_POLICIES),
        broker_names=("log.cleanup.policy",),
    ),
    Definition(
        "compression.gzip.level",
        ConfigType.INT,
        -1,
        "The compression level for compression.type=gzip.",
        between_or(1, 9, -1),
        broker_names=("compression.gzip.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.lz4.level",
        ConfigType.INT,
        9,
        "The compression level for compression.type=lz4.",
        between(1, 17),
        broker_names=("compression.lz4.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "The codec of the stored batches. `producer` keeps the codec of the producer.",
        one_of(*COMPRESSION_TYPES),
        broker_names=("compression.type",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.zstd.level",
        ConfigType.INT,
        3,
        "The compression level for compression.type=zstd.",
        between(-131_072, 22),
        broker_names=("compression.zstd.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "delete.retention.ms",
        ConfigType.LONG,
        86_400_000,
        "How long a compacted topic keeps tombstones.",
        at_least(0),
        broker_names=("log.cleaner.delete.retention.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "file.delete.delay.ms",
        ConfigType.LONG,
        60_000,
        "The delay before the files of a deleted segment are removed, so that readers can finish.",
        at_least(0),
        broker_names=("log.segment.delete.delay.ms",),
        without_effect="files are removed at once; readers can still finish, because they hold the open file",
    ),
    Definition(
        "flush.messages",
        ConfigType.LONG,
        LONG_MAX,
        "The number of records after which the log is flushed to disk, independent of acks.",
        at_least(1),
        broker_names=("log.flush.interval.messages",),
    ),
    Definition(
        "flush.ms",
        ConfigType.LONG,
        LONG_MAX,
        "The interval after which the log is flushed to disk, independent of acks.",
        at_least(0),
        broker_names=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    Definition(
        "follower.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "The follower replicas with throttled replication: a list of partition:broker, or `*`.",
        throttled_replicas,
        without_effect=ONE_NODE,
    ),
    Definition(
        "index.interval.bytes",
        ConfigType.INT,
        4096,
        "The number of bytes between two entries of the offset index. Smaller values make lookups faster and the index "
        "larger.",
        at_least(0),
        broker_names=("log.index.interval.bytes",),
    ),
    Definition(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "The segment size without the lower limit of segment.bytes, for tests.",
        at_least(1),
        hidden=True,
    ),
    Definition(
        "leader.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "The leader replicas with throttled replication: a list of partition:broker, or `*`.",
        throttled_replicas,
        without_effect=ONE_NODE,
    ),
    Definition(
        "local.retention.bytes",
        ConfigType.LONG,
        -2,
        "With tiered storage: the retention size of local segments. -2 means retention.bytes.",
        at_least(-2),
        broker_names=("log.local.retention.bytes",),
        without_effect=NO_TIERS,
    ),
    Definition(
        "local.retention.ms",
        ConfigType.LONG,
        -2,
        "With tiered storage: the retention time of local segments. -2 means retention.ms.",
        at_least(-2),
        broker_names=("log.local.retention.ms",),
        without_effect=NO_TIERS,
    ),
    Definition(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        LONG_MAX,
        "The maximum time before a record becomes eligible for compaction.",
        at_least(1),
        broker_names=("log.cleaner.max.compaction.lag.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "max.message.bytes",
        ConfigType.INT,
        1_048_588,
        "The maximum size of a record batch, as sent.",
        at_least(0),
        broker_names=("message.max.bytes",),
    ),
    Definition(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        3_600_000,
        "The maximum time by which a CreateTime timestamp may be ahead of the broker's clock.",
        at_least(0),
        broker_names=("log.message.timestamp.after.max.ms",),
    ),
    Definition(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        LONG_MAX,
        "The maximum time by which a CreateTime timestamp may be behind the broker's clock.",
        at_least(0),
        broker_names=("log.message.timestamp.before.max.ms",),
    ),
    Definition(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        "The timestamp of a record: set by the producer (CreateTime) or by the broker (LogAppendTime).",
        one_of(*TIMESTAMP_TYPES),
        broker_names=("log.message.timestamp.type",),
    ),
    Definition(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        0.5,
        "The minimum ratio of uncompacted bytes before a log is compacted again.",
        between(0, 1),
        broker_names=("log.cleaner.min.cleanable.ratio",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "min.compaction.lag.ms",
        ConfigType.LONG,
        0,
        "The minimum time before a record becomes eligible for compaction.",
        at_least(0),
        broker_names=("log.cleaner.min.compaction.lag.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "min.insync.replicas",
        ConfigType.INT,
        1,
        "The minimum number of in-sync replicas for acks=all.",
        at_least(1),
        broker_names=("min.insync.replicas",),
        without_effect="each partition has one replica",
    ),
    Definition(
        "preallocate",
        ConfigType.BOOLEAN,
        False,
        "Allocate the full size of a new segment on disk.",
        broker_names=("log.preallocate",),
        without_effect="segments are not preallocated",
    ),
    Definition(
        "remote.log.copy.disable",
        ConfigType.BOOLEAN,
        False,
        "With tiered storage: stop copying segments to remote storage.",
        without_effect=NO_TIERS,
    ),
    Definition(
        "remote.log.delete.on.disable",
        ConfigType.BOOLEAN,
        False,
        "With tiered storage: delete the remote data when tiered storage is disabled.",
        without_effect=NO_TIERS,
    ),
    Definition(
        "remote.storage.enable",
        ConfigType.BOOLEAN,
        False,
        "Enable tiered storage. `true` is rejected.",
        no_tiered_storage,
        without_effect=NO_TIERS,
    ),
    Definition(
        "retention.bytes",
        ConfigType.LONG,
        -1,
        "The maximum size of a partition. The broker deletes the oldest segments. -1 means no limit.",
        broker_names=("log.retention.bytes",),
    ),
    Definition(
        "retention.ms",
        ConfigType.LONG,
        604_800_000,
        "The maximum age of a segment before the broker deletes it. -1 means no limit.",
        at_least(-1),
        broker_names=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    Definition(
        "segment.bytes",
        ConfigType.INT,
        1_073_741_824,
        "The maximum size of a segment. Retention deletes whole segments.",
        between(SEGMENT_BYTES_MIN, INT_MAX),
        broker_names=("log.segment.bytes",),
    ),
    Definition(
        "segment.index.bytes",
        ConfigType.INT,
        10_485_760,
        "The maximum size of an offset index. A full index rolls the segment.",
        at_least(4),
        broker_names=("log.index.size.max.bytes",),
    ),
    Definition(
        "segment.jitter.ms",
        ConfigType.LONG,
        0,
        "The maximum random reduction of segment.ms, so that segments do not roll at the same time.",
        at_least(0),
        broker_names=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        without_effect="segments roll without jitter",
    ),
    Definition(
        "segment.ms",
        ConfigType.LONG,
        604_800_000,
        "The maximum age of a segment before the log rolls, so that retention can delete it.",
        at_least(1),
        broker_names=("log.roll.ms", "log.roll.hours"),
    ),
    Definition(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        False,
        "Allow an out-of-sync replica to become leader if no in-sync replica is available.",
        broker_names=("unclean.leader.election.enable",),
        without_effect=ONE_NODE,
    ),
)
