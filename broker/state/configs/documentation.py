"""The texts about configs: their documentation, and the reasons why the broker ignores some of them."""

from collections.abc import Mapping

DOCUMENTATION: Mapping[str, str] = {
    "cleanup.policy": (
        "The policy for old records. `delete` deletes expired segments. `compact` is accepted, but the broker does "
        "not compact: it keeps all records. Both can be combined. With an empty list, the broker keeps all "
        "records."
    ),
    "compression.gzip.level": "The compression level for compression.type=gzip.",
    "compression.lz4.level": "The compression level for compression.type=lz4.",
    "compression.type": "The codec of the stored batches. `producer` keeps the codec of the producer.",
    "compression.zstd.level": "The compression level for compression.type=zstd.",
    "delete.retention.ms": "How long a compacted topic keeps tombstones.",
    "file.delete.delay.ms": "The delay before the files of a deleted segment are removed, so that readers can finish.",
    "flush.messages": "The number of records after which the log is flushed to disk, independent of acks.",
    "flush.ms": "The interval after which the log is flushed to disk, independent of acks.",
    "follower.replication.throttled.replicas": (
        "The follower replicas with throttled replication: a list of partition:broker, or `*`."
    ),
    "index.interval.bytes": (
        "The number of bytes between two entries of the offset index. Smaller values make lookups faster and the "
        "index larger."
    ),
    "internal.segment.bytes": "The segment size without the lower limit of segment.bytes, for tests.",
    "leader.replication.throttled.replicas": (
        "The leader replicas with throttled replication: a list of partition:broker, or `*`."
    ),
    "local.retention.bytes": "With tiered storage: the retention size of local segments. -2 means retention.bytes.",
    "local.retention.ms": "With tiered storage: the retention time of local segments. -2 means retention.ms.",
    "max.compaction.lag.ms": "The maximum time before a record becomes eligible for compaction.",
    "max.message.bytes": "The maximum size of a record batch, as sent.",
    "message.timestamp.after.max.ms": (
        "The maximum time by which a CreateTime timestamp may be ahead of the broker's clock."
    ),
    "message.timestamp.before.max.ms": (
        "The maximum time by which a CreateTime timestamp may be behind the broker's clock."
    ),
    "message.timestamp.type": (
        "The timestamp of a record: set by the producer (CreateTime) or by the broker (LogAppendTime)."
    ),
    "min.cleanable.dirty.ratio": "The minimum ratio of uncompacted bytes before a log is compacted again.",
    "min.compaction.lag.ms": "The minimum time before a record becomes eligible for compaction.",
    "min.insync.replicas": "The minimum number of in-sync replicas for acks=all.",
    "preallocate": "Allocate the full size of a new segment on disk.",
    "remote.log.copy.disable": "With tiered storage: stop copying segments to remote storage.",
    "remote.log.delete.on.disable": "With tiered storage: delete the remote data when tiered storage is disabled.",
    "remote.storage.enable": "Enable tiered storage. `true` is rejected.",
    "retention.bytes": "The maximum size of a partition. The broker deletes the oldest segments. -1 means no limit.",
    "retention.ms": "The maximum age of a segment before the broker deletes it. -1 means no limit.",
    "segment.bytes": "The maximum size of a segment. Retention deletes whole segments.",
    "segment.index.bytes": "The maximum size of an offset index. A full index rolls the segment.",
    "segment.jitter.ms": "The maximum random reduction of segment.ms, so that segments do not roll at the same time.",
    "segment.ms": "The maximum age of a segment before the log rolls, so that retention can delete it.",
    "unclean.leader.election.enable": (
        "Allow an out-of-sync replica to become leader if no in-sync replica is available."
    ),
    "log.flush.interval.ms": (
        "The default of the topic config flush.ms. If not set, log.flush.scheduler.interval.ms applies."
    ),
    "log.flush.scheduler.interval.ms": "How often the broker checks whether a log must be flushed.",
    "log.retention.check.interval.ms": "How often the broker deletes expired segments.",
    "log.retention.hours": (
        "The default of retention.ms in hours. Used if log.retention.ms and log.retention.minutes are not set."
    ),
    "log.retention.minutes": "The default of retention.ms in minutes. Used if log.retention.ms is not set.",
    "log.retention.ms": "The default of the topic config retention.ms. -1 means no limit.",
    "log.roll.hours": "The default of segment.ms in hours. Used if log.roll.ms is not set.",
    "log.roll.jitter.hours": "The default of segment.jitter.ms in hours. Used if log.roll.jitter.ms is not set.",
    "log.roll.jitter.ms": "The default of the topic config segment.jitter.ms.",
    "log.roll.ms": "The default of the topic config segment.ms.",
    "log.cleaner.enable": "Compact topics with cleanup.policy=compact.",
    "broker.id": "The id of this broker. Same as node.id.",
    "node.id": "The id of this broker.",
    "listeners": "The address that the broker listens on. Set with --listen.",
    "advertised.listeners": "The address that clients connect to. Default: the address in listeners.",
    "log.dirs": "The data directory. Set with --data-dir.",
    "process.roles": "The roles of this process in the cluster.",
    "broker.rack": "The rack of the broker. Returned by Metadata.",
    "authorizer.class.name": "The class of the authorizer.",
    "socket.request.max.bytes": (
        "The maximum size of a request. The broker closes a connection that sends a larger one."
    ),
    "socket.send.buffer.bytes": "SO_SNDBUF of a connection. -1 uses the default of the operating system.",
    "socket.receive.buffer.bytes": "SO_RCVBUF of a connection. -1 uses the default of the operating system.",
    "socket.listen.backlog.size": (
        "The maximum number of connections that wait to be accepted. The operating system may reduce it. If the "
        "queue is full, clients retry after a second."
    ),
    "connections.max.idle.ms": "The broker closes a connection that is idle for this time. -1 disables the timeout.",
    "max.connections": "The maximum number of open connections.",
    "max.connections.per.ip": "The maximum number of open connections per IP address.",
    "max.connection.creation.rate": "The maximum number of new connections per second.",
    "queued.max.requests": "The maximum number of queued requests before the broker stops reading.",
    "queued.max.request.bytes": (
        "The maximum size of queued requests before the broker stops reading. -1 means no limit."
    ),
    "num.network.threads": "The number of network threads.",
    "num.io.threads": "The number of threads that handle requests.",
    "background.threads": "The number of threads for background tasks.",
    "request.timeout.ms": "The timeout of requests that the broker sends.",
    "auto.create.topics.enable": "Create unknown topics on Metadata requests that allow it.",
    "delete.topic.enable": "Allow DeleteTopics. If false, it returns TOPIC_DELETION_DISABLED.",
    "num.partitions": "The default number of partitions of a new topic.",
    "default.replication.factor": "The default replication factor of a new topic.",
    "max.request.partition.size.limit": "The maximum number of partitions in a DescribeTopicPartitions response.",
    "fetch.max.bytes": "The maximum size of a Fetch response.",
    "max.incremental.fetch.session.cache.slots": "The maximum number of incremental fetch sessions.",
    "producer.id.expiration.ms": "How long a partition keeps the sequence numbers of an inactive idempotent producer.",
    "transactional.id.expiration.ms": "How long the broker keeps an inactive transactional id.",
    "transaction.max.timeout.ms": "The maximum transaction timeout of a producer.",
    "group.initial.rebalance.delay.ms": "How long the first rebalance of a group waits for more members.",
    "group.max.session.timeout.ms": "The maximum session timeout of a member.",
    "group.max.size": "The maximum number of members of a group.",
    "group.min.session.timeout.ms": "The minimum session timeout of a member.",
    "group.coordinator.rebalance.protocols": "The enabled group protocols.",
    "offset.metadata.max.bytes": "The maximum size of the metadata of a committed offset.",
    "offsets.retention.check.interval.ms": "How often the broker removes expired offsets.",
    "offsets.retention.minutes": "How long the broker keeps the offsets of a group without members.",
    "offsets.topic.num.partitions": "The number of partitions of `__consumer_offsets`.",
    "offsets.topic.replication.factor": "The replication factor of `__consumer_offsets`.",
    "offsets.topic.segment.bytes": "The segment size of `__consumer_offsets`.",
    "headgate.acks.all.fsync": (
        "With acks=all, respond when the records are on disk (fdatasync). Consumers see the records from then on. "
        "With `false`, respond when the records are in the page cache, like Apache Kafka. Then records survive a "
        "crash of the process, but not a power failure."
    ),
    "headgate.partitions.max": "The maximum number of partitions of all topics. Each partition uses open files.",
    "headgate.topic.partitions.max": (
        "The maximum number of partitions of a topic, so that one request cannot fill the disk."
    ),
}

_IGNORED: Mapping[str, tuple[str, ...]] = {
    "batches are stored as sent": (
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
    ),
    "compaction is not supported": (
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "log.cleaner.enable",
    ),
    "files are removed at once; readers can still finish, because they hold the open file": ("file.delete.delay.ms",),
    "there is one broker": (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "unclean.leader.election.enable",
        "offsets.topic.replication.factor",
    ),
    "tiered storage is not supported": (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    ),
    "each partition has one replica": ("min.insync.replicas",),
    "segments are not preallocated": ("preallocate",),
    "segments roll without jitter": (
        "segment.jitter.ms",
        "log.roll.jitter.hours",
        "log.roll.jitter.ms",
    ),
    "the broker checks every second": ("log.flush.scheduler.interval.ms",),
    "the process always has both roles": ("process.roles",),
    "ACLs are not supported, so every client may do everything": ("authorizer.class.name",),
    "the operating system chooses the buffer sizes": (
        "socket.send.buffer.bytes",
        "socket.receive.buffer.bytes",
    ),
    "the rate is not limited": ("max.connection.creation.rate",),
    "the requests of a connection are handled in order": (
        "queued.max.requests",
        "queued.max.request.bytes",
    ),
    "one event loop serves all connections": (
        "num.network.threads",
        "num.io.threads",
        "background.threads",
    ),
    "the broker sends no requests": ("request.timeout.ms",),
    "fetch sessions are not supported": ("max.incremental.fetch.session.cache.slots",),
    "transactions are not supported": (
        "transactional.id.expiration.ms",
        "transaction.max.timeout.ms",
    ),
    "the consumer group protocol (KIP-848) is not supported": ("group.coordinator.rebalance.protocols",),
    "`__consumer_offsets` has one partition": ("offsets.topic.num.partitions",),
}
"""The configs without effect, by the reason."""

WITHOUT_EFFECT: Mapping[str, str] = {name: reason for reason, names in _IGNORED.items() for name in names}
