"""v2 consumer instances, as Confluent's clients use them."""

import secrets
import threading

import pytest

from tests.clients.proxy.consume.api import BINARY, JSON, TEXT, V2, Api, b64
from tests.clients.proxy.error_responses import error_of


def test_an_instance_reads_records_with_headers_and_timestamps(any_api: Api) -> None:
    topic = any_api.topic()
    header = {"key": "trace", "value": b64(b"77")}
    any_api.produce_rows(topic, [{"key": "a", "value": {"x": 1}, "headers": [header], "timestamp": 1700000000123}])
    any_api.produce(topic, None, [1, 2])
    instance = any_api.instance().subscribe(topic)
    rows = instance.read(3)
    assert rows[0] == {
        "topic": topic,
        "key": "a",
        "value": {"x": 1},
        "partition": 0,
        "offset": 0,
        "timestamp": 1700000000123,
        "headers": [header],
    }
    assert [row["value"] for row in rows] == [{"x": 1}, None, [1, 2]]
    assert instance.poll("timeout=100").json() == []
    instance.delete()
    assert error_of(instance.poll()) == (404, 40403)


def test_create_returns_id_and_base_uri(api: Api) -> None:
    group = api.group()
    answer = api.client.post(f"/consumers/{group}", json={"name": "mine"}, headers={"content-type": V2})
    assert answer.headers["content-type"] == V2
    assert answer.json() == {"instance_id": "mine", "base_uri": f"{api.url}/consumers/{group}/instances/mine"}
    again = api.client.post(f"/consumers/{group}", json={"name": "mine"}, headers={"content-type": V2})
    assert error_of(again) == (409, 40902)
    unnamed = api.client.post(f"/consumers/{group}")
    assert unnamed.json()["instance_id"].startswith("rest-consumer-")


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({"forwarded": "for=1.2.3.4;host=kafka.example.com;proto=https"}, "https://kafka.example.com"),
        ({"x-forwarded-host": "a.example", "x-forwarded-proto": "https"}, "https://a.example"),
        ({"x-forwarded-host": "a.example", "x-forwarded-port": "8443"}, "http://a.example:8443"),
    ],
)
def test_base_uri_follows_trusted_proxies(api: Api, headers: dict[str, str], base: str) -> None:
    answer = api.client.post(f"/consumers/{api.group()}", json={"name": "x"}, headers=headers)
    assert answer.json()["base_uri"].startswith(f"{base}/consumers/")


@pytest.mark.parametrize("host", ["evil.example", "evil.example/x?", "a.example, evil.example"])
def test_a_trusted_proxy_may_name_served_hosts_only(api: Api, host: str) -> None:
    for headers in ({"x-forwarded-host": host}, {"forwarded": ", ".join(f"host={name}" for name in host.split(", "))}):
        answer = api.client.post(f"/consumers/{api.group()}", json={"name": "x"}, headers=headers)
        assert error_of(answer) == (421, 421)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"unknown": 1}, (422, 422)),
        ({"format": "xml"}, (422, 42204)),
        ({"auto.offset.reset": "sometimes"}, (422, 42204)),
        ({"auto.commit.enable": "perhaps"}, (422, 42204)),
        ({"isolation.level": 3}, (422, 42204)),
        ({"consumer.request.timeout.ms": -5}, (422, 42204)),
        ({"fetch.min.bytes": 0}, (422, 40001)),
        ({"fetch.min.bytes": 10_000_001}, (422, 40001)),
        ({"name": "a\nb"}, (422, 42204)),
        ([], (422, 42204)),
    ],
)
def test_create_rejects_unknown_fields_and_values(api: Api, config: object, expected: tuple[int, int]) -> None:
    answer = api.client.post(f"/consumers/{api.group()}", json=config, headers={"content-type": V2})
    assert error_of(answer) == expected


def test_enable_auto_commit_is_an_alias(api: Api) -> None:
    """The Strimzi Kafka Bridge uses this name."""
    topic, group = api.topic(), api.group()
    api.produce(topic, 1)
    created = api.client.post(
        f"/consumers/{group}",
        json={"format": "json", "enable.auto.commit": False, "auto.offset.reset": "earliest"},
        headers={"content-type": V2},
    )
    assert created.status_code == 200
    refused = api.client.post(
        f"/consumers/{group}", json={"enable.auto.commit": "perhaps"}, headers={"content-type": V2}
    )
    assert error_of(refused) == (422, 42204)
    assert "enable.auto.commit" in refused.json()["message"]


def test_create_rejects_bodies_that_are_not_json(api: Api) -> None:
    path = f"/consumers/{api.group()}"
    assert error_of(api.client.post(path, content=b"{", headers={"content-type": V2})) == (400, 400)
    assert error_of(api.client.post(path, content=b"{}", headers={"content-type": "text/plain"})) == (415, 415)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "", None),
        ("POST", "/subscription", {"topics": ["a"]}),
        ("GET", "/subscription", None),
        ("DELETE", "/subscription", None),
        ("POST", "/assignments", {"partitions": []}),
        ("GET", "/assignments", None),
        ("GET", "/records", None),
        ("POST", "/offsets", None),
        ("GET", "/offsets", {"partitions": []}),
        ("POST", "/positions", {"offsets": [{"topic": "a", "partition": 0, "offset": 0}]}),
        ("POST", "/positions/beginning", {"partitions": []}),
        ("POST", "/positions/end", {"partitions": []}),
    ],
)
def test_an_unknown_instance_is_40403(api: Api, method: str, path: str, body: object) -> None:
    answer = api.client.request(method, f"/consumers/none/instances/none{path}", json=body)
    assert error_of(answer) == (404, 40403)


def test_accept_must_match_the_format(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1)
    instance = api.instance().subscribe(topic)
    for accept in (BINARY, TEXT, V2):
        assert error_of(instance.ask("GET", "/records", headers={"accept": accept})) == (406, 40601)
    assert error_of(instance.ask("GET", "/records", headers={"accept": "text/html"})) == (406, 406)
    answer = instance.ask("GET", "/records?timeout=5000", headers={"accept": "text/html, */*;q=0.1"})
    assert answer.headers["content-type"] == JSON
    assert [row["value"] for row in answer.json()] == [1]


def test_keys_and_values_can_have_different_formats(api: Api) -> None:
    topic = api.topic()
    api.produce_rows(topic, [{"key": b64(b"k"), "value": b64(b'{"a":1}')}], BINARY)
    instance = api.instance(key_format="text", value_format="json").subscribe(topic)
    assert [(row["key"], row["value"]) for row in instance.read(1)] == [("k", {"a": 1})]


def test_subscriptions_are_returned_replaced_and_deleted(api: Api) -> None:
    first, second = sorted([api.topic(), api.topic()])
    instance = api.instance()
    assert instance.ask("GET", "/subscription").json() == {"topics": []}
    instance.subscribe(first)
    instance.subscribe(second, first)
    assert instance.ask("GET", "/subscription").json() == {"topics": [first, second]}
    instance.do("DELETE", "/subscription")
    assert instance.ask("GET", "/subscription").json() == {"topics": []}
    assert error_of(instance.poll()) == (409, 40903)


def test_topics_patterns_and_partitions_are_mutually_exclusive(api: Api) -> None:
    topic = api.topic()
    both = {"topics": [topic], "topic_pattern": ".*"}
    instance = api.instance()
    assert error_of(instance.ask("POST", "/subscription", both)) == (409, 40903)
    instance.subscribe(topic)
    assert error_of(instance.ask("POST", "/subscription", {"topic_pattern": "x.*"})) == (409, 40903)
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    assert error_of(instance.ask("POST", "/assignments", partitions)) == (409, 40903)
    assigned = api.instance().assign(topic, 0)
    assert error_of(assigned.ask("POST", "/subscription", {"topics": [topic]})) == (409, 40903)


@pytest.mark.parametrize("body", [{}, {"topics": []}, {"topics": "a"}, {"topics": ["a b"]}, {"topic_pattern": 3}])
def test_an_invalid_subscription_is_422(api: Api, body: object) -> None:
    assert error_of(api.instance().ask("POST", "/subscription", body)) == (422, 422)


def test_a_pattern_matches_whole_names_and_new_topics(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, "matched")
    instance = api.instance()
    instance.do("POST", "/subscription", {"topic_pattern": topic[:-1] + "."})
    assert [row["value"] for row in instance.read(1)] == ["matched"]
    assert instance.ask("GET", "/subscription").json() == {"topics": [topic]}
    prefix = api.instance()
    prefix.do("POST", "/subscription", {"topic_pattern": topic[:-1]})
    assert prefix.ask("GET", "/subscription").json() == {"topics": []}
    assert prefix.poll("timeout=0").json() == []
    assert error_of(api.instance().ask("POST", "/subscription", {"topic_pattern": "("})) == (400, 400)


def test_an_assignment_reads_only_its_partitions(api: Api) -> None:
    topic = api.topic(partitions=3)
    for partition in range(3):
        api.produce(topic, partition, partition=partition)
    instance = api.instance().assign(topic, 2, 0)
    expected = [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 2}]
    assert instance.ask("GET", "/assignments").json() == {"partitions": expected}
    assert sorted(row["partition"] for row in instance.read(2)) == [0, 2]
    missing = {"partitions": [{"topic": topic, "partition": 9}]}
    assert error_of(instance.ask("POST", "/assignments", missing)) == (404, 40402)


def test_a_commit_names_the_last_consumed_record(any_api: Api) -> None:
    topic = any_api.topic()
    any_api.produce(topic, *range(5))
    group = any_api.group()
    instance = any_api.instance(group, auto_commit_enable="false").subscribe(topic)
    instance.read(5)
    assert instance.committed(topic) is None
    row = {"topic": topic, "partition": 0, "offset": 1, "metadata": "half"}
    instance.do("POST", "/offsets", {"offsets": [row]})
    kept = instance.ask("GET", f"/offsets?topic={topic}&partition=0").json()["offsets"]
    assert kept == [{"topic": topic, "partition": 0, "offset": 2, "metadata": "half"}]
    instance.delete()
    following = any_api.instance(group, auto_commit_enable="false").subscribe(topic)
    assert [row["offset"] for row in following.read(3)] == [2, 3, 4]
    following.do("POST", "/offsets")
    assert following.committed(topic) == 5


def test_a_commit_of_an_unassigned_partition_is_rejected(api: Api) -> None:
    topic = api.topic()
    instance = api.instance().assign(topic, 0)
    body = {"offsets": [{"topic": topic, "partition": 7, "offset": 1}]}
    assert error_of(instance.ask("POST", "/offsets", body)) == (409, 40903)
    assert error_of(instance.ask("POST", "/offsets", {"offsets": [{"topic": topic}]})) == (422, 422)
    assert error_of(instance.ask("GET", "/offsets")) == (404, 40402)


def test_only_delivered_records_are_committed(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, *range(10))
    instance = api.instance(auto_commit_enable=False).subscribe(topic)
    assert len(instance.read(1, "timeout=1000&max_bytes=1")) == 1
    instance.do("POST", "/offsets")
    assert instance.committed(topic) == 1


def test_auto_commit_commits_a_response_with_the_next_request(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1, 2)
    group = api.group()
    instance = api.instance(group).subscribe(topic)
    instance.read(2)
    instance.delete()
    following = api.instance(group).subscribe(topic)
    assert following.poll("timeout=1500").json() == []
    assert following.committed(topic) == 2


def test_positions_are_set_by_offset_timestamp_beginning_and_end(any_api: Api) -> None:
    topic = any_api.topic()
    any_api.produce_rows(topic, [{"value": i, "timestamp": 1_700_000_000_000 + i * 1000} for i in range(5)])
    instance = any_api.instance().assign(topic, 0)
    assert len(instance.read(5)) == 5
    place = {"topic": topic, "partition": 0}
    instance.do("POST", "/positions", {"offsets": [{**place, "offset": 3}]})
    assert [row["value"] for row in instance.read(2)] == [3, 4]
    instance.do("POST", "/positions", {"timestamps": [{**place, "timestamp": "2023-11-14T22:13:22Z"}]})
    assert [row["value"] for row in instance.read(3)] == [2, 3, 4]
    instance.do("POST", "/positions/beginning", {"partitions": [place]})
    assert [row["value"] for row in instance.read(5)] == [0, 1, 2, 3, 4]
    instance.do("POST", "/positions/beginning", {"partitions": [place]})
    instance.do("POST", "/positions/end", {"partitions": [place]})
    assert instance.poll("timeout=200").json() == []
    elsewhere = {"offsets": [{"topic": topic, "partition": 5, "offset": 0}]}
    assert error_of(instance.ask("POST", "/positions", elsewhere)) == (409, 40903)
    assert error_of(instance.ask("POST", "/positions", {})) == (422, 422)


def test_a_limit_below_one_record_returns_one_record(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, "a" * 1000, "b" * 1000, "c" * 1000)
    instance = api.instance().subscribe(topic)
    rows = [instance.read(1, "timeout=2000&max_bytes=10") for _ in range(3)]
    assert [[row["value"][0] for row in answer] for answer in rows] == [["a"], ["b"], ["c"]]


def test_a_long_poll_returns_with_the_first_record(api: Api) -> None:
    topic = api.topic()
    instance = api.instance(consumer_request_timeout_ms=50_000).assign(topic, 0)
    instance.poll("timeout=10")
    timer = threading.Timer(0.3, api.produce, (topic, "woke"))
    timer.start()
    # If the poll waited for its full timeout, the test client would time out.
    answer = instance.poll("timeout=50000")
    timer.join()
    assert [row["value"] for row in answer.json()] == ["woke"]


def test_a_lost_response_can_be_replayed(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1, 2)
    instance = api.instance().assign(topic, 0)
    lost = instance.poll("timeout=5000&replay=0")
    again = instance.poll("replay=0")
    assert again.content == lost.content
    token = again.headers["x-headgate-replay"]
    assert instance.poll("replay=last").content == lost.content
    assert instance.poll(f"timeout=100&replay={token}").json() == []
    api.produce(topic, 3)
    assert [row["value"] for row in instance.poll(f"timeout=5000&replay={token}").json()] == [3]
    assert error_of(instance.poll("replay=0")) == (409, 40903)


def test_static_members_and_isolation_levels_are_accepted(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1)
    instance = api.instance(group_instance_id="pod-0", isolation_level="read_committed").subscribe(topic)
    assert [row["value"] for row in instance.read(1)] == [1]


def test_two_instances_of_a_group_share_its_partitions(api: Api) -> None:
    topic = api.topic(partitions=2)
    group = api.group()
    first, second = (api.instance(group).subscribe(topic) for _ in range(2))
    for _ in range(50):
        first.poll("timeout=100")
        second.poll("timeout=100")
        shares = [instance.ask("GET", "/assignments").json()["partitions"] for instance in (first, second)]
        if [len(share) for share in shares] == [1, 1]:
            break
    assert [len(share) for share in shares] == [1, 1]
    api.produce(topic, 0, partition=0)
    api.produce(topic, 1, partition=1)
    rows = first.read(1) + second.read(1)
    assert sorted(row["value"] for row in rows) == [0, 1]


def test_a_missing_topic_gives_an_empty_response(api: Api) -> None:
    instance = api.instance().subscribe(f"absent-{api.group()}")
    assert instance.poll("timeout=300").json() == []


@pytest.mark.parametrize("query", ["timeout=x", "max_bytes=1e3", "on_poison=maybe", "timeout=99999999999999999999"])
def test_invalid_parameters_are_400(api: Api, query: str) -> None:
    assert error_of(api.instance().poll(query)) == (400, 400)


def test_a_subscription_to_a_missing_topic_does_not_create_it(api: Api) -> None:
    missing = f"missing-{secrets.token_hex(4)}"
    instance = api.instance().subscribe(missing)
    assert instance.poll("timeout=500").json() == []
    assert missing not in api.client.get("/topics").json()
    instance.delete()
