"""Unavailable, restarted and hanging brokers and registries; a stopping proxy."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import JSON_V2, read
from tests.clients.proxy.produce.conversation import Conversation
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.ports import free_port

BACK_SECONDS_MAX = 60.0
# Short timeouts keep the tests fast.
SETTINGS = {"produce.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"}


@dataclass
class Own:
    """A broker that a test may stop or kill, and a proxy in front of it."""

    broker: HeadgateBroker
    proxy: HeadgateProxy
    client: httpx.Client

    def post(self, topic: str, value: object, **fields: str) -> httpx.Response:
        headers = {"content-type": JSON_V2, **{name.replace("_", "-"): text for name, text in fields.items()}}
        return self.client.post(
            f"/topics/{topic}", content=json.dumps({"records": [{"value": value}]}), headers=headers
        )


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    with ExitStack() as stack:
        broker = HeadgateBroker(tmp_path_factory.mktemp("broker"))
        stack.callback(broker.stop)
        broker.start()
        proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), broker.address, settings=SETTINGS)
        stack.callback(proxy.stop)
        proxy.start()
        client = stack.enter_context(httpx.Client(base_url=proxy.url, timeout=30))
        yield Own(broker, proxy, client)


def test_every_record_is_written_once_during_a_restart_of_the_broker(own: Own) -> None:
    assert own.post("restarts", 0).status_code == 200
    answers: list[httpx.Response] = []
    own.broker.kill()
    posting = threading.Thread(target=lambda: answers.append(own.post("restarts", 1)))
    posting.start()
    own.broker.start()
    posting.join()
    assert answers[0].status_code in (200, 503), answers[0].text
    after = own.post("restarts", 2)
    assert after.status_code == 200, after.text
    written = [
        message.value() for message in read(own.broker.address, "restarts", after.json()["offsets"][0]["offset"] + 1)
    ]
    assert written in ([b"0", b"1", b"2"], [b"0", b"2"])
    if answers[0].status_code == 200:
        assert len(written) == 3


def test_an_unavailable_broker_is_503_until_it_is_back(own: Own) -> None:
    assert own.post("away", 0).status_code == 200
    own.broker.stop()
    assert error_of(own.post("away", 1)) == (503, 50302)
    own.broker.start()
    deadline = time.monotonic() + BACK_SECONDS_MAX
    while (answer := own.post("away", 2)).status_code != 200:
        assert error_of(answer) == (503, 50302)
        assert time.monotonic() < deadline


def test_a_hanging_broker_is_reported_in_time_and_no_record_is_duplicated(own: Own) -> None:
    assert own.post("still", 0).status_code == 200
    assert own.broker.process is not None
    pid = own.broker.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        answer = own.post("still", 1)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert answer.status_code == 503 or answer.json()["offsets"][0]["error_code"] == 50003, answer.text
    deadline = time.monotonic() + BACK_SECONDS_MAX
    while (after := own.post("still", 2)).status_code != 200:
        assert time.monotonic() < deadline
    count = after.json()["offsets"][0]["offset"] + 1
    values = [message.value() for message in read(own.broker.address, "still", count)]
    # The record with the unknown result may be in the log, but at most once.
    assert values.count(b"1") <= 1
    assert values[0] == b"0"


def test_repeating_a_request_with_an_unknown_result_completes_it(own: Own) -> None:
    assert own.post("doubt", 0, idempotency_key="first").status_code == 200
    own.broker.kill()
    refused = own.post("doubt", 1, idempotency_key="second")
    assert refused.status_code in (500, 503), refused.text
    own.broker.start()
    deadline = time.monotonic() + BACK_SECONDS_MAX
    while (answer := own.post("doubt", 1, idempotency_key="second")).status_code != 200:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.2)
    again = own.post("doubt", 1, idempotency_key="second")
    assert again.content == answer.content
    assert [message.value() for message in read(own.broker.address, "doubt", 2)] == [b"0", b"1"]


def test_the_proxy_starts_without_broker_and_registry(tmp_path: Path) -> None:
    proxy = HeadgateProxy(tmp_path, f"127.0.0.1:{free_port()}", settings=SETTINGS)
    proxy.start()
    with httpx.Client(base_url=proxy.url, timeout=30) as client:
        body = {"records": [{"value": 1}]}
        answer = client.post("/topics/t", json=body, headers={"content-type": JSON_V2})
        assert error_of(answer) == (503, 50302)
        assert error_of(client.post("/v3/clusters/x/topics/t/records", json={})) == (503, 50302)
        answer = client.post("/topics/t", json=body, headers={"content-type": JSON_V2, "idempotency-key": "a"})
        assert error_of(answer) == (503, 50302)
    assert proxy.stop() == 0


def test_formats_without_a_schema_work_without_the_registry(own: Own) -> None:
    body = {"value_schema": '"int"', "records": [{"value": 1}]}
    answer = own.client.post("/topics/plain", json=body, headers={"content-type": "application/vnd.kafka.avro.v2+json"})
    assert error_of(answer) == (408, 40801)
    assert own.post("plain", 1).status_code == 200


def test_a_stopping_proxy_finishes_requests_and_ends_streams_with_a_report(own: Own, tmp_path: Path) -> None:
    proxy = HeadgateProxy(tmp_path, own.broker.address)
    proxy.start()
    cluster_id = httpx.get(f"{proxy.url}/v3/clusters").json()["data"][0]["cluster_id"]
    stream = Conversation(proxy.url, f"/v3/clusters/{cluster_id}/topics/stops/records")
    stream.send_record({"value": {"type": "JSON", "data": 1}})
    assert stream.status() == 200
    assert stream.report() is not None
    stopping = threading.Thread(target=proxy.stop)
    stopping.start()
    (note,) = stream.reports()
    assert note["error_code"] == 50302
    assert "shutting down" in note["message"]
    stream.close()
    stopping.join()
    assert proxy.process is not None
    assert proxy.stop() == 0, proxy.process.tail()
