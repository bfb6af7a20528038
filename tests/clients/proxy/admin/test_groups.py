"""Consumer groups in v3: members, lags, reset and deletion of offsets, deletion of groups."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of
from tests.live.headgate import HeadgateBroker

WAIT_SECONDS_MAX = 30.0


@pytest.fixture
def address(any_api: Api, request: pytest.FixtureRequest) -> str:
    if any_api.broker == "headgate":
        broker: HeadgateBroker = request.getfixturevalue("headgate_broker")
        return broker.address
    found: str = request.getfixturevalue("apache_kafka")
    return found


def produce(address: str, topic: str, partition: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": address})
    for index in range(count):
        producer.produce(topic, value=b"%d" % index, partition=partition, timestamp=1_000_000 + index)
    assert producer.flush(WAIT_SECONDS_MAX) == 0


def commit(address: str, group: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    try:
        rows = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        consumer.commit(offsets=rows, asynchronous=False)
    finally:
        consumer.close()


@contextmanager
def member(address: str, group: str, topic: str, **settings: str) -> Iterator[Consumer]:
    """Yield a consumer after it has received its assignment."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < deadline, "no partitions assigned"
    yield consumer
    consumer.close()


def group_id() -> str:
    return f"group-{secrets.token_hex(4)}"


def test_a_group_has_consumers_and_assignments(any_api: Api, address: str) -> None:
    check_group(any_api, address, "classic")


@pytest.mark.kafka
def test_a_group_of_the_consumer_protocol(kafka_api: Api, apache_kafka: str) -> None:
    check_group(kafka_api, apache_kafka, "consumer")


def check_group(any_api: Api, address: str, protocol: str) -> None:
    topic, group = any_api.topic(partitions=2), group_id()
    produce(address, topic, 0, 5)
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        settings["group.instance.id"] = "static-1"
    with member(address, group, topic, **settings) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 2), TopicPartition(topic, 1, 0)], asynchronous=False)
        described = any_api.get(f"consumer-groups/{group}")
        broker = any_api.get("brokers")["data"][0]["broker_id"]
        at = f"consumer-groups/{group}"
        assert described == {
            "kind": "KafkaConsumerGroup",
            "metadata": {
                "self": any_api.link(at),
                "resource_name": f"crn:///kafka={any_api.cluster_id}/consumer-group={group}",
            },
            "cluster_id": any_api.cluster_id,
            "consumer_group_id": group,
            "is_simple": False,
            "is_mixed_consumer_group": False,
            "type": protocol.upper(),
            "partition_assignor": described["partition_assignor"],
            "state": "STABLE",
            "coordinator": {"related": any_api.link(f"brokers/{broker}")},
            "consumers": {"related": any_api.link(f"{at}/consumers")},
            "lag_summary": {"related": any_api.link(f"{at}/lag-summary")},
        }
        assert described["partition_assignor"]
        assert described in any_api.get("consumer-groups")["data"]

        listed = any_api.get(f"{at}/consumers")
        assert listed["kind"] == "KafkaConsumerList"
        (one,) = listed["data"]
        assert (one["kind"], one["client_id"]) == ("KafkaConsumer", "reader")
        assert one["instance_id"] == ("static-1" if protocol == "classic" else None)
        # A member id of the consumer protocol can be standard base64, which contains slashes.
        consumer_at = f"{at}/consumers/{quote(one['consumer_id'], safe='+=')}"
        assert one["metadata"]["self"] == any_api.link(consumer_at)
        assert any_api.get(consumer_at) == one
        assignments = any_api.get(f"{consumer_at}/assignments")
        assert assignments["kind"] == "KafkaConsumerAssignmentList"
        assert [(row["topic_name"], row["partition_id"]) for row in assignments["data"]] == [(topic, 0), (topic, 1)]
        row = assignments["data"][0]
        assert row["partition"]["related"] == any_api.link(f"topics/{topic}/partitions/0")
        assert row["lag"]["related"] == any_api.link(f"{at}/lags/{topic}/partitions/0")
        single = f"{consumer_at}/assignments/{topic}/partitions/0"
        assert any_api.get(single) == row
        assert error_of(any_api.ask("GET", single[:-1] + "9")) == (404, 404)
        assert error_of(any_api.ask("GET", f"{at}/consumers/nobody")) == (404, 404)

        lag = any_api.get(f"{at}/lags/{topic}/partitions/0")
        assert (lag["kind"], lag["current_offset"], lag["log_end_offset"], lag["lag"]) == ("KafkaConsumerLag", 2, 5, 3)
        assert (lag["consumer_id"], lag["client_id"]) == (one["consumer_id"], "reader")
        assert lag in any_api.get(f"{at}/lags")["data"]
        summary = any_api.get(f"{at}/lag-summary")
        assert summary["kind"] == "KafkaConsumerGroupLagSummary"
        assert (summary["max_lag"], summary["total_lag"]) == (3, 3)
        assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == (topic, 0)
        assert summary["max_lag_consumer"]["related"] == any_api.link(consumer_at)

        assert error_of(any_api.ask("POST", f"{at}/offsets:reset", {"to": "earliest"})) == (409, 40903)
        assert error_of(any_api.ask("DELETE", at)) == (409, 40903)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"to": "earliest"}, [0, 0]),
        ({"to": "latest"}, [5, 3]),
        ({"offset": 4}, [4, 3]),
        ({"shift_by": -1}, [1, 0]),
        ({"shift_by": 100}, [5, 3]),
        ({"timestamp": 1_000_003}, [3, 3]),
        ({"timestamp": "1970-01-01T00:16:40.001Z"}, [1, 1]),
    ],
)
def test_offsets_are_reset(
    headgate_api: Api, headgate_broker: HeadgateBroker, target: Any, expected: list[int]
) -> None:
    topic, group = headgate_api.topic(partitions=2), group_id()
    for partition, count in enumerate((5, 3)):
        produce(headgate_broker.address, topic, partition, count)
    commit(headgate_broker.address, group, {(topic, 0): 2, (topic, 1): 1})
    at = f"consumer-groups/{group}"
    trial = headgate_api.ask("POST", f"{at}/offsets:reset", {**target, "validate_only": True})
    assert trial.status_code == 200, trial.text
    assert [row["current_offset"] for row in trial.json()["data"]] == expected
    assert [row["previous_offset"] for row in trial.json()["data"]] == [2, 1]
    assert [row["current_offset"] for row in headgate_api.get(f"{at}/lags")["data"]] == [2, 1]
    done = headgate_api.ask("POST", f"{at}/offsets:reset", target)
    assert done.json() == trial.json()
    assert [row["current_offset"] for row in headgate_api.get(f"{at}/lags")["data"]] == expected


def test_offsets_of_a_new_group_are_set_and_deleted_and_the_group_is_deleted(any_api: Api, address: str) -> None:
    topic, other, group = any_api.topic(partitions=2), any_api.topic(), group_id()
    produce(address, topic, 1, 3)
    at = f"consumer-groups/{group}"
    assert error_of(any_api.ask("GET", at)) == (404, 40405)
    assert error_of(any_api.ask("GET", f"{at}/lags")) == (404, 40405)
    assert error_of(any_api.ask("POST", f"{at}/offsets:reset", {"to": "latest"})) == (404, 40405)
    wanted = [{"topic_name": topic, "partition_ids": [1]}, {"topic_name": other}]
    done = any_api.ask("POST", f"{at}/offsets:reset", {"to": "latest", "topics": wanted})
    assert done.status_code == 200, done.text
    assert {(row["topic_name"], row["partition_id"]): row["current_offset"] for row in done.json()["data"]} == {
        (topic, 1): 3,
        (other, 0): 0,
    }
    described = any_api.get(at)
    assert (described["state"], described["is_simple"]) == ("EMPTY", True)
    assert any_api.ask("DELETE", f"{at}/offsets?topic_name={topic}&partition_id=1").status_code == 204
    assert [row["topic_name"] for row in any_api.get(f"{at}/lags")["data"]] == [other]
    assert error_of(any_api.ask("DELETE", f"{at}/offsets?topic_name={topic}")) == (404, 404)
    assert any_api.ask("DELETE", at).status_code == 204
    assert error_of(any_api.ask("DELETE", at)) == (404, 40405)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, 400)),
        ({"to": "middle"}, (400, 400)),
        ({"to": "latest", "offset": 1}, (400, 400)),
        ({"offset": -1}, (400, 400)),
        ({"timestamp": "yesterday"}, (400, 400)),
        ({"to": "latest", "topics": [{"topic_name": "nowhere"}]}, (404, 40401)),
        ({"to": "latest", "topics": [{"topic_name": "nowhere", "partition_ids": ["0"]}]}, (400, 400)),
    ],
)
def test_invalid_resets_are_rejected(headgate_api: Api, body: Any, expected: tuple[int, int]) -> None:
    assert error_of(headgate_api.ask("POST", f"consumer-groups/{group_id()}/offsets:reset", body)) == expected


def test_a_reset_of_unknown_partitions_is_rejected(headgate_api: Api) -> None:
    topic = headgate_api.topic()
    body: dict[str, Any] = {"to": "latest", "topics": [{"topic_name": topic, "partition_ids": [5]}]}
    assert error_of(headgate_api.ask("POST", f"consumer-groups/{group_id()}/offsets:reset", body)) == (404, 40402)
    body = {"shift_by": 1, "topics": [{"topic_name": topic}]}
    assert error_of(headgate_api.ask("POST", f"consumer-groups/{group_id()}/offsets:reset", body)) == (400, 400)


def test_records_are_purged(any_api: Api, address: str) -> None:
    topic = any_api.topic(partitions=2)
    produce(address, topic, 0, 5)
    produce(address, topic, 1, 2)
    some = any_api.ask("DELETE", f"topics/{topic}/partitions/0/records?before_offset=3")
    assert some.status_code == 200, some.text
    assert some.json()["kind"] == "KafkaPurgeList"
    assert [(row["partition_id"], row["earliest_offset"]) for row in some.json()["data"]] == [(0, 3)]
    offsets = any_api.get(f"topics/{topic}/partitions/0/offset")
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (3, 5)
    assert error_of(any_api.ask("DELETE", f"topics/{topic}/partitions/0/records?before_offset=99")) == (400, 40002)
    for misspelled in (f"topics/{topic}/records?before_offset=1", f"topics/{topic}/partitions/0/records?before=4"):
        assert error_of(any_api.ask("DELETE", misspelled)) == (400, 400)
    assert any_api.get(f"topics/{topic}/partitions/0/offset")["earliest_offset"] == 3
    every = any_api.ask("DELETE", f"topics/{topic}/records")
    assert [(row["partition_id"], row["earliest_offset"]) for row in every.json()["data"]] == [(0, 5), (1, 2)]
    assert error_of(any_api.ask("DELETE", "topics/nowhere/records")) == (404, 40401)
    assert error_of(any_api.ask("DELETE", f"topics/{topic}/partitions/7/records")) == (404, 40402)
