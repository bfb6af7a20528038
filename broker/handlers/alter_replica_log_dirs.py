"""AlterReplicaLogDirs (34), versions 1-2: there is one directory, so a partition can only stay in it (KIP-113).

A partition that is named twice goes by where it was named last.

Deviations:
- None.
"""

from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from headgate.broker.protocol.entities import Answer
from headgate.broker.protocol.request_context import RequestContext
from headgate.broker.protocol.request_shapes import AlterReplicaLogDirsRequest

if TYPE_CHECKING:
    from headgate.broker.node.broker import Broker

API_KEY = 34
VERSIONS = range(1, 3)


def handle(broker: "Broker", context: RequestContext, request: AlterReplicaLogDirsRequest) -> Answer:
    here = str(broker.directory.path)
    results: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for asked in directory.topics:
            for index in asked.partitions:
                code = _judge(broker, asked.name, index) if directory.path == here else ErrorCode.log_dir_not_found
                results.setdefault(asked.name, {})[index] = code
    return {
        "results": [
            {
                "topic_name": name,
                "partitions": [{"partition_index": index, "error_code": code} for index, code in codes.items()],
            }
            for name, codes in results.items()
        ]
    }


def _judge(broker: "Broker", name: str, index: int) -> ErrorCode:
    topic = broker.topics.find(name)
    is_known = topic is not None and 0 <= index < len(topic.partitions)
    return ErrorCode.none if is_known else ErrorCode.unknown_topic_or_partition
