"""Requests of every API in every version."""

import io
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader

from headgate.kafka_client.errors import ApiUnsupported, ValueTooLong
from headgate.kafka_client.requests import STRING_BYTES_MAX, Api, Request

FIELDS: dict[Api, dict[str, object]] = {
    Api.METADATA: {"topics": [{"name": "a"}], "allow_auto_topic_creation": False},
    Api.CREATE_TOPICS: {
        "topics": [
            {
                "name": "a",
                "num_partitions": 2,
                "replication_factor": 1,
                "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
                "configs": [{"name": "retention.ms", "value": None}],
            }
        ],
        "timeout": 1500,
        "validate_only": True,
    },
    Api.OFFSET_FETCH: {"group_id": "g", "topics": None},
}


def versions(api: Api) -> list[int]:
    return sorted(schema_name_map[api_key_map[api]])


@pytest.mark.parametrize(("api", "version"), [(api, version) for api in Api for version in versions(api)], ids=str)
def test_every_version_is_written_as_its_schema_reads_it(api: Api, version: int) -> None:
    fields = FIELDS.get(api, {})
    if api is Api.OFFSET_FETCH and version == 1:
        # Before version 2 there is no way to ask for everything.
        fields = {"group_id": "g", "topics": []}
    asked = Request(api, fields).prepare({api: (0, version)})
    assert asked.version <= version
    entity: Any
    entity, size = entity_reader(load_request_schema(api, asked.version))(asked.content, 0)
    assert size == len(asked.content)
    if api is Api.CREATE_TOPICS:
        topic = entity.topics[0]
        assert (topic.name, topic.num_partitions, topic.assignments[0].broker_ids) == ("a", 2, (1, 2))
        assert topic.configs[0].value is None


def test_the_header_is_kafkas() -> None:
    asked = Request(Api.LIST_GROUPS, {}).prepare({Api.LIST_GROUPS: (0, 5)})
    assert asked.build_request_header(7, "me").encode() == b"\x00\x10\x00\x05\x00\x00\x00\x07\x00\x02me\x00"
    asked = Request(Api.LIST_GROUPS, {}).prepare({Api.LIST_GROUPS: (0, 2)})
    assert asked.build_request_header(7, "me").encode() == b"\x00\x10\x00\x02\x00\x00\x00\x07\x00\x02me"
    frame = io.BytesIO(b"\x00\x00\x00\x07" + b"\x00\x00\x00\x00" + b"\x00\x00" + b"\x00\x00\x00\x00")
    assert asked.parse_response_header(frame).correlation_id == 7
    assert asked.decode(frame).groups == ()


def test_an_unsupported_api_is_an_error() -> None:
    with pytest.raises(ApiUnsupported, match="does not support DescribeAcls"):
        Request(Api.DESCRIBE_ACLS, {}).prepare({})
    with pytest.raises(ApiUnsupported):
        Request(Api.OFFSET_FETCH, {}).prepare({Api.OFFSET_FETCH: (8, 10)})


def test_texts_that_kafka_cannot_take_never_leave() -> None:
    question = Request(Api.FIND_COORDINATOR, {"key": "ö" * STRING_BYTES_MAX, "key_type": 0})
    with pytest.raises(ValueTooLong, match="key is longer"):
        question.prepare({Api.FIND_COORDINATOR: (0, 3)})
