"""Every config of the broker: Kafka 4.3's names, types, defaults and bounds, and our few under `headgate.`.

Left out are those of parts that do not exist here: the controller quorum, replication between brokers, tiered storage,
share and streams groups, SASL, TLS, quotas and delegation tokens. They join when their part does.
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

ONE_LOOP = "one event loop serves every connection"
NO_TRANSACTIONS = "there are no transactions yet"
NO_CONSUMER_PROTOCOL = "groups of the consumer protocol (KIP-848) come later"


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
    whole("broker.id", 1, "The id of this node in the cluster; the same as node.id.", at_least(0), importance=HIGH),
    whole("node.id", 1, "The id of this node in the cluster.", at_least(0), importance=HIGH),
    Definition(
        "listeners",
        ConfigType.LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "The address the broker listens on; given with --listen.",
        endpoints,
        Importance.HIGH,
    ),
    Definition(
        "advertised.listeners",
        ConfigType.LIST,
        None,
        "The address clients are told to connect to; the one that is listened on when not set.",
        endpoints,
        Importance.HIGH,
    ),
    text("log.dirs", ConfigType.LIST, None, "The folder that holds the data; given with --data-dir."),
    text(
        "process.roles",
        ConfigType.LIST,
        ("broker", "controller"),
        "The parts of a cluster that this process plays.",
        without_effect="one process plays both",
    ),
    text("broker.rack", ConfigType.STRING, None, "The rack of the broker, as Metadata tells it."),
    text(
        "authorizer.class.name",
        ConfigType.STRING,
        "",
        "The class that decides who may do what.",
        without_effect="everybody may do everything until ACLs are there",
    ),
)

CONNECTIONS = (
    whole(
        "socket.request.max.bytes",
        104_857_600,
        "The longest request; the connection that announces a longer one is closed.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "socket.send.buffer.bytes",
        102_400,
        "SO_SNDBUF of a connection; -1 for the system's own.",
        importance=HIGH,
        without_effect="the system sizes the buffers",
    ),
    whole(
        "socket.receive.buffer.bytes",
        102_400,
        "SO_RCVBUF of a connection; -1 for the system's own.",
        importance=HIGH,
        without_effect="the system sizes the buffers",
    ),
    whole(
        "socket.listen.backlog.size",
        1_024,
        "Connections that wait to be accepted; the system may cap it. Who finds no room tries again after a second.",
        at_least(1),
    ),
    whole(
        "connections.max.idle.ms",
        600_000,
        "A connection without a request for so long is closed; -1 for never.",
        type=LONG,
    ),
    whole("max.connections", INT_MAX, "Connections open at once, over all addresses.", at_least(0), update=DYNAMIC),
    whole("max.connections.per.ip", INT_MAX, "Connections open at once from one address.", at_least(0), update=DYNAMIC),
    whole(
        "max.connection.creation.rate",
        INT_MAX,
        "Connections accepted in one second.",
        at_least(0),
        update=DYNAMIC,
        without_effect="the rate is not limited",
    ),
    whole(
        "queued.max.requests",
        500,
        "Requests that may wait for their turn before the broker stops reading.",
        at_least(1),
        importance=HIGH,
        without_effect="a connection's requests are handled one after the other",
    ),
    whole(
        "queued.max.request.bytes",
        -1,
        "Bytes of requests that may wait for their turn before the broker stops reading; -1 for no bound.",
        type=LONG,
        without_effect="a connection's requests are handled one after the other",
    ),
    whole(
        "num.network.threads",
        3,
        "Threads that read and write connections.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "num.io.threads",
        8,
        "Threads that handle requests.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "background.threads",
        10,
        "Threads for the work between requests.",
        at_least(1),
        importance=HIGH,
        update=DYNAMIC,
        without_effect=ONE_LOOP,
    ),
    whole(
        "request.timeout.ms",
        30_000,
        "How long a request of the broker itself waits for its answer.",
        importance=HIGH,
        without_effect="the broker sends no requests",
    ),
)

TOPICS = (
    Definition(
        "auto.create.topics.enable",
        ConfigType.BOOLEAN,
        True,
        "Create a topic when a client that allows it asks Metadata for one that is not there.",
        importance=HIGH,
    ),
    Definition(
        "delete.topic.enable",
        ConfigType.BOOLEAN,
        True,
        "Whether DeleteTopics deletes; when off it answers TOPIC_DELETION_DISABLED.",
        importance=HIGH,
    ),
    whole("num.partitions", 1, "Partitions of a topic whose creator does not say how many.", at_least(1)),
    whole("default.replication.factor", 1, "Replicas of a topic whose creator does not say how many.", at_least(1)),
    whole(
        "max.request.partition.size.limit",
        2000,
        "Partitions in one answer of DescribeTopicPartitions.",
        at_least(1),
    ),
    whole("fetch.max.bytes", 4_194_304, "The most one Fetch answer holds, whatever the client asks.", at_least(1024)),
    whole(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Incremental fetch sessions kept at once.",
        at_least(0),
        without_effect="fetch sessions are refused",
    ),
)

PRODUCERS = (
    whole(
        "producer.id.expiration.ms",
        86_400_000,
        "How long a partition remembers the sequence numbers of an idempotent producer that sends nothing.",
        at_least(1),
        importance=LOW,
        update=DYNAMIC,
    ),
    whole(
        "transactional.id.expiration.ms",
        604_800_000,
        "How long an idle transactional id is remembered.",
        at_least(1),
        importance=HIGH,
        without_effect=NO_TRANSACTIONS,
    ),
    whole(
        "transaction.max.timeout.ms",
        900_000,
        "The longest transaction timeout that a producer may ask for.",
        at_least(1),
        importance=HIGH,
        without_effect=NO_TRANSACTIONS,
    ),
)

GROUPS = (
    # Kafka's code says 3000, the server.properties that it ships says 0: nobody waits for members that do not come.
    whole("group.initial.rebalance.delay.ms", 0, "How long a new group's first rebalance waits for more members."),
    whole("group.max.session.timeout.ms", 1_800_000, "The longest session timeout that a member may ask for."),
    whole("group.max.size", INT_MAX, "Members of one group.", at_least(1)),
    whole("group.min.session.timeout.ms", 6000, "The shortest session timeout that a member may ask for."),
    Definition(
        "group.coordinator.rebalance.protocols",
        ConfigType.LIST,
        ("classic",),
        "The group protocols that are served.",
        each_of("classic"),
        without_effect=NO_CONSUMER_PROTOCOL,
    ),
    whole(
        "offset.metadata.max.bytes",
        4096,
        "The longest text that may go along with a committed offset.",
        importance=HIGH,
    ),
    whole(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the broker looks for committed offsets that expired.",
        at_least(1),
        type=LONG,
        importance=HIGH,
    ),
    whole(
        "offsets.retention.minutes",
        10_080,
        "How long the offsets of a group without members are kept.",
        at_least(1),
        importance=HIGH,
    ),
    whole(
        "offsets.topic.num.partitions",
        50,
        "Partitions of the topic of committed offsets.",
        at_least(1),
        importance=HIGH,
        without_effect="committed offsets are kept in one partition",
    ),
    whole(
        "offsets.topic.replication.factor",
        1,
        "Replicas of the topic of committed offsets.",
        at_least(1),
        type=SHORT,
        importance=HIGH,
        without_effect="there is one node",
    ),
    whole(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of the topic of committed offsets.",
        at_least(1),
        importance=HIGH,
    ),
)

OURS = (
    Definition(
        "headgate.acks.all.fsync",
        ConfigType.BOOLEAN,
        True,
        "With acks=all, answer once the records are on disk, and show them to consumers from then on. `false` answers "
        "and shows them from the page cache as Apache Kafka does: it survives the end of the process, but not that of "
        "the machine.",
        importance=HIGH,
        update=DYNAMIC,
    ),
    whole(
        "headgate.partitions.max",
        100_000,
        "Partitions of all topics together; each holds open files, so their number is bounded.",
        between(1, 10_000_000),
    ),
    whole(
        "headgate.topic.partitions.max",
        10_000,
        "Partitions of one topic: one request must not be able to fill the disk with folders.",
        between(1, 1_000_000),
    ),
)

BROKER_CONFIGS = index(*IDENTITY, *CONNECTIONS, *TOPICS, *LOG_CONFIGS, *PRODUCERS, *GROUPS, *OURS)
