"""AlterReplicaLogDirs v1-2: Accepts only the current directory, because there is one data directory (KIP-113).

If a partition occurs twice, its last entry applies.
"""

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import AlterReplicaLogDirsRequest, RequestContext

API_KEY = 34
VERSIONS = range(1, 3)


def handle(broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest) -> Answer:
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


def _judge(broker: Broker, name: str, index: int) -> ErrorCode:
    topic = broker.topics.find(name)
    is_known = topic is not None and 0 <= index < len(topic.partitions)
    return ErrorCode.none if is_known else ErrorCode.unknown_topic_or_partition
