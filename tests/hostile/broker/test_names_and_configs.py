"""Unusual names and config values: the broker rejects them by Kafka's rules, or stores and returns them unchanged."""

from typing import Any

import pytest

from tests.hostile.broker.witness import create_topic
from tests.live.headgate import HeadgateBroker
from tests.wire.entities import API_KEYS, encode_request
from tests.wire.raw_client import RawConnection, request_header

ODD = [
    "", " ", ".", "..", "../x", "../../etc/passwd", "/absolute", "a/b", "a\\b", "\x00", "a\x00b", "\n", "é", "☃", "𝕏",
    "-", "con", "a" * 249, "a" * 250, "a" * 32_767, "%2e%2e", "$(id)", "{}", "__cluster_metadata", "__consumer_offsets",
    "x-delete", "witness-0",
]  # fmt: skip
ALLOWED = {"-", "con", "a" * 249, "x-delete", "witness-0"}
INTERNAL = {"__cluster_metadata", "__consumer_offsets"}
NUMBERS = ["-1", "0", "-9223372036854775809", "9223372036854775808", "1e9", "0x10", "", " ", "1.5", "nan", "9" * 5000]


@pytest.fixture
def connection(attacked: HeadgateBroker) -> Any:
    with RawConnection(attacked.address, 60) as opened:
        yield opened


def test_a_topic_gets_a_name_that_is_safe_on_disk_or_none(attacked: HeadgateBroker, connection: RawConnection) -> None:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ODD]
    answers = connection.ask("create_topics", 5, {"topics": topics})["topics"]
    made = {answer["name"] for answer in answers if answer["error_code"] in {"NONE", "TOPIC_ALREADY_EXISTS"}}
    assert made - INTERNAL == ALLOWED
    assert "__cluster_metadata" not in made
    assert {path.name for path in attacked.folder.iterdir()} == {"data", "broker.log"}
    assert all(path.is_file() or path.name[-2:] in {"-0", "te"} for path in attacked.data.iterdir())
    deleted = connection.ask("delete_topics", 5, {"topic_names": sorted(ALLOWED)})["responses"]
    assert {answer["error_code"] for answer in deleted} == {"NONE"}


@pytest.mark.parametrize("api", ["metadata", "describe_topic_partitions", "delete_topics", "produce", "fetch"])
def test_odd_topic_names_are_answered_name_by_name(connection: RawConnection, api: str) -> None:
    names = [name for name in ODD if name not in INTERNAL]
    bodies: dict[str, dict[str, Any]] = {
        "metadata": {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False},
        "describe_topic_partitions": {"topics": [{"name": name} for name in names], "response_partition_limit": 100},
        "delete_topics": {"topics": [{"name": name} for name in names]},
        "produce": {"acks": 1, "topic_data": [{"name": name, "partition_data": [{"index": 0}]} for name in names]},
        "fetch": {"topics": [{"topic": name, "partitions": [{"partition": 0}]} for name in names]},
    }
    version = {"metadata": 12, "describe_topic_partitions": 0, "delete_topics": 6, "produce": 12, "fetch": 12}[api]
    answer = connection.ask(api, version, bodies[api])
    listed = next(answer[field] for field in ("topics", "responses") if field in answer)
    assert len(listed) == len(names)


@pytest.mark.parametrize("client_id", [None, "", "\x00", "☃" * 10_000, "a" * 32_767, "../..", "%s%n{}"])
def test_unusual_client_ids_are_accepted(connection: RawConnection, client_id: str | None) -> None:
    raw = b"" if client_id is None else client_id.encode()
    length = (-1 if client_id is None else len(raw)).to_bytes(2, signed=True)
    header = request_header(API_KEYS["join_group"], 2, 5, flexible=False)[:8] + length + raw
    body = {
        "group_id": "odd-clients", "session_timeout": 10_000, "rebalance_timeout": 100, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    connection.send_frame(header + encode_request("join_group", 2, body))
    assert connection.receive_frame()[:4] == b"\x00\x00\x00\x05"


@pytest.mark.parametrize("name", [name for name in ODD if name])
def test_odd_group_and_member_names_are_kept_as_they_are(connection: RawConnection, name: str) -> None:
    create_topic(connection, "grouped")
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": name[:4000]}
    commit = {
        "group_id": name, "generation_id_or_member_epoch": -1,
        "topics": [{"name": "grouped", "partitions": [partition]}],
    }  # fmt: skip
    answer = connection.ask("offset_commit", 8, commit)["topics"][0]["partitions"][0]
    assert answer["error_code"] == "NONE"
    asked = {"groups": [{"group_id": name, "topics": [{"name": "grouped", "partition_indexes": [0]}]}]}
    (group,) = connection.ask("offset_fetch", 8, asked)["groups"]
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 7
    assert group["topics"][0]["partitions"][0]["metadata"] == name[:4000]
    for api, version, body in (
        ("heartbeat", 4, {"group_id": name, "member_id": name, "generation_id": 2**31 - 1}),
        ("leave_group", 5, {"group_id": name, "members": [{"member_id": name, "group_instance_id": name}]}),
        ("sync_group", 3, {"group_id": name, "member_id": name}),
        ("describe_groups", 5, {"groups": [name]}),
        ("delete_groups", 2, {"groups_names": [name]}),
    ):
        connection.ask(api, version, body)


def test_twenty_thousand_unknown_configs_are_refused(connection: RawConnection) -> None:
    configs = [{"name": f"config-{number}", "value": "x" * 100} for number in range(20_000)]
    topic = {"name": "configured", "num_partitions": 1, "replication_factor": 1, "configs": configs}
    (answer,) = connection.ask("create_topics", 5, {"topics": [topic]})["topics"]
    assert answer["error_code"] == "INVALID_CONFIG"
    create_topic(connection, "configured")
    resource = {
        "resource_type": 2, "resource_name": "configured",
        "configs": [{**config, "config_operation": 0} for config in configs],
    }  # fmt: skip
    (answer,) = connection.ask("incremental_alter_configs", 1, {"resources": [resource]})["responses"]
    assert answer["error_code"] in {"INVALID_CONFIG", "INVALID_REQUEST"}


@pytest.mark.parametrize("config", ["retention.ms", "segment.bytes", "max.message.bytes", "flush.messages"])
def test_numbers_out_of_range_are_refused_or_given_back(connection: RawConnection, config: str) -> None:
    create_topic(connection, "numbered")
    for value in NUMBERS:
        change = {"name": config, "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": "numbered", "configs": [change]}
        (answer,) = connection.ask("incremental_alter_configs", 1, {"resources": [resource]})["responses"]
        assert answer["error_code"] in {"NONE", "INVALID_CONFIG", "INVALID_REQUEST"}, value
        if answer["error_code"] == "NONE":
            assert value in {"-1", "0"}
    described = {"resource_type": 2, "resource_name": "numbered", "configuration_keys": [config]}
    (result,) = connection.ask("describe_configs", 4, {"resources": [described]})["results"]
    assert result["error_code"] == "NONE"
    # Reset to the default, so that the broker restarts without an unusual topic config.
    reset = {"name": config, "config_operation": 1, "value": None}
    connection.ask("incremental_alter_configs", 1, {"resources": [{**resource, "configs": [reset]}]})


@pytest.mark.parametrize("partitions", [0, -2, -(2**31), 2**31 - 1, 10_001])
def test_impossible_partition_counts_are_refused(connection: RawConnection, partitions: int) -> None:
    topic = {"name": "partitioned", "num_partitions": partitions, "replication_factor": 1}
    (answer,) = connection.ask("create_topics", 5, {"topics": [topic]})["topics"]
    assert answer["error_code"] in {"INVALID_PARTITIONS", "POLICY_VIOLATION"}
    create_topic(connection, "grown")
    (grown,) = connection.ask("create_partitions", 3, {"topics": [{"name": "grown", "count": partitions}]})["results"]
    assert grown["error_code"] in {"INVALID_PARTITIONS", "POLICY_VIOLATION"}


@pytest.mark.parametrize("offset", [-2, -(2**63), 2**63 - 1, 1])
def test_offsets_out_of_range_are_refused(connection: RawConnection, offset: int) -> None:
    create_topic(connection, "empty")
    wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": -(2**31)}
    body = {"max_wait": 0, "max_bytes": -1, "min_bytes": -1, "topics": [{"topic": "empty", "partitions": [wanted]}]}
    (fetched,) = connection.ask("fetch", 11, body)["responses"][0]["partitions"]
    assert fetched["error_code"] == "OFFSET_OUT_OF_RANGE"
    cut = {"topics": [{"name": "empty", "partitions": [{"partition_index": 0, "offset": offset}]}]}
    (deleted,) = connection.ask("delete_records", 2, cut)["topics"][0]["partitions"]
    assert deleted["error_code"] == "OFFSET_OUT_OF_RANGE"
