"""WebSockets, compressed bodies, rate limits."""

import gzip
import json
from pathlib import Path

import httpx
import pytest
import zstandard
from websockets.sync.client import connect

from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import JSON_V2, World
from tests.live.headgate_proxy import HeadgateProxy


def test_a_websocket_accepts_records_and_sends_reports(any_world: World) -> None:
    topic = any_world.topic()
    url = any_world.proxy.url.replace("http", "ws") + any_world.v3(topic, "records:produce")
    with connect(url) as socket:
        for number in range(3):
            socket.send(json.dumps({"value": {"type": "JSON", "data": number}}))
            assert json.loads(socket.recv(30))["offset"] == number
        socket.send(b'{"value":{"type":"JSON","data":3}} {"value":{"type":"BINARY","data":"%"}}')
        assert [json.loads(socket.recv(30))["error_code"] for _ in range(2)] == [200, 400]
    assert any_world.values(topic, 4) == [b"0", b"1", b"2", b"3"]


def test_a_websocket_that_sends_invalid_json_is_closed_with_an_error(world: World) -> None:
    url = world.proxy.url.replace("http", "ws") + world.v3(world.topic(), "records:produce")
    with connect(url) as socket:
        socket.send("{")
        assert json.loads(socket.recv(30))["error_code"] == 400
        with pytest.raises(Exception, match="1007"):
            socket.recv(30)


def test_a_websocket_to_a_missing_topic_is_closed_with_an_error(world: World) -> None:
    url = world.proxy.url.replace("http", "ws") + world.v3("a%20b", "records:produce")
    with connect(url) as socket:
        assert json.loads(socket.recv(30))["error_code"] == 40401
        with pytest.raises(Exception, match="4404"):
            socket.recv(30)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_request_and_response_bodies_can_be_compressed(world: World, encoding: str) -> None:
    topic = world.topic()
    body = json.dumps({"records": [{"value": number} for number in range(200)]}).encode()
    encoded = gzip.compress(body) if encoding == "gzip" else zstandard.compress(body)
    answer = world.post(f"/topics/{topic}", encoded, content_encoding=encoding, accept_encoding=encoding)
    assert answer.status_code == 200
    assert answer.headers["content-encoding"] == encoding
    assert len(answer.json()["offsets"]) == 200
    lines = b"".join(b'{"value":{"type":"JSON","data":%d}}\n' % number for number in range(200))
    encoded = gzip.compress(lines) if encoding == "gzip" else zstandard.compress(lines)
    streamed = world.post(
        world.v3(topic), encoded, "application/json", content_encoding=encoding, accept_encoding=encoding
    )
    assert streamed.headers["content-encoding"] == encoding
    assert len(streamed.text.splitlines()) == 200
    assert len(world.values(topic, 400)) == 400


def test_the_headers_of_a_compressed_stream_are_sent_before_the_first_record(world: World) -> None:
    stream = world.stream(world.topic(), accept_encoding="gzip")
    assert stream.status() == 200
    stream.end()
    stream.close()


def test_a_response_is_not_compressed_for_other_encodings(world: World) -> None:
    answer = world.post(f"/topics/{world.topic()}", {"records": [{"value": 1}] * 100}, accept_encoding="identity")
    assert "content-encoding" not in answer.headers


def test_unknown_and_corrupt_encodings_are_rejected(world: World) -> None:
    topic = world.topic()
    assert error_of(world.post(f"/topics/{topic}", b"x", content_encoding="br"))[0] == 415
    assert error_of(world.post(f"/topics/{topic}", b"x", content_encoding="gzip, gzip"))[0] == 415
    for encoding, whole in (("gzip", gzip.compress(b"{}" * 500)), ("zstd", zstandard.compress(b"{}" * 500))):
        for body in (b"not that", whole[:-3], whole + b"more"):
            assert error_of(world.post(f"/topics/{topic}", body, content_encoding=encoding))[0] == 400, body


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_decompression_bomb_is_rejected(world: World, encoding: str) -> None:
    size = 100 * 1024 * 1024
    bomb = gzip.compress(bytes(size)) if encoding == "gzip" else zstandard.compress(bytes(size))
    answer = world.post(f"/topics/{world.topic()}", bomb, content_encoding=encoding)
    assert error_of(answer) == (413, 413)


def test_a_client_over_its_rate_gets_retry_after(world: World, tmp_path: Path) -> None:
    settings = {"rate.limit.requests.per.second": "5", "rate.limit.burst.seconds": "1"}
    proxy = HeadgateProxy(tmp_path, world.address, settings=settings)
    proxy.start()
    topic = world.topic()
    with httpx.Client(base_url=proxy.url, timeout=30) as client:
        answers = [
            client.post(f"/topics/{topic}", json={"records": [{"value": 1}]}, headers={"content-type": JSON_V2})
            for _ in range(20)
        ]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert all(answer.status_code in (200, 429) for answer in answers)
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert refused[0].json()["error_code"] == 429
    assert proxy.stop() == 0
