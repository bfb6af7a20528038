"""Stateless reads: pages, lines and events."""

import json
import threading
from typing import Any
from urllib.parse import quote

import pytest

from tests.clients.proxy.consume.api import BINARY, EVENTS, JSON, NDJSON, Api, b64, events, objects
from tests.clients.proxy.error_responses import error_of


def values(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["value"]["data"] for row in rows]


@pytest.fixture(scope="module")
def numbers(headgate_consume_api: Api) -> str:
    """A topic with one partition and the values 0 to 9, with timestamps one second apart."""
    topic = headgate_consume_api.topic()
    rows = [{"key": f"k{i}", "value": {"i": i}, "timestamp": 1_700_000_000_000 + i * 1000} for i in range(10)]
    headgate_consume_api.produce_rows(topic, rows)
    return topic


def test_a_page_has_rows_and_a_link_to_the_next_page(any_api: Api) -> None:
    topic = any_api.topic()
    header = {"name": "h", "value": b64(b"1")}
    any_api.produce_rows(topic, [{"key": "k", "value": [1], "headers": [header], "timestamp": 1_700_000_000_123}])
    page = any_api.page(topic)
    assert page["kind"] == "KafkaRecordList"
    assert page["metadata"]["next"] is None
    assert page["metadata"]["positions"] == "0:1"
    assert page["data"] == [
        {
            "partition_id": 0,
            "offset": 0,
            "timestamp": "2023-11-14T22:13:20.123Z",
            "headers": [header],
            "key": {"type": "JSON", "data": "k"},
            "value": {"type": "JSON", "data": [1]},
        }
    ]


def test_links_lead_through_all_pages(any_api: Api) -> None:
    topic = any_api.topic(partitions=3)
    for partition in range(3):
        any_api.produce(topic, *range(partition * 10, partition * 10 + 4), partition=partition)
    found: list[Any] = []
    link: str | None = f"{any_api.url}{any_api.base}/topics/{topic}/records?limit=5"
    while link is not None:
        page = any_api.client.get(link).json()
        assert len(page["data"]) <= 5
        found += values(page["data"])
        link = page["metadata"]["next"]
    assert sorted(found) == [*range(4), *range(10, 14), *range(20, 24)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=earliest&limit=2", [0, 1]),
        ("from=-3", [7, 8, 9]),
        ("from=latest", []),
        ("from=-99999", [*range(10)]),
        ("offset=8", [8, 9]),
        ("offset=99", []),
        ("positions=0:9", [9]),
        ("timestamp=1700000008000", [8, 9]),
        ("timestamp=2023-11-14T22:13:28.500Z", [9]),
        ("timestamp=2033-01-01T00:00:00Z", []),
        ("max_bytes=1", [0]),
    ],
)
def test_a_read_starts_at_the_given_position(
    headgate_consume_api: Api, numbers: str, query: str, expected: object
) -> None:
    for partition in (None, 0):
        page = headgate_consume_api.page(numbers, query, partition)
        assert [row["offset"] for row in page["data"]] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.i>=8", [8, 9]),
        ("value.i<2", [0, 1]),
        ("value.i=5", [5]),
        ("value.i!=5 value.i>=4 offset<=6", [4, 6]),
        ("key:k3", [3]),
        ("k7", [7]),
        ("-value.i>1", [0, 1]),
        ("value.missing=1", []),
        ("timestamp>=2023-11-14T22:13:29Z", [9]),
        ("partition:0 offset:4", [4]),
    ],
)
def test_filters_select_rows(headgate_consume_api: Api, numbers: str, text: str, expected: object) -> None:
    page = headgate_consume_api.page(numbers, f"filter={quote(text)}")
    assert [row["offset"] for row in page["data"]] == expected


@pytest.mark.parametrize(
    "query",
    [
        "from=soon",
        "offset=-1",
        "offset=1&from=latest",
        "positions=a",
        "limit=0",
        "value_format=xml",
        "follow=true",
        "isolation_level=dirty",
        "timestamp=yesterday",
        "filter=header:x",
        "timeout=x",
        "follow=perhaps",
    ],
)
def test_invalid_parameters_are_400(headgate_consume_api: Api, numbers: str, query: str) -> None:
    assert error_of(headgate_consume_api.records(numbers, query)) == (400, 400)


def test_unknown_topics_and_partitions_are_404(api: Api, numbers: str) -> None:
    assert error_of(api.records("no-such-topic")) == (404, 40401)
    assert error_of(api.records(api.topic(), partition=7)) == (404, 40402)
    assert error_of(api.client.get("/v3/clusters/nobody/topics/x/records")) == (404, 404)
    assert error_of(api.client.get("/topics/no-such-topic/partitions/0/records")) == (404, 40401)
    assert error_of(api.records(numbers, accept="image/png")) == (406, 406)
    assert "no-such-topic" not in api.client.get("/topics").json()


def test_deleting_a_topic_ends_its_streams(any_api: Api) -> None:
    topic = any_api.topic()
    any_api.produce(topic, 1)
    with any_api.stream(f"topics/{topic}/records?follow=true&from=earliest") as answer:
        rows = objects(answer)
        next(rows)
        assert any_api.client.delete(f"{any_api.base}/topics/{topic}").status_code == 204
        end = next(rows)["end"]
        assert (end["reason"], end["error_code"]) == ("error", 40401)
    assert error_of(any_api.records(topic)) == (404, 40401)


def test_lines_contain_the_whole_topic(any_api: Api) -> None:
    topic = any_api.topic(partitions=2)
    for start in range(0, 3000, 1000):
        any_api.produce(topic, *(f"{i:0500d}" for i in range(start, start + 1000)))
    rows = any_api.lines(topic)
    assert sorted(int(value) for value in values(rows)) == [*range(3000)]
    assert all(set(row) == {"partition_id", "offset", "timestamp", "headers", "key", "value"} for row in rows)


def test_last_event_id_resumes_a_stream(any_api: Api) -> None:
    topic = any_api.topic(partitions=2)
    any_api.produce(topic, 0, 1, 2, partition=0)
    any_api.produce(topic, 3, 4, partition=1)
    found: list[Any] = []
    last = ""
    for _ in range(5):
        with any_api.stream(f"topics/{topic}/records?limit=1", EVENTS, **{"last-event-id": last}) as answer:
            assert answer.headers["content-type"].startswith(EVENTS)
            first, end = list(events(answer))
        assert end["event"] == "end"
        assert json.loads(end["data"])["reason"] == "limit"
        found += values([json.loads(first["data"])])
        last = first["id"]
    assert sorted(found) == [0, 1, 2, 3, 4]
    with any_api.stream(f"topics/{topic}/records", EVENTS, **{"last-event-id": last}) as answer:
        assert [event["event"] for event in events(answer)] == ["end"]


def test_a_long_poll_returns_with_the_first_record(api: Api) -> None:
    topic = api.topic()
    timer = threading.Timer(0.3, api.produce, (topic, "woke"))
    timer.start()
    # If the request waited for its full timeout, the test client would time out.
    page = api.page(topic, "timeout=100000")
    timer.join()
    assert values(page["data"]) == ["woke"]
    assert api.page(topic, "from=latest&timeout=50")["data"] == []


@pytest.mark.parametrize("accept", [NDJSON, EVENTS])
def test_follow_returns_new_records_and_heartbeats(any_api: Api, accept: str) -> None:
    topic = any_api.topic(partitions=2)
    any_api.produce(topic, "before")
    with any_api.stream(f"topics/{topic}/records?follow=true&limit=3", accept) as answer:
        lines = answer.iter_lines()
        next(line for line in lines if line == ("" if accept == NDJSON else ": heartbeat"))
        for value in ("a", "b", "c"):
            any_api.produce(topic, value)
        text = "\n".join(lines)
    assert "before" not in text
    assert [text.count(f'"data":"{value}"') for value in ("a", "b", "c")] == [1, 1, 1]


def test_each_of_many_readers_gets_all_records(api: Api) -> None:
    topic = api.topic()
    found: dict[int, list[Any]] = {}

    def follow(number: int) -> None:
        with api.stream(f"topics/{topic}/records?from=earliest&follow=true&limit=200") as answer:
            found[number] = values(list(objects(answer)))

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for start in range(0, 200, 20):
        api.produce(topic, *range(start, start + 20))
    for thread in threads:
        thread.join(60)
    assert found == {number: [*range(200)] for number in range(20)}


def test_the_read_of_redpanda_returns_v2_rows(any_api: Api) -> None:
    topic = any_api.topic()
    any_api.produce_rows(topic, [{"key": "k", "value": i} for i in range(3)])
    path = f"/topics/{topic}/partitions/0/records"
    answer = any_api.client.get(f"{path}?offset=1&timeout=100&max_bytes=100000", headers={"accept": JSON})
    assert answer.headers["content-type"] == JSON
    assert [(row["topic"], row["key"], row["value"], row["offset"]) for row in answer.json()] == [
        (topic, "k", 1, 1),
        (topic, "k", 2, 2),
    ]
    binary = any_api.client.get(f"{path}?offset=2&timeout=0", headers={"accept": BINARY}).json()
    assert binary[0]["value"] == b64(b"2")
    one = any_api.client.get(f"{path}?offset=0&timeout=0&max_bytes=1", headers={"accept": BINARY}).json()
    assert len(one) == 1
    assert any_api.client.get(f"{path}?offset=3&timeout=50").json() == []


def test_compressed_responses_contain_the_same_lines(api: Api, numbers: str) -> None:
    path = f"{api.base}/topics/{numbers}/records"
    for encoding in ("gzip", "identity"):
        answer = api.client.get(path, headers={"accept": NDJSON, "accept-encoding": encoding})
        assert len(answer.text.splitlines()) == 10
