"""The broker configs of logs. Most of them are the defaults of topic configs."""

from headgate.broker.state.configs.definition import Definition, Importance, Update, whole
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import LONG_MAX, ConfigType, InvalidConfig, Value, at_least

HIGH = Importance.HIGH
LONG = ConfigType.LONG
DYNAMIC = Update.DYNAMIC


def topic_default(name: str, topic_config: str, importance: Importance = Importance.MEDIUM) -> Definition:
    """A broker config that is the default of a topic config, with the same type and limits."""
    of = TOPIC_CONFIGS[topic_config]
    return Definition(
        name,
        of.type,
        of.default,
        f"The default of the topic config {topic_config}.",
        of.check,
        importance,
        Update.DYNAMIC,
        without_effect=of.without_effect,
    )


def retention(name: str, value: Value) -> None:
    if isinstance(value, int) and value < 1 and value != -1:
        raise InvalidConfig(f"{name} must be unlimited (-1) or, greater than or equal to 1")


LOG_CONFIGS = (
    topic_default("compression.gzip.level", "compression.gzip.level"),
    topic_default("compression.lz4.level", "compression.lz4.level"),
    topic_default("compression.type", "compression.type", HIGH),
    topic_default("compression.zstd.level", "compression.zstd.level"),
    topic_default("log.cleaner.delete.retention.ms", "delete.retention.ms"),
    topic_default("log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms"),
    topic_default("log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio"),
    topic_default("log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms"),
    topic_default("log.cleanup.policy", "cleanup.policy"),
    topic_default("log.flush.interval.messages", "flush.messages", HIGH),
    whole(
        "log.flush.interval.ms",
        None,
        "The default of the topic config flush.ms. If not set, log.flush.scheduler.interval.ms applies.",
        at_least(0),
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often the broker checks whether a log must be flushed.",
        type=LONG,
        importance=HIGH,
        without_effect="the broker checks every second",
    ),
    topic_default("log.index.interval.bytes", "index.interval.bytes"),
    topic_default("log.index.size.max.bytes", "segment.index.bytes"),
    topic_default("log.local.retention.bytes", "local.retention.bytes"),
    topic_default("log.local.retention.ms", "local.retention.ms"),
    topic_default("log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms"),
    topic_default("log.message.timestamp.before.max.ms", "message.timestamp.before.max.ms"),
    topic_default("log.message.timestamp.type", "message.timestamp.type"),
    topic_default("log.preallocate", "preallocate"),
    topic_default("log.retention.bytes", "retention.bytes", HIGH),
    whole(
        "log.retention.check.interval.ms",
        300_000,
        "How often the broker deletes expired segments.",
        at_least(1),
        type=LONG,
    ),
    whole(
        "log.retention.hours",
        168,
        "The default of retention.ms in hours. Used if log.retention.ms and log.retention.minutes are not set.",
        retention,
        importance=HIGH,
    ),
    whole(
        "log.retention.minutes",
        None,
        "The default of retention.ms in minutes. Used if log.retention.ms is not set.",
        retention,
        importance=HIGH,
    ),
    whole(
        "log.retention.ms",
        None,
        "The default of the topic config retention.ms. -1 means no limit.",
        retention,
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "log.roll.hours",
        168,
        "The default of segment.ms in hours. Used if log.roll.ms is not set.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "log.roll.jitter.hours",
        0,
        "The default of segment.jitter.ms in hours. Used if log.roll.jitter.ms is not set.",
        at_least(0),
        importance=HIGH,
        without_effect="segments roll without jitter",
    ),
    whole(
        "log.roll.jitter.ms",
        None,
        "The default of the topic config segment.jitter.ms.",
        at_least(0),
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
        without_effect="segments roll without jitter",
    ),
    whole(
        "log.roll.ms",
        None,
        "The default of the topic config segment.ms.",
        at_least(1),
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
    ),
    topic_default("log.segment.bytes", "segment.bytes", HIGH),
    topic_default("log.segment.delete.delay.ms", "file.delete.delay.ms", HIGH),
    topic_default("message.max.bytes", "max.message.bytes", HIGH),
    topic_default("min.insync.replicas", "min.insync.replicas", HIGH),
    topic_default("unclean.leader.election.enable", "unclean.leader.election.enable", HIGH),
    Definition(
        "log.cleaner.enable",
        ConfigType.BOOLEAN,
        True,
        "Compact topics with cleanup.policy=compact.",
        without_effect="compaction is not supported",
    ),
)
