"""The broker configs: names, types, defaults and limits of Kafka 4.3, and a few configs with the prefix `headgate.`.

Configs of unsupported features are missing: controller quorum, replication, tiered storage, share and streams groups,
SASL, TLS, quotas and delegation tokens.
"""

from headgate.broker.state.configs.definition import Definition, Importance, Update, index, whole
from headgate.broker.state.configs.log_definitions import LOG_CONFIGS
from headgate.broker.state.configs.values import (
    INT_MAX,
    ConfigType,
    Value,
    at_least,
    between,
    each_of,
    endpoints,
)

ONE_LOOP = "one event loop serves all connections"
NO_TRANSACTIONS = "transactions are not supported"
NO_CONSUMER_PROTOCOL = "the consumer group protocol (KIP-848) is not supported"


def text(
    name: str, config_type: ConfigType, default: Value, documentation: str, *, without_effect: str = ""
) -> Definition:
    return Definition(
        name, config_type, default, documentation, importance=Importance.HIGH, without_effect=without_effect
    )


HIGH, LOW = Importance.HIGH, Importance.LOW
LONG, SHORT = ConfigType.LONG, ConfigType.SHORT
DYNAMIC = Update.DYNAMIC

IDENTITY = (
    whole("broker.id", 1, "The id of this broker. Same as node.id.", at_least(0), importance=HIGH),
    whole("node.id", 1, "The id of this broker.", at_least(0), importance=HIGH),
    Definition(
        "listeners",
        ConfigType.LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "The address that the broker listens on. Set with --listen.",
        endpoints,
        Importance.HIGH,
    ),
    Definition(
        "advertised.listeners",
        ConfigType.LIST,
        None,
        "The address that clients connect to. Default: the address in listeners.",
        endpoints,
        Importance.HIGH,
    ),
    text("log.dirs", ConfigType.LIST, None, "The data directory. Set with --data-dir."),
    text(
        "process.roles",
        ConfigType.LIST,
        ("broker", "controller"),
        "The roles of this process in the cluster.",
        without_effect="the process always has both roles",
    ),
    text("broker.rack", ConfigType.STRING, None, "The rack of the broker. Returned by Metadata."),
    text(
        "authorizer.class.name",
        ConfigType.STRING,
        "",
        "The class of the authorizer.",
        without_effect="ACLs are not supported, so every client may do everything",
    ),
)

CONNECTIONS = (
    whole(
        "socket.request.max.bytes",
        104_857_600,
        "The maximum size of a request. The broker closes a connection that sends a larger one.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "socket.send.buffer.bytes",
        102_400,
        "SO_SNDBUF of a connection. -1 uses the default of the operating system.",
        importance=HIGH,
        without_effect="the operating system chooses the buffer sizes",
    ),
    whole(
        "socket.receive.buffer.bytes",
        102_400,
        "SO_RCVBUF of a connection. -1 uses the default of the operating system.",
        importance=HIGH,
        without_effect="the operating system chooses the buffer sizes",
    ),
    whole(
        "socket.listen.backlog.size",
        1_024,
        "The maximum number of connections that wait to be accepted. The operating system may reduce it. If the queue "
        "is full, clients retry after a second.",
        at_least(1),
    ),
    whole(
        "connections.max.idle.ms",
        600_000,
        "The broker closes a connection that is idle for this time. -1 disables the timeout.",
        type=LONG,
    ),
    whole("max.connections", INT_MAX, "The maximum number of open connections.", at_least(0), update=DYNAMIC),
    whole(
        "max.connections.per.ip",
        INT_MAX,
        "The maximum number of open connections per IP address.",
        at_least(0),
        update=DYNAMIC,
    ),
    whole(
        "max.connection.creation.rate",
        INT_MAX,
        "The maximum number of new connections per second.",
        at_least(0),
        update=DYNAMIC,
        without_effect="the rate is not limited",
    ),
    whole(
        "queued.max.requests",
        500,
        "The maximum number of queued requests before the broker stops reading.",
        at_least(1),
        importance=HIGH,
        without_effect="the requests of a connection are handled in order",
    ),
    whole(
        "queued.max.request.bytes",
        -1,
        "The maximum size of queued requests before the broker stops reading. -1 means no limit.",
        type=LONG,
        without_effect="the requests of a connection are handled in order",
    ),
    whole(
        "num.network.threads",
        3,
        "The number of network threads.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "num.io.threads",
        8,
        "The number of threads that handle requests.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "background.threads",
        10,
        "The number of threads for background tasks.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "request.timeout.ms",
        30_000,
        "The timeout of requests that the broker sends.",
        importance=HIGH,
        without_effect="the broker sends no requests",
    ),
)

TOPICS = (
    Definition(
        "auto.create.topics.enable",
        ConfigType.BOOLEAN,
        True,
        "Create unknown topics on Metadata requests that allow it.",
        importance=HIGH,
    ),
    Definition(
        "delete.topic.enable",
        ConfigType.BOOLEAN,
        True,
        "Allow DeleteTopics. If false, it returns TOPIC_DELETION_DISABLED.",
        importance=HIGH,
    ),
    whole("num.partitions", 1, "The default number of partitions of a new topic.", at_least(1)),
    whole("default.replication.factor", 1, "The default replication factor of a new topic.", at_least(1)),
    whole(
        "max.request.partition.size.limit",
        2000,
        "The maximum number of partitions in a DescribeTopicPartitions response.",
        at_least(1),
    ),
    whole("fetch.max.bytes", 4_194_304, "The maximum size of a Fetch response.", at_least(1024)),
    whole(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "The maximum number of incremental fetch sessions.",
        at_least(0),
        without_effect="fetch sessions are not supported",
    ),
)

PRODUCERS = (
    whole(
        "producer.id.expiration.ms",
        86_400_000,
        "How long a partition keeps the sequence numbers of an inactive idempotent producer.",
        at_least(1),
        importance=LOW,
        update=DYNAMIC,
    ),
    whole(
        "transactional.id.expiration.ms",
        604_800_000,
        "How long the broker keeps an inactive transactional id.",
        at_least(1),
        importance=HIGH,
        without_effect=NO_TRANSACTIONS,
    ),
    whole(
        "transaction.max.timeout.ms",
        900_000,
        "The maximum transaction timeout of a producer.",
        at_least(1),
        importance=HIGH,
        without_effect=NO_TRANSACTIONS,
    ),
)

GROUPS = (
    # The default is 3000 in Kafka's code and 0 in Kafka's server.properties. With 0, a single member starts at once.
    whole("group.initial.rebalance.delay.ms", 0, "How long the first rebalance of a group waits for more members."),
    whole("group.max.session.timeout.ms", 1_800_000, "The maximum session timeout of a member."),
    whole("group.max.size", INT_MAX, "The maximum number of members of a group.", at_least(1)),
    whole("group.min.session.timeout.ms", 6000, "The minimum session timeout of a member."),
    Definition(
        "group.coordinator.rebalance.protocols",
        ConfigType.LIST,
        ("classic",),
        "The enabled group protocols.",
        each_of("classic"),
        without_effect=NO_CONSUMER_PROTOCOL,
    ),
    whole(
        "offset.metadata.max.bytes",
        4096,
        "The maximum size of the metadata of a committed offset.",
        importance=HIGH,
    ),
    whole(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the broker removes expired offsets.",
        at_least(1),
        type=LONG,
        importance=HIGH,
    ),
    whole(
        "offsets.retention.minutes",
        10_080,
        "How long the broker keeps the offsets of a group without members.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "offsets.topic.num.partitions",
        50,
        "The number of partitions of `__consumer_offsets`.",
        at_least(1),
        importance=HIGH,
        without_effect="`__consumer_offsets` has one partition",
    ),
    whole(
        "offsets.topic.replication.factor",
        1,
        "The replication factor of `__consumer_offsets`.",
        at_least(1),
        type=SHORT,
        importance=HIGH,
        without_effect="there is one broker",
    ),
    whole(
        "offsets.topic.segment.bytes",
        104_857_600,
        "The segment size of `__consumer_offsets`.",
        at_least(1),
        importance=HIGH,
    ),
)

OURS = (
    Definition(
        "headgate.acks.all.fsync",
        ConfigType.BOOLEAN,
        True,
        "With acks=all, respond when the records are on disk (fdatasync). Consumers see the records from then on. "
        "With `false`, respond when the records are in the page cache, like Apache Kafka. Then records survive a crash "
        "of the process, but not a power failure.",
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "headgate.partitions.max",
        100_000,
        "The maximum number of partitions of all topics. Each partition uses open files.",
        between(1, 10_000_000),
    ),
    whole(
        "headgate.topic.partitions.max",
        10_000,
        "The maximum number of partitions of a topic, so that one request cannot fill the disk.",
        between(1, 1_000_000),
    ),
)

BROKER_CONFIGS = index(*IDENTITY, *CONNECTIONS, *TOPICS, *LOG_CONFIGS, *PRODUCERS, *GROUPS, *OURS)
