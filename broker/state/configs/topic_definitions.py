"""Every config of a topic: Kafka 4.3's names, types, defaults and bounds, with what they do here."""

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
"""Kafka's own floor since 4.0: smaller segments mean one open file per few records."""

ONE_NODE = "there is one node"
NO_TIERS = "there is no tiered storage"
NO_RECOMPRESSION = "batches are kept as they were sent"
NOT_COMPACTED = "topics are not compacted yet"


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
        "What happens to old data: `delete` drops segments past the retention, `compact` keeps the last record of each "
        "key (here every record, until compaction is there), both may be given, and an empty list keeps everything.",
        each_of(*CLEANUP_POLICIES),
        broker_names=("log.cleanup.policy",),
    ),
    Definition(
        "compression.gzip.level",
        ConfigType.INT,
        -1,
        "Effort of gzip when compression.type is gzip.",
        between_or(1, 9, -1),
        broker_names=("compression.gzip.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.lz4.level",
        ConfigType.INT,
        9,
        "Effort of lz4 when compression.type is lz4.",
        between(1, 17),
        broker_names=("compression.lz4.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.type",
        ConfigType.STRING,
        "producer",
        "The codec the topic is stored with; `producer` keeps what each producer chose.",
        one_of(*COMPRESSION_TYPES),
        broker_names=("compression.type",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "compression.zstd.level",
        ConfigType.INT,
        3,
        "Effort of zstd when compression.type is zstd.",
        between(-131_072, 22),
        broker_names=("compression.zstd.level",),
        without_effect=NO_RECOMPRESSION,
    ),
    Definition(
        "delete.retention.ms",
        ConfigType.LONG,
        86_400_000,
        "How long a compacted topic keeps a tombstone for readers that lag behind.",
        at_least(0),
        broker_names=("log.cleaner.delete.retention.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "file.delete.delay.ms",
        ConfigType.LONG,
        60_000,
        "How long the files of a dropped segment stay on disk, so that a reader in the middle of one can finish.",
        at_least(0),
        broker_names=("log.segment.delete.delay.ms",),
        without_effect="the files of a dropped segment go at once, and a reader in the middle of one still finishes",
    ),
    Definition(
        "flush.messages",
        ConfigType.LONG,
        LONG_MAX,
        "Force the log to disk once this many records were appended since the last time, whatever acks they ask for.",
        at_least(1),
        broker_names=("log.flush.interval.messages",),
    ),
    Definition(
        "flush.ms",
        ConfigType.LONG,
        LONG_MAX,
        "Force the log to disk at least this often, whatever acks its records ask for.",
        at_least(0),
        broker_names=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    Definition(
        "follower.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "Followers whose replication is throttled, as partition:broker pairs or `*`.",
        throttled_replicas,
        without_effect=ONE_NODE,
    ),
    Definition(
        "index.interval.bytes",
        ConfigType.INT,
        4096,
        "Bytes of log between two entries of the offset index; fewer make look-ups shorter and the index larger.",
        at_least(0),
        broker_names=("log.index.interval.bytes",),
    ),
    Definition(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "The segment size without segment.bytes' lower bound, for tests.",
        at_least(1),
        hidden=True,
    ),
    Definition(
        "leader.replication.throttled.replicas",
        ConfigType.LIST,
        (),
        "Leaders whose replication is throttled, as partition:broker pairs or `*`.",
        throttled_replicas,
        without_effect=ONE_NODE,
    ),
    Definition(
        "local.retention.bytes",
        ConfigType.LONG,
        -2,
        "With tiered storage, the bytes kept on the local disk; -2 means retention.bytes.",
        at_least(-2),
        broker_names=("log.local.retention.bytes",),
        without_effect=NO_TIERS,
    ),
    Definition(
        "local.retention.ms",
        ConfigType.LONG,
        -2,
        "With tiered storage, the time kept on the local disk; -2 means retention.ms.",
        at_least(-2),
        broker_names=("log.local.retention.ms",),
        without_effect=NO_TIERS,
    ),
    Definition(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        LONG_MAX,
        "The longest a record of a compacted topic may wait to become eligible for compaction.",
        at_least(1),
        broker_names=("log.cleaner.max.compaction.lag.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "max.message.bytes",
        ConfigType.INT,
        1_048_588,
        "The largest record batch, as sent, that the topic takes.",
        at_least(0),
        broker_names=("message.max.bytes",),
    ),
    Definition(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        3_600_000,
        "How far a CreateTime timestamp may lie in the future of the broker's clock.",
        at_least(0),
        broker_names=("log.message.timestamp.after.max.ms",),
    ),
    Definition(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        LONG_MAX,
        "How far a CreateTime timestamp may lie in the past of the broker's clock.",
        at_least(0),
        broker_names=("log.message.timestamp.before.max.ms",),
    ),
    Definition(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        "Whose time a record carries: its producer's (CreateTime) or that of its arrival (LogAppendTime).",
        one_of(*TIMESTAMP_TYPES),
        broker_names=("log.message.timestamp.type",),
    ),
    Definition(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        0.5,
        "The share of a compacted log that must be new before it is compacted again.",
        between(0, 1),
        broker_names=("log.cleaner.min.cleanable.ratio",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "min.compaction.lag.ms",
        ConfigType.LONG,
        0,
        "The shortest time a record of a compacted topic stays as it is.",
        at_least(0),
        broker_names=("log.cleaner.min.compaction.lag.ms",),
        without_effect=NOT_COMPACTED,
    ),
    Definition(
        "min.insync.replicas",
        ConfigType.INT,
        1,
        "Replicas that must hold a record before acks=all is answered; never more than the topic has, as in Kafka 4.",
        at_least(1),
        broker_names=("min.insync.replicas",),
        without_effect="a topic has one replica",
    ),
    Definition(
        "preallocate",
        ConfigType.BOOLEAN,
        False,
        "Reserve a segment's whole size on disk when it is created.",
        broker_names=("log.preallocate",),
        without_effect="segments grow as they are written",
    ),
    Definition(
        "remote.log.copy.disable",
        ConfigType.BOOLEAN,
        False,
        "With tiered storage, stop copying segments to the remote tier.",
        without_effect=NO_TIERS,
    ),
    Definition(
        "remote.log.delete.on.disable",
        ConfigType.BOOLEAN,
        False,
        "With tiered storage, drop the remote tier's data when it is switched off.",
        without_effect=NO_TIERS,
    ),
    Definition(
        "remote.storage.enable",
        ConfigType.BOOLEAN,
        False,
        "Tiered storage of the topic; `true` is refused.",
        no_tiered_storage,
        without_effect=NO_TIERS,
    ),
    Definition(
        "retention.bytes",
        ConfigType.LONG,
        -1,
        "The size past which a partition drops its oldest segments; -1 for no bound.",
        broker_names=("log.retention.bytes",),
    ),
    Definition(
        "retention.ms",
        ConfigType.LONG,
        604_800_000,
        "The age past which a partition drops a segment; -1 for no bound.",
        at_least(-1),
        broker_names=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    Definition(
        "segment.bytes",
        ConfigType.INT,
        1_073_741_824,
        "The size at which a segment is closed and the next one begun. Retention drops whole segments.",
        between(SEGMENT_BYTES_MIN, INT_MAX),
        broker_names=("log.segment.bytes",),
    ),
    Definition(
        "segment.index.bytes",
        ConfigType.INT,
        10_485_760,
        "The size of an offset index at which its segment is closed.",
        at_least(4),
        broker_names=("log.index.size.max.bytes",),
    ),
    Definition(
        "segment.jitter.ms",
        ConfigType.LONG,
        0,
        "The most by which segment.ms is shortened at random, so that not all segments close at once.",
        at_least(0),
        broker_names=("log.roll.jitter.ms", "log.roll.jitter.hours"),
        without_effect="segments close when they are due",
    ),
    Definition(
        "segment.ms",
        ConfigType.LONG,
        604_800_000,
        "The age at which a segment is closed even though it is not full, so that retention can drop it.",
        at_least(1),
        broker_names=("log.roll.ms", "log.roll.hours"),
    ),
    Definition(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        False,
        "Let a replica that lags behind become the leader when no other is left.",
        broker_names=("unclean.leader.election.enable",),
        without_effect=ONE_NODE,
    ),
)
