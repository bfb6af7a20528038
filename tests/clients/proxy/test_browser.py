"""A real browser reads the streams from the proxy's origin and from allowed origins, and not from others.

Only a browser can show that its EventSource accepts the events and resumes at its position. The tests also check its
same-origin policy.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.clients.proxy.consume.api import BINARY, Api, b64
from tests.conftest import unavailable
from tests.live.chromium import Chromium, ChromiumUnavailable, Page
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.ports import free_port

# The magic byte and a schema id that cannot be resolved, because these tests run without a registry.
POISON = b"\x00\x00\x00\x00\x07rest"
# The browser reconnects after three seconds, and again after three more seconds if that fails.
RETURN_SECONDS_MAX = 60.0

LISTEN = """url => {
    window.seen = []; window.opened = 0; window.ends = [];
    window.source = new EventSource(url);
    source.onopen = () => opened++;
    source.onmessage = event => seen.push([event.lastEventId, JSON.parse(event.data)]);
    source.addEventListener('end', event => ends.push(JSON.parse(event.data)));
}"""
ACKNOWLEDGE_AT_2 = """url => {
    window.said = [];
    window.socket = new WebSocket(url);
    socket.onmessage = event => {
        const row = JSON.parse(event.data);
        said.push(row);
        if (row.offset === 2) socket.send(JSON.stringify({ack: row.ack}));
    };
}"""
PRODUCE = """(url, media_type, key) => fetch(url, {
    method: 'POST',
    body: JSON.stringify({records: [{value: 'aGk='}]}),
    headers: {'content-type': media_type, 'idempotency-key': key},
}).then(answer => answer.json())"""
# Sends no Content-Type, so the browser sends no preflight request.
PRODUCE_BLOB = """(url, text) => fetch(url, {method: 'POST', mode: 'no-cors', body: new Blob([text])})
    .then(() => 'sent', () => 'refused')"""
EMBED = """url => new Promise(done => {
    const image = new Image();
    image.onload = image.onerror = () => done('asked');
    image.src = url;
})"""
READ = "url => fetch(url).then(answer => answer.json(), () => 'refused')"
OPEN_SOCKET = """url => new Promise(done => {
    const socket = new WebSocket(url);
    socket.onopen = () => { socket.close(); done('open') };
    socket.onerror = () => done('refused');
})"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium"))
    try:
        browser.start()
    except ChromiumUnavailable as error:
        unavailable(str(error))
    yield browser
    browser.stop()


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    with chromium.page() as found:
        yield found


class _Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """The URL of a page whose origin differs from that of every proxy."""
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), _Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def proxy_of(broker: HeadgateBroker, folder: Path, **settings: str) -> Iterator[tuple[HeadgateProxy, Api]]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    proxy = HeadgateProxy(folder, broker.address, settings=given)
    proxy.start()
    api = Api(proxy.url, broker.address, "")
    yield proxy, api
    api.client.close()
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""


def socket_url(api: Api) -> str:
    return f"{api.url.replace('http', 'ws')}{api.base}"


def values(page: Page) -> list[Any]:
    return [row["value"]["data"] for _, row in page.run("seen")]


def test_a_browser_resumes_a_stream_at_its_position(
    page: Page, headgate_broker: HeadgateBroker, tmp_path: Path
) -> None:
    with proxy_of(headgate_broker, tmp_path) as (proxy, api):
        topic = api.topic(partitions=2)
        api.produce_rows(topic, [{"value": number, "partition": number % 2} for number in range(4)])
        # Any response opens a page with the proxy's origin.
        page.open(f"{proxy.url}/topics")
        page.call(LISTEN, f"{api.base}/topics/{topic}/records?follow=true&from=earliest")
        page.wait_for("seen.length >= 4")
        api.produce_bytes(topic, POISON, partition=0)
        page.wait_for("seen.length >= 5")
        identity, row = page.run("seen[4]")
        assert row["poison"]["raw"] == b64(POISON)
        assert row["poison"]["schema_id"] == 7
        assert identity == "0:3,1:2"
        assert (page.run("opened"), page.run("ends")) == (1, [])

        # Kill the proxy: the browser only notices that the connection is closed.
        assert proxy.process is not None
        proxy.process.kill()
        proxy.start()
        api.produce_rows(topic, [{"value": number, "partition": number % 2} for number in range(4, 8)])
        page.wait_for("seen.length >= 9", RETURN_SECONDS_MAX)
        assert page.run("opened") == 2

        # Stop the proxy: the stream ends with a note, and the browser still reconnects.
        assert proxy.stop() == 0
        page.wait_for("ends.length === 1")
        assert page.run("ends")[0] == {"reason": "shutdown", "positions": "0:5,1:4"}
        proxy.start()
        api.produce(topic, 8, partition=0)
        page.wait_for("seen.length >= 10", RETURN_SECONDS_MAX)
        assert page.run("opened") == 3
        offsets = sorted((row["partition_id"], row["offset"]) for _, row in page.run("seen"))
        assert offsets == [(0, offset) for offset in range(6)] + [(1, offset) for offset in range(4)]
        page.run("source.close()")


def test_a_browser_reads_a_group_and_acknowledges_over_its_websocket(
    page: Page, headgate_broker: HeadgateBroker, tmp_path: Path
) -> None:
    with proxy_of(headgate_broker, tmp_path) as (proxy, api):
        topic, group = api.topic(), api.group()
        api.produce(topic, 1, 2, 3)
        page.open(f"{proxy.url}/topics")
        group_url = f"{socket_url(api)}/consumer-groups/{group}/records?topics={topic}"
        page.call(ACKNOWLEDGE_AT_2, group_url)
        page.wait_for("said.some(row => row.acked && row.acked.acknowledged === 3)")
        page.run("socket.close()")
        lags = api.client.get(f"{api.base}/consumer-groups/{group}/lags").json()["data"]
        assert [row["current_offset"] for row in lags] == [3]


def test_a_page_of_an_allowed_origin_reads_and_writes(
    page: Page, elsewhere: str, headgate_broker: HeadgateBroker, tmp_path: Path
) -> None:
    with proxy_of(headgate_broker, tmp_path, access_control_allow_origin=f"https://a.example,{elsewhere}") as (_, api):
        topic = api.topic()
        page.open(elsewhere)
        page.call(LISTEN, f"{api.url}{api.base}/topics/{topic}/records?follow=true&from=earliest")
        page.wait_for("opened === 1")
        # Both the media type and the header require a preflight request.
        sent = page.call(PRODUCE, f"{api.url}/topics/{topic}", BINARY, secrets.token_hex(8))
        assert [row["offset"] for row in sent["offsets"]] == [0]
        page.wait_for("seen.length === 1")
        assert values(page) == ["hi"]
        page.run("source.close()")
        assert page.call(READ, f"{api.url}/topics/no-such-topic")["error_code"] == 40401
        assert page.call(OPEN_SOCKET, f"{socket_url(api)}/topics/{topic}/records:consume") == "open"


def test_a_page_of_another_origin_reads_nothing(
    page: Page, elsewhere: str, headgate_broker: HeadgateBroker, tmp_path: Path
) -> None:
    with proxy_of(headgate_broker, tmp_path) as (_, api):
        topic = api.topic()
        api.produce(topic, "secret")
        page.open(elsewhere)
        page.call(LISTEN, f"{api.url}{api.base}/topics/{topic}/records?follow=true&from=earliest")
        page.wait_for("source.readyState === EventSource.CLOSED")
        assert page.run("seen") == []
        assert page.call(READ, f"{api.url}/topics") == "refused"
        assert page.call(OPEN_SOCKET, f"{socket_url(api)}/topics/{topic}/records:consume") == "refused"


def test_a_page_of_another_origin_writes_nothing(
    page: Page, elsewhere: str, headgate_broker: HeadgateBroker, tmp_path: Path
) -> None:
    registry = HeadgateRegistry(tmp_path / "registry")
    registry.start()
    with proxy_of(headgate_broker, tmp_path) as (_, api):
        topic, fresh = api.topic(), secrets.token_hex(8)
        page.open(elsewhere)
        for url, body in (
            (f"{api.url}/topics/{topic}", {"records": [{"value": "aGk="}]}),
            (f"{api.url}/topics/{fresh}", {"records": [{"value": "aGk="}]}),
            (f"{api.url}{api.base}/topics/{topic}/records", {"value": {"type": "JSON", "data": 1}}),
            (f"{api.url}{api.base}/topics", {"topic_name": fresh}),
            (f"{api.url}/consumers/{fresh}", {"name": "x"}),
            (f"{registry.url}/subjects/{fresh}/versions", {"schema": '"string"'}),
        ):
            # The browser hides every response from the page.
            assert page.call(PRODUCE_BLOB, url, json.dumps(body)) == "sent"
        assert api.client.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0
        assert fresh not in api.client.get("/topics").json()
        assert api.client.get(f"/consumers/{fresh}/instances/x/subscription").status_code == 404
        assert api.client.get(f"{registry.url}/subjects").json() == []

        # A read advances the consumer's position, so an image request must not read.
        api.produce(topic, 1)
        instance = api.instance()
        instance.assign(topic, 0)
        page.call(EMBED, f"{instance.uri}/records?timeout=2000")
        assert [row["value"] for row in instance.read(1)] == [1]
    registry.stop()
