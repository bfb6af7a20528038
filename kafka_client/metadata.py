"""Kafka's Metadata from version 10 on, which tells the id of every topic; aiokafka itself speaks it up to version 5.

A topic that is deleted and made anew keeps its name and gets another id (KIP-516). Brokers before Kafka 2.8 know no
ids, and are asked as aiokafka asks them.
"""

import base64
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequest_v0,
    MetadataRequest_v1,
    MetadataRequest_v2,
    MetadataRequest_v3,
    MetadataRequest_v4,
    MetadataRequest_v5,
    MetadataResponse_v5,
)
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

UUID_BYTES = 16
NO_ID = bytes(UUID_BYTES)
"""What a broker answers that has none to tell."""


class _Uuid(AbstractType[bytes]):
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        value = data.read(UUID_BYTES)
        if len(value) != UUID_BYTES:
            raise ValueError(f"the id of a topic has {UUID_BYTES} bytes, and {len(value)} are left")
        return value


_NAME = CompactString("utf-8")


class _MetadataResponse_v10(Response):
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(("node_id", Int32), ("host", _NAME), ("port", Int32), ("rack", _NAME), ("tags", TaggedFields)),
        ),
        ("cluster_id", _NAME),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", _NAME),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _MetadataRequest_v10(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _MetadataResponse_v10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("topic", _NAME), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicsRequest(
    Request[
        MetadataRequest_v0
        | MetadataRequest_v1
        | MetadataRequest_v2
        | MetadataRequest_v3
        | MetadataRequest_v4
        | MetadataRequest_v5
        | _MetadataRequest_v10
    ]
):
    """About the topics named, or about all for None. Creates none where the broker can be told not to."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str] | None) -> None:
        self._topics = None if topics is None else list(topics)

    def build(self, request_struct_class: type[Any]) -> Any:
        if request_struct_class is not _MetadataRequest_v10:
            return MetadataRequest(self._topics, allow_auto_topic_creation=False).build(request_struct_class)
        no_tags: dict[int, bytes] = {}
        named = None if self._topics is None else [(NO_ID, topic, no_tags) for topic in self._topics]
        return _MetadataRequest_v10(named, False, False, False, no_tags)


def read_answer(answer: Any) -> tuple[Any, dict[str, str]]:
    """The answer in a form that aiokafka takes, and the ids of topics by name, where the broker tells them."""
    if answer.API_VERSION < _MetadataResponse_v10.API_VERSION:
        return answer, {}
    topics, ids = [], {}
    for error_code, topic, topic_id, is_internal, partitions, *_ in answer.topics:
        rows = [(code, number, leader, *nodes) for code, number, leader, _, *nodes, _ in partitions]
        topics.append((error_code, topic, is_internal, rows))
        if error_code == 0 and topic_id != NO_ID:
            ids[topic] = _text(topic_id)
    brokers = [tuple(fields) for *fields, _ in answer.brokers]
    known = MetadataResponse_v5(answer.throttle_time_ms, brokers, answer.cluster_id, answer.controller_id, topics)
    return known, ids


def _text(topic_id: bytes) -> str:
    """As Kafka's own tools show it."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
