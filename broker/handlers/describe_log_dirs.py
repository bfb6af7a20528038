"""DescribeLogDirs v1-5: Returns the data directory, the sizes of its partitions and its free space (KIP-827).

Unknown topics and partitions are omitted, as in Kafka. Null selects all topics.

Deviations:
- The number of directories
  Kafka: One or more, and replicas can move between them.
  Headgate: One.
"""

import shutil
from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import DescribeLogDirsRequest, RequestContext
from headgate.broker.state.topics import Partition, Topic

API_KEY = 35
VERSIONS = range(1, 6)

UNKNOWN_BYTES = -1


def handle(broker: Broker, context: RequestContext, request: DescribeLogDirsRequest) -> Answer:
    total_bytes, usable_bytes = _room(broker)
    result = {
        "error_code": ErrorCode.none,
        "log_dir": str(broker.directory.path),
        "topics": [
            {"name": topic.name, "partitions": [_partition(partition) for partition in partitions]}
            for topic, partitions in _chosen(broker, request)
            if partitions
        ],
        "total_bytes": total_bytes,
        "usable_bytes": usable_bytes,
        "is_cordoned": False,
    }
    return {"error_code": ErrorCode.none, "results": [result]}


def _chosen(broker: Broker, request: DescribeLogDirsRequest) -> Iterator[tuple[Topic, list[Partition]]]:
    if request.topics is None:
        for topic in broker.topics.all():
            yield topic, list(topic.partitions)
        return
    # Merge duplicates: the response contains each topic once.
    wanted: dict[str, set[int]] = {}
    for asked in request.topics:
        wanted.setdefault(asked.topic, set()).update(asked.partitions)
    for name, indexes in wanted.items():
        found = broker.topics.find(name)
        if found is not None:
            yield found, [partition for partition in found.partitions if partition.index in indexes]


def _partition(partition: Partition) -> dict[str, object]:
    return {
        "partition_index": partition.index,
        "partition_size": partition.log.size_bytes,
        "offset_lag": 0,
        "is_future_key": False,
    }


def _room(broker: Broker) -> tuple[int, int]:
    try:
        usage = shutil.disk_usage(broker.directory.path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return usage.total, usage.free
