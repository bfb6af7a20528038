"""Hostile bodies, paths and clients: no response is a server error."""

import json
import random
import socket
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

SETTINGS = {"request.body.bytes.max": "2000000", "request.body.timeout.ms": "1500"}
V2 = "application/vnd.kafka.json.v2+json"
SEED = 6


@pytest.fixture(scope="module")
def proxy(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateProxy]:
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address, settings=SETTINGS)
    proxy.start()
    yield proxy
    assert proxy.stop() == 0
    assert proxy.process is not None
    assert "Traceback" not in proxy.process.tail()


@pytest.fixture(scope="module")
def client(proxy: HeadgateProxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def paths(client: httpx.Client) -> list[str]:
    cluster_id = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
    base = f"/v3/clusters/{cluster_id}/topics/hostile"
    return ["/topics/hostile", "/topics/hostile/partitions/0", f"{base}/records", f"{base}/records:batch"]


def check(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error_code", "message"}


def deep(levels: int) -> bytes:
    return b'{"records":[{"value":' + b"[" * levels + b"]" * levels + b"}]}"


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"records"',
        b"{}{}",
        b'{"records":NaN}',
        b'{"records":[{"value":1e99999}]}',
        b'{"records":[{"value":' + b"9" * 5000 + b"}]}",
        b'{"records":[{"value":"\\ud800"}]}',
        b'{"records":[{"value":"\xed\xa0\x80"}]}',
        b'{"records":[null]}',
        b'{"records":[{"headers":[[]]}]}',
        b'{"records":[{"key":1,"timestamp":-1}]}',
        b'{"records":[{"key":1,"timestamp":9223372036854775807}]}',
        b'{"records":[{"key":1,"partition":2147483648}]}',
        b'{"records":[{"value":1}],"key_schema":{"a":[' + b"{" * 300,
        deep(150),
        deep(253),
        deep(500),
        deep(1010),
        deep(100_000),
        b'{"entries":[{"id":"\\u0000"}]}',
        b'{"value":{"type":["JSON"],"data":1}}',
        b'{"value":{"type":"JSON","data":' + b"[" * 300 + b"]" * 300 + b"}}",
        b'{"value":{"schema_id":99999999999,"data":1}}',
        b'{"value":{"schema":{},"type":"AVRO","data":1}}',
    ],
)
def test_invalid_bodies_get_client_errors(client: httpx.Client, paths: list[str], body: bytes) -> None:
    for path in paths:
        media = "application/json" if path.startswith("/v3") else V2
        check(client.post(path, content=body, headers={"content-type": media}))


@pytest.mark.parametrize("schema", [b"1.5", b'{"type": 1.5}', b"[" * 300 + b"]" * 300, b'{"a": 1' + b"0" * 30 + b"}"])
def test_a_schema_that_is_no_string_gets_no_server_error(client: httpx.Client, schema: bytes) -> None:
    # The large integer selects the parser that keeps the text of numbers.
    body = b'{"value_schema": %b, "records": [{"value": 7691599591328424394752}]}' % schema
    answer = client.post(
        "/topics/hostile", content=body, headers={"content-type": "application/vnd.kafka.avro.v2+json"}
    )
    check(answer)
    assert answer.status_code in (408, 422), answer.text


def test_a_body_over_the_limit_is_rejected_with_and_without_content_length(client: httpx.Client) -> None:
    body = b" " * 2_000_001
    said = client.post("/topics/hostile", content=body, headers={"content-type": V2})
    assert said.status_code == 413
    unsaid = client.post("/topics/hostile", content=iter([body]), headers={"content-type": V2})
    assert unsaid.status_code == 413


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    [
        "key",
        "value",
        "partition",
        "timestamp",
        "headers",
        "type",
        "data",
        "schema",
        "schema_id",
        "partition_id",
        "subject",
    ]
)
shaped = st.dictionaries(fields, st.dictionaries(fields, json_values, max_size=3) | json_values, max_size=4)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(shaped | json_values, max_size=3), extra=st.dictionaries(fields, json_values, max_size=2))
def test_generated_records_get_no_server_error(
    client: httpx.Client, paths: list[str], rows: list[object], extra: dict[str, object]
) -> None:
    v2, _, stream, batch = paths
    body = json.dumps({"records": rows, **extra})
    check(client.post(v2, content=body, headers={"content-type": V2}))
    entries = [{"id": str(number), **row} if isinstance(row, dict) else row for number, row in enumerate(rows)]
    check(client.post(batch, content=json.dumps({"entries": entries}), headers={"content-type": "application/json"}))
    lines = "\n".join(json.dumps(row) for row in rows) or "{}"
    answer = client.post(stream, content=lines, headers={"content-type": "application/json"})
    check(answer)
    for line in answer.content.splitlines():
        assert json.loads(line)["error_code"] < 50000, line


def test_mutated_bodies_get_no_server_error(client: httpx.Client, paths: list[str]) -> None:
    chance = random.Random(SEED)
    good = {
        paths[0]: b'{"records":[{"key":"k","value":{"a":[1,2.5,null]},"partition":0,"timestamp":5,"headers":[]}]}',
        paths[2]: b'{"key":{"type":"STRING","data":"k"},"value":{"type":"JSON","data":{"a":1}}}\n' * 3,
        paths[3]: b'{"entries":[{"id":"a","value":{"type":"BINARY","data":"AA=="}}]}',
    }
    for path, body in good.items():
        media = "application/json" if path.startswith("/v3") else V2
        for _ in range(80):
            broken = bytearray(body)
            for _ in range(chance.randint(1, 3)):
                at = chance.randrange(len(broken))
                broken[at : at + chance.randint(0, 3)] = bytes(
                    chance.choices(b'{}[]":,0e-\\\x00\xff', k=chance.randint(0, 3))
                )
            check(client.post(path, content=bytes(broken) or b" ", headers={"content-type": media}))


@pytest.mark.parametrize(
    "path",
    [
        "/topics/",
        "/topics//",
        "/topics/a/partitions/",
        "/topics/a/partitions/x",
        "/topics/a/partitions/-1",
        "/topics/a/partitions/99999999999",
        "/topics/%",
        "/topics/%zz",
        "/topics/%0d%0aX:%20y",
        "/topics/" + "a" * 5000,
        "/v3/clusters//topics//records",
        "/v3/clusters/%00/topics/%ff/records:batch",
        "/v3/clusters/x/topics/y/records:other",
    ],
)
def test_unusual_paths_get_no_server_error(proxy: HeadgateProxy, path: str) -> None:
    body = b'{"records":[{"value":1}]}'
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {V2}\r\nContent-Length: {len(body)}\r\n"
    head += "Connection: close\r\n"
    answer = _exchange(proxy, head.encode() + b"\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 4"), answer
    assert b"\nX: y" not in answer


@pytest.mark.parametrize(
    "fields",
    [
        "Content-Length: -1\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Idempotency-Key: a\x01b\r\nContent-Length: 2\r\n",
        "Content-Encoding: gzip;q=1\r\nContent-Length: 2\r\n",
        "Accept: ;;;,,,/\r\nContent-Length: 2\r\n",
        "Accept-Encoding: gzip;q=x, zstd;q=\r\nContent-Length: 2\r\n",
    ],
)
def test_unusual_headers_get_no_server_error(proxy: HeadgateProxy, fields: str) -> None:
    head = f"POST /topics/hostile HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {V2}\r\nConnection: close\r\n"
    head += f"{fields}\r\n{{}}"
    answer = _exchange(proxy, head.encode())
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer


def test_a_client_that_stops_sending_a_body_is_disconnected(proxy: HeadgateProxy) -> None:
    head = f"POST /topics/hostile HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {V2}\r\nContent-Length: 100\r\n\r\n"
    answer = _exchange(proxy, head.encode() + b'{"records":')
    assert answer.startswith(b"HTTP/1.1 408"), answer
    assert b"did not arrive" in answer
    # The timeout also applies before the first byte of the body.
    assert _exchange(proxy, head.encode()).startswith(b"HTTP/1.1 408")


def test_clients_that_disconnect_during_a_body_free_their_memory(proxy: HeadgateProxy, client: httpx.Client) -> None:
    head = f"POST /topics/leavers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {V2}\r\nContent-Length: 100\r\n\r\n"
    for _ in range(50):
        with _connection(proxy) as connection:
            connection.sendall(head.encode() + b'{"records":[{"value":1}')
    answer = client.post("/topics/leavers", content=b'{"records":[{"value":1}]}', headers={"content-type": V2})
    assert answer.json()["offsets"][0]["offset"] == 0


def _connection(proxy: HeadgateProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=20)


def _exchange(proxy: HeadgateProxy, request: bytes) -> bytes:
    """Return the response. It is empty if the server closes the connection because of an invalid request."""
    answer = b""
    with _connection(proxy) as connection:
        connection.sendall(request)
        while True:
            try:
                data = connection.recv(65536)
            except ConnectionResetError:
                return answer
            answer += data
            if not data or b"\r\n\r\n{" in answer:
                return answer


def test_internal_topics_cannot_be_written(client: httpx.Client) -> None:
    base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
    for topic in ("__headgate_idempotency", "__consumer_offsets"):
        for path, body in (
            (f"/topics/{topic}", {"records": [{"value": "aGk="}]}),
            (f"/topics/{topic}/partitions/0", {"records": [{"value": "aGk="}]}),
            (f"{base}/topics/{topic}/records", {"value": {"type": "JSON", "data": 1}}),
            (f"{base}/topics/{topic}/records:batch", {"entries": [{"id": "1", "value": {"type": "JSON", "data": 1}}]}),
        ):
            for headers in ({}, {"idempotency-key": "k"}):
                answer = client.post(path, json=body, headers=headers)
                assert (answer.status_code, answer.json()["error_code"]) == (403, 40301), answer.text
        answer = client.get(f"/topics/t/partitions/0/records?on_poison=dead_letter&dead_letter_topic={topic}")
        assert (answer.status_code, answer.json()["error_code"]) == (403, 40301), answer.text
