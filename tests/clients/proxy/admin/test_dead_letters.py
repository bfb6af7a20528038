"""`/v3/clusters/{id}/dead-letters`."""

import base64
import time
from typing import Any

import pytest

from headgate.serdes import Poison, Reason, Record, to_dead_letter
from tests.clients.proxy.admin.conftest import Api
from tests.clients.proxy.error_responses import error_of

NOW_MS = time.time_ns() // 1_000_000


def letter(source: str, number: int, reason: Reason = Reason.TRUNCATED) -> Record:
    origin = Record(source, b"key", b"\0\0\0\0\1\xff%d" % number, (("own", b"header"),), 0, number, 1000 + number)
    poison = Poison(reason, "id: a number of more than 64 bits at 0", origin.value, 1)
    return to_dead_letter(
        origin, poison, dead_letter_topic="", application="shop", now_ms=NOW_MS - 1000 * number, is_key=False
    )


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def write(api: Api, topic: str, letters: list[Record]) -> None:
    for number, each in enumerate(letters):
        body: dict[str, Any] = {
            "partition_id": number % 2,
            "headers": [
                {"name": name, "value": base64.b64encode(value or b"").decode()} for name, value in each.headers
            ],
            "key": {"type": "BINARY", "data": base64.b64encode(each.key or b"").decode()},
            "value": {"type": "BINARY", "data": base64.b64encode(each.value or b"").decode()},
        }
        answer = api.ask("POST", f"topics/{topic}/records", body)
        assert answer.json()["error_code"] == 200, answer.text


@pytest.fixture
def topics(api: Api) -> tuple[str, str]:
    """A topic, and its dead-letter topic with two partitions."""
    topic = api.topic()
    created = api.ask("POST", "topics", {"topic_name": f"{topic}.dead", "partitions_count": 2})
    assert created.status_code == 201
    return topic, f"{topic}.dead"


def values(api: Api, topic: str) -> list[bytes]:
    rows = api.get(f"topics/{topic}/records", params={"value_format": "binary"})["data"]
    return sorted(base64.b64decode(row["value"]["data"]) for row in rows)


def test_letters_are_counted_listed_in_pages_and_shown(api: Api, topics: tuple[str, str]) -> None:
    topic, dead = topics
    reasons = [Reason.TRUNCATED, Reason.UNKNOWN_SCHEMA, Reason.TRUNCATED, Reason.TRUNCATED, Reason.TRUNCATED]
    write(api, dead, [letter(topic, number, reason) for number, reason in enumerate(reasons)])
    (row,) = [row for row in api.get("dead-letters")["data"] if row["topic_name"] == dead]
    assert row == api.get(f"dead-letters/{dead}")
    assert row["metadata"]["self"] == api.link(f"dead-letters/{dead}")
    assert (row["kind"], row["letters_count"], row["is_complete"]) == ("KafkaDeadLetterTopic", 5, True)
    assert row["counts"][0] == {"reason": "TRUNCATED", "schema_id": 1, "state": "waiting", "letters": 4}

    page = api.get(f"dead-letters/{dead}/letters", params={"page_size": 2, "reason": "truncated"})
    assert [each["source"]["offset"] for each in page["data"]] == [0, 2]
    second = api.get(page["metadata"]["next"].removeprefix(api.url))
    assert [each["source"]["offset"] for each in second["data"]] == [4, 3]
    assert second["metadata"]["next"] is None

    def offsets(**query: Any) -> list[int]:
        return [each["source"]["offset"] for each in api.get(f"dead-letters/{dead}/letters", params=query)["data"]]

    assert offsets(schema_id=2) == offsets(application="other") == offsets(state="redriven") == []
    assert offsets(since=NOW_MS - 1500, application="shop") == [0, 1]
    assert offsets(until=NOW_MS - 3500, schema_id=1, state="waiting") == [4]

    found = api.get(second["data"][0]["metadata"]["self"].removeprefix(api.url))
    assert found["advice"] == Reason.TRUNCATED.advice
    assert base64.b64decode(found["payload_base64"]) == b"\0\0\0\0\1\xff4"
    assert found["hex_dump"].splitlines()[1] == " " * 25 + "^^"


def test_letters_are_redriven_once_after_a_dry_run(api: Api, topics: tuple[str, str]) -> None:
    topic, dead = topics
    write(api, dead, [*(letter(topic, number) for number in range(4)), letter("__consumer_offsets", 4)])

    def redrive(**body: Any) -> Any:
        answer = api.ask("POST", f"dead-letters/{dead}/letters:redrive", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    dry = redrive()
    assert (dry["executed"], dry["sent"], dry["sources"], dry["refused"]) == (False, 0, {topic: 4}, 1)
    assert dry["refusals"] == [{"letter": "0:2", "cause": "the source topic __consumer_offsets is internal"}]
    assert values(api, topic) == []
    first = redrive(execute=True, letters_max=3)
    assert (first["sent"], first["next_letter"]) == (2, "1:0")
    second = redrive(execute=True, start=first["next_letter"])
    assert (second["sent"], second["next_letter"]) == (2, None)
    assert redrive(execute=True)["states"] == {"redriven": 4, "waiting": 1}
    assert values(api, topic) == [letter(topic, number).value for number in range(4)]


def test_values_are_patched(api: Api, topics: tuple[str, str]) -> None:
    topic, dead = topics
    origin = Record(topic, b"k", b'{"n":1}', (), 0, 0, 1)
    poison = Poison(Reason.INVALID_VALUE, "", None)
    write(api, dead, [to_dead_letter(origin, poison, dead_letter_topic="", application="a", now_ms=1)])
    path = f"dead-letters/{dead}/letters:redrive"
    assert error_of(api.ask("POST", path, {"patch": ".["})) == (400, 400)
    assert api.ask("POST", path, {"patch": ".n += 1", "execute": True}).json()["sent"] == 1
    assert values(api, topic) == [b'{"n": 2}']


def test_letters_are_purged_after_a_dry_run(api: Api, topics: tuple[str, str]) -> None:
    topic, dead = topics
    write(api, dead, [letter(topic, 0), letter(topic, 1)])
    path = f"dead-letters/{dead}/letters:purge"
    assert api.ask("POST", path, {}).json()["deleted"] == 2
    assert api.get(f"dead-letters/{dead}")["letters_count"] == 2
    assert api.ask("POST", path, {"execute": True}).json()["deleted"] == 2
    assert api.get(f"dead-letters/{dead}")["letters_count"] == 0


def test_wrong_requests_are_rejected(api: Api, topics: tuple[str, str]) -> None:
    _, dead = topics
    for query in ("reason=NO_SUCH", "state=lost", "since=yesterday", "page_size=1001", "page_token=x", "raeson=NULL"):
        assert error_of(api.ask("GET", f"dead-letters/{dead}/letters?{query}")) == (400, 400), query
    redrive = f"dead-letters/{dead}/letters:redrive"
    for body in (
        {"reasons": ["NO_SUCH"]},
        {"value_schema_id": 1, "value_subject": "a"},
        {"start": "x"},
        {"patch": 'import "a" as $a; .'},
        {"force": True},
    ):
        assert error_of(api.ask("POST", redrive, body)) == (400, 400), body
    assert error_of(api.ask("GET", f"dead-letters/{dead}/letters/0/99")) == (404, 404)
    assert error_of(api.ask("GET", f"dead-letters/{dead}/letters/7/0")) == (404, 404)
    for method, path in (("GET", ""), ("GET", "/letters"), ("POST", "/letters:redrive"), ("POST", "/letters:purge")):
        assert error_of(api.ask(method, f"dead-letters/no-such{path}", {} if method == "POST" else None)) == (
            404,
            40401,
        )
    for path in ("letters:redrive", "letters:purge"):
        assert error_of(api.ask("POST", f"dead-letters/__consumer_offsets/{path}", {})) == (403, 40301)
