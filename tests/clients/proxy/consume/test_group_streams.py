"""Group streams with acknowledgements over HTTP or a WebSocket."""

import json
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.clients.proxy.consume.api import EVENTS, NDJSON, Api, events, objects
from tests.clients.proxy.error_responses import error_of

RECEIVE_SECONDS_MAX = 30


def group_path(group: str, topics: str, query: str = "") -> str:
    return f"consumer-groups/{group}/records?topics={topics}&{query}"


def take(rows: Any, count: int) -> list[dict[str, Any]]:
    """Return the next `count` records of a stream. Skips notes."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if "ack" in row:
            found.append(row)
        if len(found) == count:
            break
    return found


def test_unacknowledged_rows_are_delivered_again(any_api: Api) -> None:
    topic, group = any_api.topic(), any_api.group()
    any_api.produce(topic, *range(6))
    with any_api.stream(group_path(group, topic)) as answer:
        rows = objects(answer)
        opened = next(rows)["open"]
        assert opened["group_id"] == group
        assert opened["topics"] == [topic]
        first = take(rows, 6)
        assert [row["topic_name"] for row in first] == [topic] * 6
        told = httpx.post(opened["acks"], json={"ack": first[2]["ack"]}, timeout=30)
        assert told.json() == {"ack": first[2]["ack"], "acknowledged": 3, "unacknowledged": 3}
    with any_api.stream(group_path(group, topic)) as answer:
        again = take(objects(answer), 3)
    assert [row["offset"] for row in again] == [3, 4, 5]


def test_the_id_of_an_event_is_its_token(api: Api) -> None:
    topic, group = api.topic(), api.group()
    api.produce(topic, "a", "b")
    with api.stream(group_path(group, topic, "limit=2"), EVENTS) as answer:
        found = list(events(answer))
    assert [event.get("event") for event in found] == ["open", "assignment", None, None, "end"]
    records = [event for event in found if "event" not in event]
    assert [event["id"] for event in records] == [json.loads(event["data"])["ack"] for event in records]
    assert json.loads(found[-1]["data"]) == {"reason": "limit", "unacknowledged": 2}


def test_the_number_of_unacknowledged_rows_is_limited(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, *range(10))
    with api.stream(group_path(api.group(), topic, "max_unacked=4")) as answer:
        lines = answer.iter_lines()
        opened = json.loads(next(lines))["open"]
        seen: list[dict[str, Any]] = []
        silent = 0
        while silent < 3:
            line = next(lines)
            silent = silent + 1 if not line and seen else 0
            if line and "ack" in json.loads(line):
                seen.append(json.loads(line))
        assert len(seen) == 4
        httpx.post(opened["acks"], json={"acks": [seen[0]["ack"], seen[3]["ack"]]}, timeout=30).raise_for_status()
        following = take((json.loads(line) for line in lines if line), 4)
    assert [row["offset"] for row in following] == [4, 5, 6, 7]


@pytest.mark.parametrize("body", [{}, {"ack": "x"}, {"ack": -1}, {"acks": []}, [], {"ack": None}])
def test_invalid_acknowledgements_are_rejected(api: Api, body: object) -> None:
    topic = api.topic()
    with api.stream(group_path(api.group(), topic)) as answer:
        rows = objects(answer)
        acks = next(rows)["open"]["acks"]
        assert error_of(httpx.post(acks, json=body, timeout=30)) == (422, 422)
        assert error_of(httpx.post(acks, json={"ack": "99"}, timeout=30)) == (400, 400)


def test_an_ended_stream_rejects_acknowledgements(api: Api) -> None:
    path = f"{api.base}/consumer-groups/g/streams/0123/acks"
    assert error_of(api.client.post(path, json={"ack": "1"})) == (404, 40403)


def test_acknowledgements_check_the_cluster_id(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, 1)
    with api.stream(group_path(api.group(), topic)) as answer:
        rows = objects(answer)
        acks = next(rows)["open"]["acks"]
        (row,) = take(rows, 1)
        elsewhere = acks.replace(api.cluster_id, "elsewhere")
        assert error_of(httpx.post(elsewhere, json={"ack": row["ack"]}, timeout=30)) == (404, 404)
        assert httpx.post(acks, json={"ack": row["ack"]}, timeout=30).json()["acknowledged"] == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (400, 400)),
        ("topics=no-such-topic", (404, 40401)),
        ("topics=a%20b", (400, 400)),
        ("topics=x&max_unacked=0", (400, 400)),
        ("topics=x&auto_offset_reset=never", (400, 400)),
    ],
)
def test_group_streams_reject_invalid_parameters(api: Api, query: str, expected: tuple[int, int]) -> None:
    answer = api.client.get(f"{api.base}/consumer-groups/g/records?{query}", headers={"accept": NDJSON})
    assert error_of(answer) == expected


def socket_to(api: Api, path: str) -> ClientConnection:
    return connect(f"{api.url.replace('http', 'ws')}{api.base}/{path}")


def received(socket: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(socket.recv(RECEIVE_SECONDS_MAX))
    return found


def test_a_websocket_sends_the_same_rows_and_accepts_acknowledgements(any_api: Api) -> None:
    topic, group = any_api.topic(), any_api.group()
    any_api.produce(topic, "a", "b", "c")
    with socket_to(any_api, group_path(group, topic)) as socket:
        assert received(socket)["open"]["topics"] == [topic]
        rows = take(iter(lambda: received(socket), None), 3)
        assert [row["value"]["data"] for row in rows] == ["a", "b", "c"]
        socket.send(json.dumps({"ack": rows[1]["ack"]}))
        assert received(socket)["acked"] == {"ack": rows[1]["ack"], "acknowledged": 2, "unacknowledged": 1}
        socket.send("not JSON")
        assert received(socket)["refused"]["error_code"] == 400
    with socket_to(any_api, group_path(group, topic)) as socket:
        assert [row["value"]["data"] for row in take(iter(lambda: received(socket), None), 1)] == ["c"]


def test_a_websocket_follows_a_topic_without_a_group(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, "old")
    with socket_to(api, f"topics/{topic}/records:consume?from=earliest&limit=2") as socket:
        assert received(socket)["value"]["data"] == "old"
        api.produce(topic, "new")
        assert received(socket)["value"]["data"] == "new"
        assert received(socket)["end"] == {"reason": "limit", "positions": "0:2"}
    with socket_to(api, f"topics/{topic}/partitions/0/records:consume?from=-1&follow=false") as socket:
        assert received(socket)["value"]["data"] == "new"
        assert received(socket)["end"]["reason"] == "complete"


def test_a_websocket_to_an_unknown_topic_closes_with_an_error(api: Api) -> None:
    with socket_to(api, "topics/no-such-topic/records:consume") as socket:
        assert received(socket)["end"]["error_code"] == 40401
