"""Clients that send all their records before they read the first report."""

import json
import socket
import threading
import time

import pytest
from websockets.sync.client import connect

from tests.clients.proxy.conftest import RunningProxy
from tests.clients.proxy.produce.conftest import World, read
from tests.clients.proxy.produce.conversation import Conversation
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

RECORDS = 40_000
"""Their reports take 8 MB. The socket buffers of both sides together take less."""
RECORD = b'{"value":{"type":"STRING","data":"v"}}\n'
SMALL = {"produce.reports.bytes.max": "300000", "produce.reports.timeout.ms": "1500"}
HANG_SECONDS = 60.0


def conversation(proxy: HeadgateProxy, world: World, topic: str) -> Conversation:
    found = Conversation(proxy.url, world.v3(topic))
    found.socket.settimeout(HANG_SECONDS)
    return found


def send_all(client: Conversation, records: int) -> None:
    for _ in range(records // 1000):
        client.send(RECORD * 1000)
    client.end()


def read_response(client: Conversation) -> None:
    client.status()
    client.reports()


def log_of(proxy: HeadgateProxy) -> str:
    return (proxy.folder / "proxy.log").read_text()


def wait_for_log(proxy: HeadgateProxy, text: str) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while text not in log_of(proxy):
        assert time.monotonic() < deadline, log_of(proxy)
        time.sleep(0.05)


def test_all_records_can_be_sent_before_the_first_report_is_read(any_world: World) -> None:
    topic = any_world.topic()
    client = conversation(any_world.proxy, any_world, topic)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    send_all(client, RECORDS)
    assert client.status() == 200
    reports = client.reports()
    client.close()
    assert [report["offset"] for report in reports] == list(range(RECORDS))
    assert len(any_world.read(topic, RECORDS)) == RECORDS


def test_a_client_that_takes_no_reports_is_disconnected_at_the_limit(
    headgate_broker: HeadgateBroker, headgate_world: World, running_proxy: RunningProxy
) -> None:
    topic = headgate_world.topic()
    with running_proxy(headgate_broker.address, settings=SMALL) as proxy:
        client = conversation(proxy, headgate_world, topic)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            send_all(client, 10_000_000)
        client.close()
        wait_for_log(proxy, f"produce stream to {topic} was ended: The client took no reports for 1.5 s")
        assert "Traceback" not in log_of(proxy)
        other = conversation(proxy, headgate_world, topic)
        send_all(other, 1000)
        assert other.status() == 200
        assert len(other.reports()) == 1000
        other.close()


def test_a_client_that_takes_no_reports_after_its_last_record_is_disconnected(
    headgate_broker: HeadgateBroker, headgate_world: World, running_proxy: RunningProxy
) -> None:
    topic = headgate_world.topic()
    settings = {"produce.reports.timeout.ms": "1500"}
    with running_proxy(headgate_broker.address, settings=settings) as proxy:
        client = conversation(proxy, headgate_world, topic)
        send_all(client, RECORDS)
        wait_for_log(proxy, "was ended: The client took no reports for 1.5 s")
        with pytest.raises(OSError, match=r"reset|closed the connection"):
            read_response(client)
        client.close()
    assert len(read(headgate_world.address, topic, RECORDS)) == RECORDS


def test_a_slow_client_at_the_limit_gets_every_report(
    headgate_broker: HeadgateBroker, headgate_world: World, running_proxy: RunningProxy
) -> None:
    topic = headgate_world.topic()
    settings = {**SMALL, "produce.reports.timeout.ms": "60000"}
    with running_proxy(headgate_broker.address, settings=settings) as proxy:
        client = conversation(proxy, headgate_world, topic)
        sending = threading.Thread(target=send_all, args=(client, RECORDS))
        sending.start()
        assert client.status() == 200
        found = 0
        while (report := client.report()) is not None:
            assert report["offset"] == found
            found += 1
            if found % 4000 == 0:
                # Pause for less than the timeout, but long enough to fill all buffers.
                time.sleep(0.3)
        sending.join()
        assert found == RECORDS
        client.close()


def test_other_streams_go_on_while_one_client_takes_no_reports(
    headgate_broker: HeadgateBroker, headgate_world: World, running_proxy: RunningProxy
) -> None:
    topic = headgate_world.topic()
    settings = {**SMALL, "produce.reports.timeout.ms": "600000"}
    with running_proxy(headgate_broker.address, settings=settings) as proxy:
        stuck = conversation(proxy, headgate_world, topic)
        stuck.socket.settimeout(1.0)
        with pytest.raises(TimeoutError):
            send_all(stuck, 10_000_000)
        other = conversation(proxy, headgate_world, topic)
        for number in range(20):
            other.send(RECORD * 100)
            if number == 0:
                assert other.status() == 200
            assert all(other.report() is not None for _ in range(100))
        other.end()
        assert other.report() is None
        other.close()
        stuck.close()


def test_a_web_socket_may_send_all_records_first(headgate_world: World) -> None:
    topic = headgate_world.topic()
    url = headgate_world.proxy.url.replace("http://", "ws://")
    with connect(f"{url}{headgate_world.v3(topic, 'records:produce')}", max_queue=None) as client:
        for _ in range(10):
            client.send(RECORD * 1000)
        offsets = [json.loads(client.recv(HANG_SECONDS))["offset"] for _ in range(10_000)]
    assert offsets == list(range(10_000))
