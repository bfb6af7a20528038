"""The broker configs: names, types, defaults and limits of Kafka 4.3, and a few configs with the prefix `headgate.`.

Configs of unsupported features are missing: controller quorum, replication, tiered storage, share and streams groups,
SASL, TLS, quotas and delegation tokens.
"""

from headgate.broker.state.configs.definition import Definition, Update, index
from headgate.broker.state.configs.topic_definitions import BOOLEAN, INT, LIST, LONG, STRING, TOPIC_CONFIGS
from headgate.broker.state.configs.values import (
    INT_MAX,
    LONG_MAX,
    ConfigType,
    InvalidConfig,
    Value,
    at_least,
    between,
    each_of,
    endpoints,
)

SHORT, DYNAMIC = ConfigType.SHORT, Update.DYNAMIC


def retention(name: str, value: Value) -> None:
    if isinstance(value, int) and value < 1 and value != -1:
        raise InvalidConfig(f"{name} must be unlimited (-1) or, greater than or equal to 1")


IDENTITY = (
    Definition("broker.id", INT, 1, at_least(0)),
    Definition("node.id", INT, 1, at_least(0)),
    Definition("listeners", LIST, ("PLAINTEXT://127.0.0.1:9092",), endpoints),
    Definition("advertised.listeners", LIST, None, endpoints),
    Definition("log.dirs", LIST, None),
    Definition("process.roles", LIST, ("broker", "controller")),
    Definition("broker.rack", STRING, None),
    Definition("authorizer.class.name", STRING, ""),
)

CONNECTIONS = (
    Definition("socket.request.max.bytes", INT, 104_857_600, at_least(1)),
    Definition("socket.send.buffer.bytes", INT, 102_400),
    Definition("socket.receive.buffer.bytes", INT, 102_400),
    Definition("socket.listen.backlog.size", INT, 1024, at_least(1)),
    Definition("connections.max.idle.ms", LONG, 600_000),
    Definition("max.connections", INT, INT_MAX, at_least(0), update=DYNAMIC),
    Definition("max.connections.per.ip", INT, INT_MAX, at_least(0), update=DYNAMIC),
    Definition("max.connection.creation.rate", INT, INT_MAX, at_least(0), update=DYNAMIC),
    Definition("queued.max.requests", INT, 500, at_least(1)),
    Definition("queued.max.request.bytes", LONG, -1),
    Definition("num.network.threads", INT, 3, at_least(1), update=DYNAMIC),
    Definition("num.io.threads", INT, 8, at_least(1), update=DYNAMIC),
    Definition("background.threads", INT, 10, at_least(1), update=DYNAMIC),
    Definition("request.timeout.ms", INT, 30_000),
)

TOPICS = (
    Definition("auto.create.topics.enable", BOOLEAN, True),
    Definition("delete.topic.enable", BOOLEAN, True),
    Definition("num.partitions", INT, 1, at_least(1)),
    Definition("default.replication.factor", INT, 1, at_least(1)),
    Definition("max.request.partition.size.limit", INT, 2000, at_least(1)),
    Definition("fetch.max.bytes", INT, 4_194_304, at_least(1024)),
    Definition("max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0)),
)

TOPIC_DEFAULTS = tuple(
    Definition(of.broker_names[0], of.type, of.default, of.check, update=DYNAMIC, topic_config=of.name)
    for of in TOPIC_CONFIGS.values()
    if len(of.broker_names) == 1
)
"""The defaults of topic configs, with the same types and limits."""

LOGS = (
    Definition("log.flush.interval.ms", LONG, None, at_least(0), update=DYNAMIC),
    Definition("log.flush.scheduler.interval.ms", LONG, LONG_MAX),
    Definition("log.retention.check.interval.ms", LONG, 300_000, at_least(1)),
    Definition("log.retention.hours", INT, 168, retention),
    Definition("log.retention.minutes", INT, None, retention),
    Definition("log.retention.ms", LONG, None, retention, update=DYNAMIC),
    Definition("log.roll.hours", INT, 168, at_least(1)),
    Definition("log.roll.jitter.hours", INT, 0, at_least(0)),
    Definition("log.roll.jitter.ms", LONG, None, at_least(0), update=DYNAMIC),
    Definition("log.roll.ms", LONG, None, at_least(1), update=DYNAMIC),
    Definition("log.cleaner.enable", BOOLEAN, True),
)

PRODUCERS = (
    Definition("producer.id.expiration.ms", INT, 86_400_000, at_least(1), update=DYNAMIC),
    Definition("transactional.id.expiration.ms", INT, 604_800_000, at_least(1)),
    Definition("transaction.max.timeout.ms", INT, 900_000, at_least(1)),
)

GROUPS = (
    # The default is 3000 in Kafka's code and 0 in Kafka's server.properties. With 0, a single member starts at once.
    Definition("group.initial.rebalance.delay.ms", INT, 0),
    Definition("group.max.session.timeout.ms", INT, 1_800_000),
    Definition("group.max.size", INT, INT_MAX, at_least(1)),
    Definition("group.min.session.timeout.ms", INT, 6000),
    Definition("group.coordinator.rebalance.protocols", LIST, ("classic",), each_of("classic")),
    Definition("offset.metadata.max.bytes", INT, 4096),
    Definition("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1)),
    Definition("offsets.retention.minutes", INT, 10_080, at_least(1)),
    Definition("offsets.topic.num.partitions", INT, 50, at_least(1)),
    Definition("offsets.topic.replication.factor", SHORT, 1, at_least(1)),
    Definition("offsets.topic.segment.bytes", INT, 104_857_600, at_least(1)),
)

OURS = (
    Definition("headgate.acks.all.fsync", BOOLEAN, True, update=DYNAMIC),
    Definition("headgate.partitions.max", INT, 100_000, between(1, 10_000_000)),
    Definition("headgate.topic.partitions.max", INT, 10_000, between(1, 1_000_000)),
)

BROKER_CONFIGS = index(
    *IDENTITY,
    *CONNECTIONS,
    *TOPICS,
    *sorted(TOPIC_DEFAULTS + LOGS, key=lambda definition: definition.name),
    *PRODUCERS,
    *GROUPS,
    *OURS,
)
