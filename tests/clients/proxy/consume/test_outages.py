"""Unavailable and restarted brokers: error codes, and streams that continue after a restart."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.clients.proxy.consume.api import NDJSON, V2, Api, objects
from tests.clients.proxy.error_responses import error_of
from tests.conftest import BROKER_SETTINGS
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.ports import free_port


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A proxy whose broker does not exist."""
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), f"127.0.0.1:{free_port()}")
    proxy.start()
    yield proxy.url
    assert proxy.stop() == 0


def test_without_a_broker_reads_are_503(nowhere: str) -> None:
    headers = {"content-type": V2}
    for path in ("/v3/clusters/c/topics/t/records", "/topics/t/partitions/0/records"):
        assert error_of(httpx.get(f"{nowhere}{path}", timeout=30)) == (503, 50302)
    created = httpx.post(f"{nowhere}/consumers/g", json={"name": "c"}, headers=headers, timeout=30)
    uri = created.json()["base_uri"]
    for path, body in (
        ("/subscription", {"topics": ["t"]}),
        ("/subscription", {"topic_pattern": "t.*"}),
        ("/assignments", {"partitions": [{"topic": "t", "partition": 0}]}),
    ):
        assert error_of(httpx.post(f"{uri}{path}", json=body, headers=headers, timeout=30)) == (503, 50302)
    group = f"{nowhere}/v3/clusters/c/consumer-groups/g/records?topics=t"
    assert error_of(httpx.get(group, headers={"accept": NDJSON}, timeout=30)) == (503, 50302)
    assert httpx.delete(uri, timeout=30).status_code == 204


def test_a_stream_continues_after_a_restart_of_the_broker(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path / "broker", BROKER_SETTINGS)
    broker.start()
    proxy = HeadgateProxy(tmp_path / "proxy", broker.address, settings={"stream.heartbeat.ms": "300"})
    proxy.start()
    api = Api(proxy.url, broker.address, "")
    topic = api.topic()
    api.produce(topic, "before")
    instance = api.instance().subscribe(topic)
    assert [row["value"] for row in instance.read(1)] == ["before"]
    group = f"consumer-groups/{api.group()}/records?topics={topic}"
    with api.stream(f"topics/{topic}/records?follow=true&from=earliest") as plain, api.stream(group) as grouped:
        rows, group_rows = objects(plain), (row for row in objects(grouped) if "ack" in row)
        assert next(rows)["value"]["data"] == next(group_rows)["value"]["data"] == "before"
        broker.stop()
        assert error_of(api.records(topic)) == (503, 50302)
        assert error_of(instance.poll("timeout=500")) == (503, 50302)
        broker.start()
        api.produce(topic, "after")
        assert next(rows)["value"]["data"] == "after"
        assert next(row for row in group_rows if row["offset"] == 1)["value"]["data"] == "after"
    rows_again = instance.read(1)
    assert rows_again[-1]["value"] == "after"
    api.client.close()
    proxy.stop()
    broker.stop()


def test_a_hanging_broker_is_reported_in_time_and_streams_continue(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path / "broker", BROKER_SETTINGS)
    broker.start()
    settings = {"stream.heartbeat.ms": "300", "kafka.request.timeout.ms": "1500"}
    proxy = HeadgateProxy(tmp_path / "proxy", broker.address, settings=settings)
    proxy.start()
    api = Api(proxy.url, broker.address, "")
    topic = api.topic()
    api.produce(topic, "before")
    instance = api.instance().subscribe(topic)
    assert [row["value"] for row in instance.read(1)] == ["before"]
    assert broker.process is not None
    with api.stream(f"topics/{topic}/records?follow=true&from=earliest") as plain:
        rows = objects(plain)
        assert next(rows)["value"]["data"] == "before"
        os.kill(broker.process.pid, signal.SIGSTOP)
        try:
            assert error_of(api.records(topic)) in ((503, 50302), (500, 50003))
            # Either no record has arrived yet, or the proxy already knows that the broker does not respond.
            polled = instance.poll("timeout=500")
            assert polled.json() == [] if polled.status_code == 200 else error_of(polled) == (503, 50302)
        finally:
            os.kill(broker.process.pid, signal.SIGCONT)
        api.produce(topic, "after")
        assert next(rows)["value"]["data"] == "after"
    assert [row["value"] for row in instance.read(1)][-1] == "after"
    api.client.close()
    assert proxy.stop() == 0
    broker.stop()
