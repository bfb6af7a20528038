"""Metadata with topic ids (KIP-516). aiokafka supports the API only up to version 5, which has no topic ids.

A re-created topic has the same name but another id. Brokers before Kafka 2.8 have no topic ids.
"""

import base64
import uuid
from collections.abc import Sequence
from typing import Any, Final

from aiokafka.protocol.metadata import MetadataResponse_v5

from headgate.kafka_client.requests import Api, Request

NO_ID: Final = uuid.UUID(int=0)


def metadata_request(topics: Sequence[str] | None) -> Request:
    """Returns a request for the given topics, or for all topics if None. The request never creates a topic."""
    named = None if topics is None else [{"name": topic} for topic in topics]
    return Request(Api.METADATA, {"topics": named, "allow_auto_topic_creation": False})


def read_metadata(response: Any) -> tuple[Any, dict[str, str]]:
    """Returns the response in the format of aiokafka's `ClusterMetadata.update_metadata`, and the topic ids by name."""
    topics, ids = [], {}
    for topic in response.topics:
        rows = [
            (
                int(each.error_code),
                each.partition_index,
                each.leader_id,
                list(each.replica_nodes),
                list(each.isr_nodes),
                list(getattr(each, "offline_replicas", ())),
            )
            for each in topic.partitions
        ]
        topics.append((int(topic.error_code), topic.name, bool(getattr(topic, "is_internal", False)), rows))
        topic_id = getattr(topic, "topic_id", None) or NO_ID
        if not topic.error_code and topic_id != NO_ID:
            ids[topic.name] = _text(topic_id)
    brokers = [
        (int(broker.node_id), broker.host, broker.port, getattr(broker, "rack", None)) for broker in response.brokers
    ]
    controller = int(getattr(response, "controller_id", -1))
    return MetadataResponse_v5(0, brokers, getattr(response, "cluster_id", None), controller, topics), ids


def _text(topic_id: uuid.UUID) -> str:
    """Returns the text format of Kafka's command-line tools."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
