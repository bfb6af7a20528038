"""The broker's configs for its logs: most are the defaults of a topic's configs, in the units Kafka offers."""

from headgate.broker.state.configs.definition import Definition, Importance, Update, whole
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import LONG_MAX, ConfigType, InvalidConfig, Value, at_least

HIGH = Importance.HIGH
LONG = ConfigType.LONG
DYNAMIC = Update.DYNAMIC


def topic_default(name: str, topic_config: str, importance: Importance = Importance.MEDIUM) -> Definition:
    """A broker's config that is the default of a topic's: same type, same bounds."""
    of = TOPIC_CONFIGS[topic_config]
    return Definition(
        name,
        of.type,
        of.default,
        f"The default of {topic_config}, for topics that do not set it.",
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
        "The default of flush.ms; log.flush.scheduler.interval.ms when not set.",
        at_least(0),
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often the broker looks for logs that flush.ms wants on disk.",
        type=LONG,
        importance=HIGH,
        without_effect="the broker looks every second",
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
        "How often the broker looks for segments past their retention.",
        at_least(1),
        type=LONG,
    ),
    whole(
        "log.retention.hours",
        168,
        "The default of retention.ms in hours, when neither log.retention.ms nor log.retention.minutes is set.",
        retention,
        importance=HIGH,
    ),
    whole(
        "log.retention.minutes",
        None,
        "The default of retention.ms in minutes, when log.retention.ms is not set.",
        retention,
        importance=HIGH,
    ),
    whole(
        "log.retention.ms",
        None,
        "The default of retention.ms; -1 for no bound.",
        retention,
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "log.roll.hours",
        168,
        "The default of segment.ms in hours, when log.roll.ms is not set.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "log.roll.jitter.hours",
        0,
        "The default of segment.jitter.ms in hours, when log.roll.jitter.ms is not set.",
        at_least(0),
        importance=HIGH,
        without_effect="segments close when they are due",
    ),
    whole(
        "log.roll.jitter.ms",
        None,
        "The default of segment.jitter.ms.",
        at_least(0),
        type=LONG,
        importance=HIGH,
        update=DYNAMIC,
        without_effect="segments close when they are due",
    ),
    whole("log.roll.ms", None, "The default of segment.ms.", at_least(1), type=LONG, importance=HIGH, update=DYNAMIC),
    topic_default("log.segment.bytes", "segment.bytes", HIGH),
    topic_default("log.segment.delete.delay.ms", "file.delete.delay.ms", HIGH),
    topic_default("message.max.bytes", "max.message.bytes", HIGH),
    topic_default("min.insync.replicas", "min.insync.replicas", HIGH),
    topic_default("unclean.leader.election.enable", "unclean.leader.election.enable", HIGH),
    Definition(
        "log.cleaner.enable",
        ConfigType.BOOLEAN,
        True,
        "Compact the topics whose cleanup.policy asks for it.",
        without_effect="topics are not compacted yet",
    ),
)
