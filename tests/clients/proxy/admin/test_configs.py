"""Configs of topics, of brokers and of the cluster."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of

WAIT_SECONDS_MAX = 15.0


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait for the condition. Brokers of a real cluster apply a change with a short delay."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_configs_of_a_topic(any_api: Api) -> None:
    name = any_api.topic(retention_ms="1000")
    config = any_api.get(f"topics/{name}/configs/retention.ms")
    assert config["kind"] == "KafkaTopicConfig"
    assert config["metadata"] == {
        "self": any_api.link(f"topics/{name}/configs/retention.ms"),
        "resource_name": f"crn:///kafka={any_api.cluster_id}/topic={name}/config=retention.ms",
    }
    assert (config["topic_name"], config["name"], config["value"]) == (name, "retention.ms", "1000")
    assert (config["is_default"], config["is_read_only"], config["is_sensitive"]) == (False, False, False)
    assert config["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert config["synonyms"][0] == {"name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG"}
    listed = any_api.get(f"topics/{name}/configs")
    assert listed["kind"] == "KafkaTopicConfigList"
    assert config in listed["data"]
    assert config in any_api.get("topics/-/configs")["data"]
    other = any_api.get(f"topics/{name}/configs/cleanup.policy")
    assert (other["is_default"], other["source"]) == (True, "DEFAULT_CONFIG")


def test_a_config_is_set_and_reset(any_api: Api) -> None:
    name = any_api.topic()
    at = f"topics/{name}/configs/max.message.bytes"
    assert any_api.ask("PUT", at, {"value": "2000"}).status_code == 204
    eventually(lambda: any_api.get(at)["value"] == "2000")
    assert any_api.ask("DELETE", at).status_code == 204
    eventually(lambda: any_api.get(at)["source"] != "DYNAMIC_TOPIC_CONFIG")


def test_configs_are_altered_together_or_not_at_all(any_api: Api) -> None:
    name = any_api.topic(retention_ms="1000")
    at = f"topics/{name}/configs"
    changes = [{"name": "retention.ms", "operation": "DELETE"}, {"name": "cleanup.policy", "value": "compact"}]
    trial = any_api.ask("POST", f"{at}:alter", {"data": changes, "validate_only": True})
    assert trial.status_code == 204
    assert any_api.get(f"{at}/cleanup.policy")["value"] == "delete"
    bad = [*changes, {"name": "segment.bytes", "value": "large"}]
    assert error_of(any_api.ask("POST", f"{at}:alter", {"data": bad})) == (400, 40002)
    assert any_api.get(f"{at}/cleanup.policy")["value"] == "delete"
    assert any_api.ask("POST", f"{at}:alter", {"data": changes}).status_code == 204
    eventually(lambda: any_api.get(f"{at}/cleanup.policy")["value"] == "compact")
    eventually(lambda: any_api.get(f"{at}/retention.ms")["source"] != "DYNAMIC_TOPIC_CONFIG")


def test_configs_of_several_topics_are_altered_topic_by_topic(any_api: Api) -> None:
    first, second = any_api.topic(), any_api.topic()
    good = {"topic_name": first, "configs": [{"name": "retention.ms", "value": "5000"}]}
    answer = any_api.ask("POST", "topics/-/configs:alter", {"data": [good]})
    assert answer.status_code == 204
    bad = {"topic_name": second, "configs": [{"name": "retention.ms", "value": "soon"}]}
    good = {"topic_name": first, "configs": [{"name": "retention.ms", "value": "6000"}]}
    answer = any_api.ask("POST", "topics/-/configs:alter", {"data": [good, bad]})
    assert answer.status_code == 207
    failures = {row["topic_name"]: row["error_code"] for row in answer.json()["failures"]}
    assert failures == {second: 40002}
    eventually(lambda: any_api.get(f"topics/{first}/configs/retention.ms")["value"] == "6000")


def test_unknown_names_fail_an_alteration_of_several_topics(any_api: Api) -> None:
    topic = any_api.topic()
    good = {"topic_name": topic, "configs": [{"name": "retention.ms", "value": "7000"}]}
    absent = {"topic_name": "nowhere", "configs": [{"name": "retention.ms", "value": "1"}]}
    misspelled = {"topic_name": topic, "configs": [{"name": "retention.msec", "value": "1"}]}
    assert error_of(any_api.ask("POST", "topics/-/configs:alter", {"data": [good, absent]})) == (404, 40401)
    assert error_of(any_api.ask("POST", "topics/-/configs:alter", {"data": [misspelled]})) == (404, 404)
    assert any_api.get(f"topics/{topic}/configs/retention.ms")["value"] != "7000"


def test_configs_of_a_broker_are_set_and_reset(any_api: Api) -> None:
    broker = any_api.get("brokers")["data"][0]["broker_id"]
    at = f"brokers/{broker}/configs"
    listed = any_api.get(at)
    assert listed["kind"] == "KafkaBrokerConfigList"
    everywhere = any_api.get("brokers/-/configs")
    assert everywhere["metadata"]["self"] == any_api.link("brokers/-/configs")
    assert {row["name"] for row in everywhere["data"]} == {row["name"] for row in listed["data"]}
    assert any_api.ask("PUT", f"{at}/message.max.bytes", {"value": "2000000"}).status_code == 204
    eventually(lambda: any_api.get(f"{at}/message.max.bytes")["value"] == "2000000")
    config = any_api.get(f"{at}/message.max.bytes")
    assert (config["kind"], config["broker_id"], config["value"]) == ("KafkaBrokerConfig", broker, "2000000")
    assert config["source"] == "DYNAMIC_BROKER_CONFIG"
    assert config["metadata"]["resource_name"].endswith(f"/broker={broker}/config=message.max.bytes")
    change = {"data": [{"name": "message.max.bytes", "operation": "DELETE"}]}
    assert any_api.ask("POST", f"{at}:alter", change).status_code == 204
    eventually(lambda: any_api.get(f"{at}/message.max.bytes")["source"] != "DYNAMIC_BROKER_CONFIG")
    assert any_api.ask("DELETE", f"{at}/message.max.bytes").status_code == 204
    assert error_of(any_api.ask("PUT", f"{at}/no.such", {"value": "2"})) == (404, 404)


def test_configs_of_all_brokers_are_set_and_reset(any_api: Api) -> None:
    assert any_api.ask("PUT", "broker-configs/message.max.bytes", {"value": "2000000"}).status_code == 204
    eventually(lambda: any_api.ask("GET", "broker-configs/message.max.bytes").status_code == 200)
    config = any_api.get("broker-configs/message.max.bytes")
    assert (config["kind"], config["config_type"], config["value"]) == ("KafkaClusterConfig", "BROKER", "2000000")
    assert config["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert config["metadata"]["resource_name"].endswith("/broker-config=message.max.bytes")
    listed = any_api.get("broker-configs")
    assert listed["kind"] == "KafkaClusterConfigList"
    assert config in listed["data"]
    change = {"data": [{"name": "message.max.bytes", "value": "3000000"}], "validate_only": True}
    assert any_api.ask("POST", "broker-configs:alter", change).status_code == 204
    assert any_api.get("broker-configs/message.max.bytes")["value"] == "2000000"
    assert any_api.ask("DELETE", "broker-configs/message.max.bytes").status_code == 204
    eventually(lambda: any_api.ask("GET", "broker-configs/message.max.bytes").status_code == 404)
    assert error_of(any_api.ask("GET", "broker-configs/message.max.bytes")) == (404, 404)


def test_unknown_configs_are_not_found(api: Api) -> None:
    name = api.topic()
    for method, body in (("GET", None), ("PUT", {"value": "1"}), ("DELETE", None)):
        answer = api.ask(method, f"topics/{name}/configs/no.such", body)
        assert error_of(answer) == (404, 404)
        assert answer.json()["message"] == (
            f"Config no.such cannot be found for TOPIC {name} in cluster {api.cluster_id}."
        )
        assert error_of(api.ask(method, "topics/nowhere/configs/retention.ms", body)) == (404, 40401)
    assert error_of(api.ask("GET", "topics/nowhere/configs")) == (404, 40401)


@pytest.mark.parametrize(
    "body",
    [
        {"data": "retention.ms"},
        {"data": [{"value": "1"}]},
        {"data": [{"name": "retention.ms", "operation": "DOUBLE"}]},
        {"data": [{"name": "retention.ms", "value": 1}]},
        {"data": [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]},
        {"data": [], "validate_only": "yes"},
        {},
        [],
    ],
)
def test_invalid_alterations_are_rejected(api: Api, body: Any) -> None:
    name = api.topic()
    for path in (f"topics/{name}/configs:alter", "broker-configs:alter", "brokers/1/configs:alter"):
        assert error_of(api.ask("POST", path, body)) == (400, 400)
