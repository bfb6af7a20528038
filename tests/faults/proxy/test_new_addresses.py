"""Brokers that return with other addresses. The bootstrap addresses are the only way to find them."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.ports import free_port

JSON_V2 = "application/vnd.kafka.json.v2+json"
WAIT_SECONDS_MAX = 60.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_clients_find_a_broker_that_returns_at_another_address(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path / "broker")
    broker.start()
    new_port = free_port()
    proxy = HeadgateProxy(tmp_path / "proxy", f"{broker.address},127.0.0.1:{new_port}")
    proxy.start()
    topic, new_topic = (f"moved-{secrets.token_hex(4)}" for _ in range(2))
    instance = "/consumers/group/instances/one"
    with httpx.Client(base_url=proxy.url, timeout=WAIT_SECONDS_MAX) as client:

        def is_written(name: str, value: str) -> bool:
            body, headers = {"records": [{"value": value}]}, {"content-type": JSON_V2}
            return client.post(f"/topics/{name}", json=body, headers=headers).status_code == 200

        def page() -> list[str]:
            answer = client.get(
                f"/topics/{topic}/partitions/0/records", params={"offset": 0}, headers={"accept": JSON_V2}
            )
            return [row["value"] for row in answer.json()] if answer.status_code == 200 else []

        def polled() -> list[str]:
            answer = client.get(f"{instance}/records", params={"timeout": 500}, headers={"accept": JSON_V2})
            return [row["value"] for row in answer.json()] if answer.status_code == 200 else []

        assert is_written(topic, "before")
        created = {"name": "one", "format": "json", "auto.offset.reset": "earliest"}
        assert client.post("/consumers/group", json=created).status_code == 200
        assert client.post(f"{instance}/subscription", json={"topics": [topic]}).status_code == 204
        wait_for(lambda: polled() == ["before"])
        assert page() == ["before"]

        broker.kill()
        broker.port = new_port
        broker.start()
        wait_for(lambda: is_written(new_topic, "first"))
        wait_for(lambda: is_written(topic, "after"))
        wait_for(lambda: page()[-1:] == ["after"])
        wait_for(lambda: "after" in polled())
    assert proxy.stop() == 0
    broker.stop()
