"""Sizes of partitions on disk (DescribeLogDirs)."""

from collections.abc import Sequence

from headgate.kafka_client.admin.offsets import Place
from headgate.kafka_client.admin.topics import Topic, describe_cluster
from headgate.kafka_client.errors import ApiUnsupported, NodeUnavailable
from headgate.kafka_client.request_client import RequestClient
from headgate.kafka_client.requests import Api


async def partition_sizes(client: RequestClient, topics: Sequence[Topic] | None = None) -> dict[Place, int]:
    """Returns the bytes of the largest replica of each partition. Empty if the broker does not support the API."""
    wanted = None
    if topics is not None:
        wanted = [{"topic": topic.name, "partitions": [each.index for each in topic.partitions]} for topic in topics]
    sizes: dict[Place, int] = {}
    for broker in (await describe_cluster(client)).brokers:
        try:
            answer = await client.send(Api.DESCRIBE_LOG_DIRS, {"topics": wanted}, broker.id)
        except ApiUnsupported:
            return {}
        except NodeUnavailable:
            continue  # Another broker has a replica, unless the partition is offline.
        for directory in answer.results:
            for topic in directory.topics:
                for partition in topic.partitions:
                    place = Place(topic.name, partition.partition_index)
                    sizes[place] = max(sizes.get(place, 0), partition.partition_size)
    return sizes
