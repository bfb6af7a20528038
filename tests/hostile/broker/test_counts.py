"""Requests with too many items, or with false item counts.

The broker rejects them before it parses the items, or it answers them while it serves other clients.
"""

import struct
from typing import Any

import pytest

from headgate.broker.dispatch.handler_table import HANDLERS
from headgate.broker.protocol.request_guard import REQUEST_ITEMS_MAX
from tests.hostile.broker.witness import create_topic, log_of, resident_bytes
from tests.live.headgate import HeadgateBroker
from tests.wire.entities import API_KEYS, encode_request, request_is_flexible
from tests.wire.raw_client import ConnectionClosed, RawConnection, request_header

MILLION = 1_000_000
API_NAMES = {key: name for name, key in API_KEYS.items()}
# Building a response for 100,000 items takes a few hundred bytes for each item.
GROWTH_BYTES_MAX = 300 * 1024 * 1024


def names(count: int, prefix: str = "nobody") -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def of_topics(api: str, count: int) -> dict[str, Any]:
    """Return a request for `count` nonexistent topics, with one partition for each topic if the API needs one."""
    every = names(count)
    match api:
        case "metadata":
            return {"topics": [{"name": name} for name in every], "allow_auto_topic_creation": False}
        case "produce":
            return {"acks": 1, "topic_data": [{"name": name, "partition_data": [{"index": 0}]} for name in every]}
        case "fetch":
            return {"topics": [{"topic": name, "partitions": [{"partition": 0}]} for name in every]}
        case "list_offsets":
            return {"topics": [{"name": name, "partitions": [{"timestamp": -1}]} for name in every]}
        case "offset_commit":
            return {"group_id": "g", "topics": [{"name": name, "partitions": [{}]} for name in every]}
        case "create_topics":
            return {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in every]}
        case "delete_topics":
            return {"topic_names": every}
        case "describe_groups":
            return {"groups": every}
        case "describe_configs":
            return {"resources": [{"resource_type": 2, "resource_name": name} for name in every]}
        case "delete_records":
            return {"topics": [{"name": name, "partitions": [{}]} for name in every]}
    raise AssertionError(api)


@pytest.mark.parametrize(
    ("api", "version"),
    [
        ("metadata", 8), ("produce", 8), ("fetch", 11), ("list_offsets", 5), ("offset_commit", 7), ("create_topics", 4),
        ("delete_topics", 3), ("describe_groups", 4), ("describe_configs", 3), ("delete_records", 1),
    ],
)  # fmt: skip
def test_a_million_items_end_the_connection_at_once(attacked: HeadgateBroker, api: str, version: int) -> None:
    # Repeat one encoded item: encoding a million items would take longer than the rest of the test.
    few, more = (encode_request(api, version, of_topics(api, count)) for count in (1, 2))
    item = len(more) - len(few)
    at = next(i for i in range(len(few)) if few[i] != more[i]) - 3
    many = few[:at] + struct.pack(">i", MILLION) + few[at + 4 : at + 4 + item] * MILLION + few[at + 4 + item :]
    before = resident_bytes(attacked, "VmRSS")
    with RawConnection(attacked.address, 30) as connection, pytest.raises(ConnectionClosed):
        send_and_receive(connection, request_header(API_KEYS[api], version, 1, flexible=False) + many)
    assert f"API {API_KEYS[api]} version {version}: more than" in log_of(attacked)
    assert resident_bytes(attacked, "VmRSS") - before < len(many) + GROWTH_BYTES_MAX


def send_and_receive(connection: RawConnection, frame: bytes) -> None:
    connection.send_frame(frame)
    connection.receive_frame()


@pytest.mark.parametrize(
    ("api", "version", "field"),
    [("metadata", 8, "topics"), ("fetch", 11, "responses")],
)
def test_a_request_of_the_maximum_size_is_answered_along_with_others(
    attacked: HeadgateBroker, api: str, version: int, field: str
) -> None:
    count = REQUEST_ITEMS_MAX // 2
    with RawConnection(attacked.address, 60) as connection:
        assert len(connection.ask(api, version, of_topics(api, count))[field]) == count


@pytest.mark.parametrize("api_key", sorted(HANDLERS))
def test_counts_that_lie_end_the_connection(attacked: HeadgateBroker, api_key: int) -> None:
    """Replace each int32 of a request (each byte of a flexible request) with an impossible count."""
    api, versions = API_NAMES[api_key], HANDLERS[api_key][0]
    closed = 0
    for version in {versions[0], versions[-1]}:
        flexible = request_is_flexible(api, version)
        body = encode_request(api, version, {})
        header = request_header(api_key, version, 1, flexible=flexible)
        lies = (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07") if flexible else (b"\x7f\xff\xff\xff", b"\x80\0\0\0")
        width = 1 if flexible else 4
        for at in range(max(len(body) - width + 1, 0)):
            for lie in lies:
                with RawConnection(attacked.address) as connection:
                    connection.send_frame(header + body[:at] + lie + body[at + width :])
                    connection.send_frame(request_header(18, 0, 2, flexible=False))
                    try:
                        connection.receive_frame()
                    except ConnectionClosed:
                        closed += 1
    assert closed or not body.strip(b"\0")


def test_many_topics_are_created_and_deleted_in_turns(attacked: HeadgateBroker) -> None:
    count = 200
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names(count, "created")]
    with RawConnection(attacked.address, 60) as connection:
        created = connection.ask("create_topics", 5, {"topics": topics})["topics"]
        assert [topic["error_code"] for topic in created] == ["NONE"] * count
        deleted = connection.ask("delete_topics", 5, {"topic_names": names(count, "created")})["responses"]
        assert [topic["error_code"] for topic in deleted] == ["NONE"] * count


def test_metadata_creates_a_hundred_topics_at_a_time(attacked: HeadgateBroker) -> None:
    wanted = {"topics": [{"name": name} for name in names(120, "auto")], "allow_auto_topic_creation": True}
    with RawConnection(attacked.address, 60) as connection:
        first = [topic["error_code"] for topic in connection.ask("metadata", 9, wanted)["topics"]]
        assert (first.count("NONE"), first.count("LEADER_NOT_AVAILABLE")) == (100, 20)
        second = [topic["error_code"] for topic in connection.ask("metadata", 9, wanted)["topics"]]
        assert second == ["NONE"] * 120


def test_one_partition_asked_for_ten_thousand_times_is_bounded(attacked: HeadgateBroker) -> None:
    with RawConnection(attacked.address, 60) as connection:
        create_topic(connection, "repeated")
        asked = {"topic": "repeated", "partitions": [{"partition": 0, "partition_max_bytes": 2**31 - 1}] * 10_000}
        answer = connection.ask("fetch", 11, {"max_bytes": 2**31 - 1, "max_wait": 0, "topics": [asked]})
        assert len(answer["responses"][0]["partitions"]) == 1
        lookups = [{"name": "repeated", "partitions": [{"partition_index": 0, "timestamp": 5}]}] * 5_000
        (topic,) = connection.ask("list_offsets", 7, {"topics": lookups})["topics"]
        assert [part["error_code"] for part in topic["partitions"]] == ["INVALID_REQUEST"]


def test_the_bounds_leave_room_for_real_clients() -> None:
    consumer_of_ten_thousand_partitions = 2 * 10_000
    every_group_of_a_tool = 100_000
    assert max(consumer_of_ten_thousand_partitions, every_group_of_a_tool) <= REQUEST_ITEMS_MAX
