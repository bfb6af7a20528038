"""OffsetDelete v0: Deletes committed offsets, except for topics that members of the group subscribe to.

An unknown partition gets UNKNOWN_TOPIC_OR_PARTITION. A partition without a committed offset gets no error. The response
is sent when the deletion is durable.
"""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from headgate.broker.node.broker import Broker
from headgate.broker.protocol.outcomes import Answer
from headgate.broker.protocol.request_shapes import OffsetDeleteRequest, RequestContext
from headgate.broker.runtime.deferred import Deferred

API_KEY = 47
VERSIONS = range(1)


def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest) -> Deferred[Answer]:
    existing = []
    for asked in request.topics:
        topic = broker.topics.find(asked.name)
        if topic is not None:
            existing += [
                (asked.name, partition.partition_index)
                for partition in asked.partitions
                if 0 <= partition.partition_index < len(topic.partitions)
            ]

    def render(outcome: tuple[ErrorCode, Mapping[tuple[str, int], ErrorCode]]) -> Answer:
        error, results = outcome
        if error is not ErrorCode.none:
            return {"error_code": error}
        return {
            "topics": [
                {
                    "name": asked.name,
                    "partitions": [
                        {
                            "partition_index": partition.partition_index,
                            "error_code": results.get(
                                (asked.name, partition.partition_index), ErrorCode.unknown_topic_or_partition
                            ),
                        }
                        for partition in asked.partitions
                    ],
                }
                for asked in request.topics
                # As in Kafka, the response omits an existing topic without partitions.
                if asked.partitions or broker.topics.find(asked.name) is None
            ]
        }

    return broker.groups.delete_offsets(request.group_id, existing).map(render)
