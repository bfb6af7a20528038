"""Topics and partitions in v3."""

import secrets
from typing import Any

import pytest

from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of


def test_the_cluster_has_links_to_all_its_resources(any_api: Api) -> None:
    listed = any_api.get("/v3/clusters")
    assert listed["kind"] == "KafkaClusterList"
    assert listed["metadata"] == {"self": f"{any_api.url}/v3/clusters", "next": None}
    cluster = any_api.get(any_api.base)
    assert listed["data"] == [cluster]
    assert cluster["kind"] == "KafkaCluster"
    assert cluster["metadata"] == {
        "self": f"{any_api.url}{any_api.base}",
        "resource_name": f"crn:///kafka={any_api.cluster_id}",
    }
    assert cluster["partition_reassignments"]["related"] == any_api.link("topics/-/partitions/-/reassignment")
    for name in ("controller", "brokers", "broker_configs", "consumer_groups", "topics", "partition_reassignments"):
        related = cluster[name]["related"].removeprefix(any_api.url)
        assert any_api.ask("GET", related).status_code == 200, name


def test_another_cluster_id_is_not_found(api: Api) -> None:
    for path in ("", "/topics", "/brokers/1", "/consumer-groups", "/topics/a/partitions", "/acls"):
        answer = api.ask("GET", f"/v3/clusters/another{path}")
        assert error_of(answer) == (404, 404)
        assert answer.json()["message"] == "Cluster another cannot be found."


def test_a_topic_is_created_returned_extended_and_deleted(any_api: Api) -> None:
    name = f"topic-{secrets.token_hex(4)}"
    created = any_api.ask(
        "POST",
        "topics",
        {
            "topic_name": name,
            "partitions_count": 2,
            "replication_factor": 1,
            "configs": [{"name": "cleanup.policy", "value": "compact"}],
        },
    )
    assert created.status_code == 201
    assert created.headers["location"] == any_api.link(f"topics/{name}")
    expected = {
        "kind": "KafkaTopic",
        "metadata": {
            "self": any_api.link(f"topics/{name}"),
            "resource_name": f"crn:///kafka={any_api.cluster_id}/topic={name}",
        },
        "cluster_id": any_api.cluster_id,
        "topic_name": name,
        "is_internal": False,
        "replication_factor": 1,
        "partitions_count": 2,
        "partitions": {"related": any_api.link(f"topics/{name}/partitions")},
        "configs": {"related": any_api.link(f"topics/{name}/configs")},
        "partition_reassignments": {"related": any_api.link(f"topics/{name}/partitions/-/reassignment")},
    }
    assert created.json() == expected
    assert any_api.get(f"topics/{name}") == expected
    listed = any_api.get("topics")
    assert listed["kind"] == "KafkaTopicList"
    assert expected in listed["data"]
    assert any_api.get(f"topics/{name}/configs/cleanup.policy")["value"] == "compact"

    widened = any_api.ask("PATCH", f"topics/{name}", {"partitions_count": 3})
    assert widened.status_code == 200
    assert widened.json()["partitions_count"] == 3
    narrowed = any_api.ask("PATCH", f"topics/{name}", {"partitions_count": 1})
    assert error_of(narrowed) == (400, 40002)

    assert any_api.ask("DELETE", f"topics/{name}").status_code == 204
    assert error_of(any_api.ask("GET", f"topics/{name}")) == (404, 40401)
    assert error_of(any_api.ask("DELETE", f"topics/{name}")) == (404, 40401)


def test_validate_only_creates_nothing(any_api: Api) -> None:
    name = f"topic-{secrets.token_hex(4)}"
    answer = any_api.ask("POST", "topics", {"topic_name": name, "partitions_count": 4, "validate_only": True})
    assert answer.status_code == 200
    assert answer.json()["partitions_count"] == 4
    assert any_api.ask("GET", f"topics/{name}").status_code == 404


def test_a_created_topic_has_the_defaults_of_the_cluster(api: Api) -> None:
    answer = api.ask("POST", "topics", {"topic_name": f"topic-{secrets.token_hex(4)}"})
    assert answer.status_code == 201
    assert (answer.json()["partitions_count"], answer.json()["replication_factor"]) == (1, 1)


@pytest.mark.parametrize("by_partition", [True, False])
def test_replicas_can_be_assigned(api: Api, by_partition: bool) -> None:
    broker = api.get("brokers")["data"][0]["broker_id"]
    assignments: object = [{"partition_id": index, "broker_ids": [broker]} for index in range(3)]
    if by_partition:
        assignments = {str(index): [broker] for index in range(3)}
    name = f"topic-{secrets.token_hex(4)}"
    answer = api.ask("POST", "topics", {"topic_name": name, "replicas_assignments": assignments})
    assert answer.status_code == 201
    assert api.get(f"topics/{name}")["partitions_count"] == 3


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topic_name": "not a name"}, (400, 40002)),
        ({"topic_name": ""}, (400, 40002)),
        ({"topic_name": "n" * 250}, (400, 40002)),
        ({"topic_name": "n" * 40_000}, (400, 400)),
        ({"partitions_count": 0}, (400, 40002)),
        ({"partitions_count": "two"}, (400, 400)),
        ({"partitions_count": 2**40}, (400, 400)),
        ({"replication_factor": 99}, (400, 40002)),
        ({"replication_factor": 2**20}, (400, 400)),
        ({"configs": [{"name": "no.such.config", "value": "1"}]}, (400, 40002)),
        ({"configs": [{"name": "retention.ms", "value": "soon"}]}, (400, 40002)),
        ({"configs": [{"value": "1"}]}, (400, 400)),
        ({"configs": {"retention.ms": "1"}}, (400, 400)),
        ({"unknown_field": 1}, (400, 400)),
    ],
)
def test_an_invalid_topic_is_rejected(api: Api, change: dict[str, Any], expected: tuple[int, int]) -> None:
    body = {"topic_name": f"topic-{secrets.token_hex(4)}", **change}
    answer = api.ask("POST", "topics", body)
    assert error_of(answer) == expected
    if body["topic_name"]:
        assert api.ask("GET", f"topics/{body['topic_name'][:300]}").status_code == 404


def test_creating_an_existing_topic_fails(any_api: Api) -> None:
    name = any_api.topic()
    answer = any_api.ask("POST", "topics", {"topic_name": name})
    assert error_of(answer) == (400, 40002)
    assert answer.json()["message"] == f"Topic '{name}' already exists."


def test_authorized_operations_are_returned_on_request(any_api: Api) -> None:
    name = any_api.topic()
    told = any_api.get(f"topics/{name}?include_authorized_operations=true")
    assert isinstance(told["authorized_operations"], list)
    assert "authorized_operations" not in any_api.get(f"topics/{name}")
    assert error_of(any_api.ask("GET", "topics?include_authorized_operations=perhaps")) == (400, 400)


def test_partitions_replicas_and_offsets(any_api: Api) -> None:
    name = any_api.topic(partitions=2)
    broker = any_api.get("brokers")["data"][0]["broker_id"]
    listed = any_api.get(f"topics/{name}/partitions")
    assert listed["kind"] == "KafkaPartitionList"
    assert [row["partition_id"] for row in listed["data"]] == [0, 1]
    partition = any_api.get(f"topics/{name}/partitions/1")
    at = f"topics/{name}/partitions/1"
    assert partition == {
        "kind": "KafkaPartition",
        "metadata": {
            "self": any_api.link(at),
            "resource_name": f"crn:///kafka={any_api.cluster_id}/topic={name}/partition=1",
        },
        "cluster_id": any_api.cluster_id,
        "topic_name": name,
        "partition_id": 1,
        "leader": {"related": any_api.link(f"{at}/replicas/{broker}")},
        "replicas": {"related": any_api.link(f"{at}/replicas")},
        "reassignment": {"related": any_api.link(f"{at}/reassignment")},
    }
    replica = any_api.get(f"{at}/replicas/{broker}")
    assert (replica["kind"], replica["is_leader"], replica["is_in_sync"]) == ("KafkaReplica", True, True)
    assert replica["broker"] == {"related": any_api.link(f"brokers/{broker}")}
    assert any_api.get(f"{at}/replicas")["data"] == [replica]
    assert replica in any_api.get(f"brokers/{broker}/partition-replicas")["data"]
    offsets = any_api.get(f"{at}/offset")
    assert (offsets["kind"], offsets["earliest_offset"], offsets["latest_offset"]) == (
        "KafkaPartitionWithOffsets",
        0,
        0,
    )
    assert offsets["metadata"]["resource_name"].endswith(f"/topic={name}/partition=1/offset_type=earliest_and_latest")
    assert error_of(any_api.ask("GET", f"{at}/offset?offset_type=latest")) == (400, 400)


def test_there_are_no_reassignments(any_api: Api) -> None:
    name = any_api.topic()
    for path in ("topics/-/partitions/-/reassignment", f"topics/{name}/partitions/-/reassignment"):
        listed = any_api.get(path)
        assert (listed["kind"], listed["data"]) == ("KafkaReassignmentList", [])
        assert listed["metadata"]["self"] == any_api.link(path)
    assert error_of(any_api.ask("GET", f"topics/{name}/partitions/0/reassignment")) == (404, 404)


@pytest.mark.parametrize("path", ["", "/offset", "/replicas", "/replicas/1", "/reassignment"])
def test_unknown_topics_and_partitions_are_not_found(api: Api, path: str) -> None:
    name = api.topic()
    assert error_of(api.ask("GET", f"topics/nowhere/partitions/0{path}")) == (404, 40401)
    assert error_of(api.ask("GET", f"topics/{name}/partitions/7{path}")) == (404, 40402)
    assert error_of(api.ask("GET", f"topics/{name}/partitions/zero{path}")) == (404, 404)
    assert error_of(api.ask("GET", f"topics/{name}/partitions/99999999999{path}")) == (404, 404)
    assert error_of(api.ask("GET", f"topics/{'n' * 300}/partitions/0{path}")) == (404, 40401)


def test_brokers(any_api: Api) -> None:
    listed = any_api.get("brokers")
    (broker,) = listed["data"]
    assert listed["kind"] == "KafkaBrokerList"
    assert broker["kind"] == "KafkaBroker"
    assert broker["host"] == "127.0.0.1"
    assert any_api.get(f"brokers/{broker['broker_id']}") == broker
    assert broker["partition_replicas"]["related"].endswith(f"/brokers/{broker['broker_id']}/partition-replicas")
    for path in ("brokers/99", "brokers/99/partition-replicas", "brokers/99/configs", "brokers/x"):
        assert error_of(any_api.ask("GET", path)) == (404, 404)


def test_links_do_not_follow_the_forwarding_headers_of_clients(api: Api) -> None:
    for headers in (
        {"Forwarded": "for=192.0.2.1;host=kafka.example.org;proto=https"},
        {"X-Forwarded-Host": "kafka.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/a"},
        {"X-Forwarded-Host": "<script>"},
    ):
        assert api.get("topics", headers=headers)["metadata"]["self"].startswith(f"{api.url}/v3/")
