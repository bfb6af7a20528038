"""A request with an Idempotency-Key is written once, also if it is repeated or sent to several workers."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import World
from tests.live.headgate_proxy import HeadgateProxy


def key() -> str:
    return secrets.token_hex(8)


def test_a_repeated_request_gets_the_same_response_and_writes_nothing(any_world: World) -> None:
    topic, used = any_world.topic(partitions=2), key()
    body = {"records": [{"key": "a", "value": 1}, {"key": "b", "value": 2, "partition": 1}, {"value": 3}]}
    first = any_world.post(f"/topics/{topic}", body, idempotency_key=used)
    again = any_world.post(f"/topics/{topic}", body, idempotency_key=used)
    assert first.status_code == again.status_code == 200, first.text + again.text
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = any_world.post(f"/topics/{topic}", body, idempotency_key=key())
    assert [row["error"] for row in other.json()["offsets"]] == [None] * 3
    assert other.content != first.content


def test_the_same_key_with_another_body_is_rejected(world: World) -> None:
    topic, used = world.topic(), key()
    world.post(f"/topics/{topic}", {"records": [{"value": 1}]}, idempotency_key=used)
    answer = world.post(f"/topics/{topic}", {"records": [{"value": 2}]}, idempotency_key=used)
    assert error_of(answer) == (422, 422)
    assert world.values(topic, 1) == [b"1"]


def test_a_rejected_request_can_be_corrected_with_the_same_key(world: World) -> None:
    topic, used = world.topic(), key()
    wrong = world.post(f"/topics/{topic}", {"records": [{"value": 1, "partition": 5}]}, idempotency_key=used)
    assert error_of(wrong) == (404, 40402)
    right = world.post(f"/topics/{topic}", {"records": [{"value": 1}]}, idempotency_key=used)
    assert right.status_code == 200


def test_v3_batches_are_written_once(world: World) -> None:
    topic, used = world.topic(), key()
    entries = [{"id": "a", "value": {"type": "JSON", "data": 1}}, {"id": "b", "value": {"type": "BINARY", "data": "%"}}]
    answers = [
        world.post(world.v3(topic, "records:batch"), {"entries": entries}, "application/json", idempotency_key=used)
        for _ in range(2)
    ]
    assert answers[0].status_code == answers[1].status_code == 207
    assert answers[0].content == answers[1].content
    assert world.values(topic, 1) == [b"1"]


def test_concurrent_duplicates_are_written_once(world: World) -> None:
    topic, used = world.topic(), key()
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: world.post(f"/topics/{topic}", {"records": [{"value": 1}]}, idempotency_key=used), range(8)
            )
        )
    assert {answer.content for answer in answers} == {answers[0].content}
    assert world.values(topic, 1) == [b"1"]


def test_another_worker_and_a_restarted_proxy_know_the_key(any_world: World, tmp_path: Path) -> None:
    topic, used = any_world.topic(), key()
    first = any_world.post(f"/topics/{topic}", {"records": [{"value": 1}]}, idempotency_key=used)
    proxy = HeadgateProxy(tmp_path, any_world.address)
    for _ in range(2):
        proxy.start()
        answer = httpx.post(
            f"{proxy.url}/topics/{topic}",
            content=first.request.content,
            headers={"content-type": first.request.headers["content-type"], "idempotency-key": used},
            timeout=30,
        )
        assert answer.content == first.content
        assert proxy.process is not None
        proxy.process.kill()
    assert any_world.values(topic, 1) == [b"1"]


def test_invalid_keys_are_rejected(world: World) -> None:
    topic = world.topic()
    for used in ("x" * 256, "a\tb"):
        answer = world.post(f"/topics/{topic}", {"records": [{"value": 1}]}, idempotency_key=used)
        assert error_of(answer) == (400, 400), used


def test_parallel_keys_and_clients_without_one_share_a_partition_without_loss(world: World) -> None:
    topic = world.topic()

    def post(number: int) -> list[tuple[int, bytes]]:
        values = [f"{number}-{index}" for index in range(1 + number % 3)]
        fields = {"idempotency_key": key()} if number % 3 else {}
        answer = world.post(f"/topics/{topic}", {"records": [{"value": value} for value in values]}, **fields)
        assert answer.status_code == 200, answer.text
        rows = answer.json()["offsets"]
        assert [row["error"] for row in rows] == [None] * len(values)
        return [(row["offset"], f'"{value}"'.encode()) for row, value in zip(rows, values, strict=True)]

    with ThreadPoolExecutor(12) as pool:
        acknowledged = [place for places in pool.map(post, range(60)) for place in places]
    stored = world.values(topic, len(acknowledged))
    assert sorted(acknowledged) == list(enumerate(stored))


def test_keyed_requests_that_are_too_large_use_no_memory(world: World) -> None:
    topic = world.topic(partitions=2)
    records = [{"value": "x", "partition": 1}, *({"value": "x" * 400_000, "partition": 0} for _ in range(3))]
    for _ in range(70):
        answer = world.post(f"/topics/{topic}", {"records": records}, idempotency_key=key())
        assert error_of(answer) == (422, 42206)
    world.produce(topic, {"value": 1, "partition": 1})
    assert world.values(topic, 1, partition=1) == [b"1"]
