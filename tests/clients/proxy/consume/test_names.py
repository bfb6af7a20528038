"""Groups and consumers whose names must be percent-encoded, in both APIs and in links."""

import itertools
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.clients.proxy.consume.api import NDJSON, Api, objects
from tests.clients.proxy.consume.test_group_streams import received, socket_to, take
from tests.clients.proxy.error_responses import error_of

NAMES = ["a/b", "/", "100%", "%2F", "two words", "müller", "a+b", "a?b#c&d", "records/"]


def named(api: Api, name: str) -> tuple[str, str]:
    """Return a new group whose name ends with `name`, and its percent-encoded form."""
    group = f"{api.group()}{name}"
    return group, quote(group, safe="")


@pytest.mark.parametrize("name", NAMES)
def test_an_instance_and_its_group_may_have_any_name(any_api: Api, name: str) -> None:
    group, escaped = named(any_api, name)
    topic = any_api.topic()
    any_api.produce(topic, 1, 2, 3)
    instance = any_api.instance(escaped, name=name, auto_commit_enable="false")
    assert instance.name == name
    assert instance.uri == f"{any_api.url}/consumers/{escaped}/instances/{quote(name, safe='')}"
    instance.subscribe(topic)
    assert [row["value"] for row in instance.read(3)] == [1, 2, 3]
    instance.do("POST", "/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]})
    assert instance.committed(topic) == 2

    described = any_api.client.get(f"{any_api.base}/consumer-groups/{escaped}")
    assert described.status_code == 200, described.text
    found = described.json()
    assert found["consumer_group_id"] == group
    assert any_api.client.get(found["metadata"]["self"]).json() == found
    (consumer,) = any_api.client.get(found["consumers"]["related"]).json()["data"]
    assert any_api.client.get(consumer["metadata"]["self"]).json() == consumer
    (assigned,) = any_api.client.get(consumer["assignments"]["related"]).json()["data"]
    assert any_api.client.get(assigned["metadata"]["self"]).json() == assigned
    lag = any_api.client.get(assigned["lag"]["related"]).json()
    assert (lag["consumer_group_id"], lag["current_offset"], lag["lag"]) == (group, 2, 1)
    assert any_api.client.get(lag["metadata"]["self"]).json() == lag

    instance.delete()
    assert error_of(instance.poll()) == (404, 40403)
    reset = any_api.client.post(found["metadata"]["self"] + "/offsets:reset", json={"to": "earliest"})
    assert [row["current_offset"] for row in reset.json()["data"]] == [0], reset.text
    assert any_api.client.delete(found["metadata"]["self"]).status_code == 204
    assert error_of(any_api.client.get(found["metadata"]["self"])) == (404, 40405)


@pytest.mark.parametrize("name", NAMES)
def test_a_group_with_any_name_is_streamed_and_acknowledged(api: Api, name: str) -> None:
    group, escaped = named(api, name)
    topic = api.topic()
    api.produce(topic, 1, 2, 3)
    path = f"consumer-groups/{escaped}/records?topics={topic}"
    with api.stream(path) as answer:
        rows = objects(answer)
        opened = next(rows)["open"]
        assert opened["group_id"] == group
        first = take(rows, 3)
        told = httpx.post(opened["acks"], json={"ack": first[0]["ack"]}, timeout=30)
        assert told.json()["acknowledged"] == 1, told.text
    with socket_to(api, path) as socket:
        assert received(socket)["open"]["group_id"] == group
        (row,) = take(iter(lambda: received(socket), None), 1)
        assert row["offset"] == 1


def test_names_that_differ_only_in_their_encoding_are_different_groups(api: Api) -> None:
    # Encoded names as in a URL: %2F is a slash, and %252F is the text "%2F".
    stem = api.group()
    written = [f"{stem}%2F", f"{stem}%252F", f"{stem}%25252F", f"{stem}+", f"{stem}%20", f"{stem}%2B%2F"]
    instances = [api.instance(each, name="one") for each in written]
    assert len({each.uri for each in instances}) == len(written)
    for one, other in itertools.pairwise(instances):
        one.delete()
        assert other.ask("GET", "/subscription").status_code == 200


def test_a_topic_with_an_encoded_slash_is_not_found(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1)
    for path in (f"/topics/{topic}%2Fpartitions", f"{api.base}/topics/{topic}%2Fpartitions", f"{api.base}/topics/%2F"):
        assert error_of(api.client.get(path)) == (404, 40401), path
    assert error_of(api.records(f"{topic}%2F", accept=NDJSON)) == (404, 40401)
    assert error_of(api.client.get(f"/topics%2F{topic}")) == (404, 404)
    refused = api.client.put("/consumers/a%2Fb/instances/c%2Fd/records", content=b"")
    assert error_of(refused) == (405, 405)
    assert refused.headers["allow"] == "GET"


@pytest.mark.parametrize(
    "path",
    ["/topics/%ff", "/consumers/%C3/instances/x/records", "/v3/clusters/%ff", "/v3/clusters/x/consumer-groups/a%2F%ff"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_names_that_are_not_utf_8_are_not_found(api: Api, method: str, path: str) -> None:
    answer = api.client.request(method, path, json={})
    assert error_of(answer) == (404, 404)
    assert "not valid UTF-8" in answer.json()["message"]


def test_a_websocket_with_a_path_that_is_not_utf_8_is_rejected(api: Api) -> None:
    with pytest.raises(InvalidStatus), connect(f"{api.url.replace('http', 'ws')}{api.base}/topics/%ff/records:consume"):
        pass
