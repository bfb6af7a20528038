"""Access check: hosts, origins and media types of requests."""

import asyncio
import json
from typing import Any

import pytest

from headgate.web.access import Access
from headgate.web.settings import AccessSettings, InvalidSetting

CLIENT = ("127.0.0.1", 50000)


def access(listen_host: str = "127.0.0.1", hosts: tuple[str, ...] = (), **settings: str) -> Access:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Access(AccessSettings.of(listen_host, given), "application/json", hosts)


def scope(*headers: tuple[str, str], kind: str = "http", version: str = "1.1", **fields: Any) -> dict[str, Any]:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": kind, "method": "POST", "http_version": version, "client": CLIENT, "headers": raw, **fields}


def status(checked: Access, *headers: tuple[str, str], **fields: Any) -> int:
    """Of the refusal; 200 where the request is let in."""
    refused = checked.refusal(scope(*headers, **fields))
    return 200 if refused is None else refused.status


LOOPBACK = ["localhost", "localhost:8082", "LocalHost:8082", "127.0.0.1:8082", "127.8.8.8", "[::1]:8082"]


@pytest.mark.parametrize(
    ("listen_host", "served", "refused"),
    [
        ("127.0.0.1", LOOPBACK, ["evil.example", "10.0.0.7:8082", "0.0.0.0", "localhost.evil.example", "[fe80::1]"]),
        ("::1", LOOPBACK, ["evil.example", "10.0.0.7"]),
        ("localhost", LOOPBACK, ["evil.example", "10.0.0.7"]),
        ("0.0.0.0", [*LOOPBACK, "10.0.0.7:8082", "[fe80::1]"], ["evil.example", "registry:8081", "127.0.0.1.evil"]),
        ("::", [*LOOPBACK, "10.0.0.7:8082"], ["evil.example"]),
        ("10.0.0.7", ["10.0.0.7", "10.0.0.7:8082", "[::ffff:10.0.0.7]"], ["localhost", "10.0.0.8", "evil.example"]),
        ("gateway", ["gateway:8082", "GATEWAY", *LOOPBACK, "10.0.0.7"], ["evil.example", "gateway.evil.example"]),
    ],
)
def test_the_listening_address_decides_which_hosts_are_served(
    listen_host: str, served: list[str], refused: list[str]
) -> None:
    checked = access(listen_host)
    for _ in range(2):  # The second time from the cache.
        assert {host: status(checked, ("Host", host)) for host in served} == dict.fromkeys(served, 200)
        assert {host: status(checked, ("Host", host)) for host in refused} == dict.fromkeys(refused, 421)


def test_allowed_hosts_are_served_with_their_port_or_any() -> None:
    checked = access(allowed_hosts="gateway.example, lb.example:8443, *.intern.example, 10.0.0.9, [fe80::1]:1")
    served = ["gateway.example", "gateway.example:1", "lb.example:8443", "a.b.intern.example:9", "10.0.0.9:5"]
    refused = ["lb.example", "lb.example:8444", "intern.example", "a.gateway.example", "evilintern.example"]
    assert {host: status(checked, ("Host", host)) for host in served} == dict.fromkeys(served, 200)
    assert {host: status(checked, ("Host", host)) for host in refused} == dict.fromkeys(refused, 421)
    assert status(access(allowed_hosts="*"), ("Host", "any.example")) == 200
    assert status(access(hosts=("worker-1", "fe80::2")), ("Host", "worker-1:8082")) == 200
    assert status(access(hosts=("worker-1", "fe80::2")), ("Host", "[fe80::2]:8082")) == 200


@pytest.mark.parametrize("name", ["https://gateway.example", "gateway.example/path", "a b", "*evil", "a:b", "a@b"])
def test_the_error_names_an_invalid_allowed_host(name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"allowed\.hosts: "):
        access(allowed_hosts=f"a.example,{name}")


def test_the_error_names_unknown_settings_and_invalid_networks() -> None:
    with pytest.raises(InvalidSetting, match=r"allowed\.host;"):
        access(allowed_host="x")
    with pytest.raises(InvalidSetting, match=r"trusted\.proxies: 'lb\.example'"):
        access(trusted_proxies="10.0.0.0/8,lb.example")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "")],
        [("Host", "localhost"), ("Host", "localhost")],
        [("Host", "user@localhost")],
        [("Host", "localhost/evil")],
        [("Host", "localhost:123456")],
        [("Host", "local host")],
        [("Host", "[::1")],
        [("Host", "é.example")],
    ],
)
def test_a_missing_repeated_or_malformed_host_is_a_bad_request(headers: list[tuple[str, str]]) -> None:
    assert status(access(), *headers) == 400
    assert status(access(), *headers, kind="websocket") == 400


def test_http_1_0_needs_no_host() -> None:
    assert status(access(), version="1.0") == 200
    assert status(access(), ("Host", "evil.example"), version="1.0") == 421


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("localhost:8082", "http://localhost:8082", 200),
        ("LOCALHOST:8082", "http://localhost:8082", 200),
        ("localhost:8082", "http://localhost:3000", 403),
        ("localhost:8082", "http://localhost", 403),
        ("localhost:8082", "http://127.0.0.1:8082", 403),
        ("localhost", "http://localhost", 200),
        ("localhost:80", "http://localhost", 200),
        ("localhost:8082", "null", 403),
        ("localhost:8082", "http://[broken", 403),
        ("localhost:8082", "http://localhost:8082/evil", 403),
        ("localhost:8082", "file://localhost:8082", 403),
        ("localhost:8082", "https://evil.example", 403),
        ("evil.example", "http://evil.example", 421),
        ("inner.example:1", "https://outer.example", 200),
        ("inner.example:1", "https://outer.example:444", 403),
        ("inner.example:1", "https://lb.example:8443", 200),
        ("outer.example", "https://outer.example", 200),
        ("localhost:8082", "https://friend.example", 200),
    ],
)
def test_an_origin_must_be_the_servers_own_or_allowed(kind: str, host: str, origin: str, expected: int) -> None:
    checked = access(
        allowed_hosts="inner.example,outer.example,lb.example:8443",
        access_control_allow_origin="https://friend.example",
    )
    assert status(checked, ("Host", host), ("Origin", origin), kind=kind) == expected


def test_hosts_are_checked_even_if_all_origins_are_allowed() -> None:
    checked = access(access_control_allow_origin="*")
    assert status(checked, ("Host", "localhost"), ("Origin", "https://evil.example")) == 200
    assert status(checked, ("Host", "evil.example"), ("Origin", "http://evil.example")) == 421


@pytest.mark.parametrize(
    ("site", "destination", "expected"),
    [
        ("same-origin", "empty", 200),
        ("none", "document", 200),
        ("cross-site", "document", 200),
        ("cross-site", "image", 403),
        ("same-site", "script", 403),
        ("cross-site", "iframe", 403),
    ],
)
def test_pages_of_other_sites_may_link_but_not_embed(site: str, destination: str, expected: int) -> None:
    headers = [("Host", "localhost"), ("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", destination)]
    assert status(access(), *headers, method="GET") == expected
    assert status(access(access_control_allow_origin="*"), *headers, method="GET") == 200


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("Content-Length", "2"), ("Content-Type", "application/json")], 200),
        ([("Content-Length", "2"), ("Content-Type", "application/vnd.kafka.json.v2+json; charset=utf-8")], 200),
        ([("Content-Length", "0")], 200),
        ([], 200),
        ([("Content-Length", "2")], 415),
        ([("Content-Length", "2"), ("Content-Type", " ")], 415),
        ([("Transfer-Encoding", "chunked")], 415),
        ([("Content-Length", "2"), ("Content-Type", "Text/Plain;charset=UTF-8")], 415),
        ([("Content-Length", "2"), ("Content-Type", "application/x-www-form-urlencoded")], 415),
        ([("Content-Length", "2"), ("Content-Type", "multipart/form-data; boundary=x")], 415),
        ([("Content-Length", "2"), ("Content-Type", "application/json, text/plain")], 415),
        ([("Content-Length", "2"), ("Content-Type", "application/json"), ("Content-Type", "text/plain")], 415),
    ],
)
def test_a_body_needs_a_media_type_that_requires_a_preflight(headers: list[tuple[str, str]], expected: int) -> None:
    assert status(access(), ("Host", "localhost"), *headers) == expected


FORWARDED = [("X-Forwarded-Host", "outer.example"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Port", "8443")]


@pytest.mark.parametrize(
    ("trusted", "client", "is_trusted"),
    [
        ("", CLIENT, False),
        ("127.0.0.1", CLIENT, True),
        ("10.0.0.0/8, 127.0.0.0/8", CLIENT, True),
        ("10.0.0.0/8", CLIENT, False),
        ("127.0.0.1", ("::ffff:127.0.0.1", 1), True),
        ("fe80::/10", ("fe80::1%eth0", 1), True),
        ("127.0.0.1", None, False),
        ("127.0.0.1", ("", 0), False),
    ],
)
def test_forwarding_headers_are_kept_from_trusted_proxies_only(trusted: str, client: Any, is_trusted: bool) -> None:
    checked = access(trusted_proxies=trusted, allowed_hosts="outer.example")
    asked = scope(("Host", "localhost"), *FORWARDED, ("Forwarded", "host=outer.example"), client=client)
    assert checked.refusal(asked) is None
    assert len(asked["headers"]) == (5 if is_trusted else 1)
    own = [("Host", "localhost"), *FORWARDED, ("Origin", "https://outer.example:8443")]
    assert status(checked, *own, client=client) == (200 if is_trusted else 403)


def test_a_rebound_name_is_rejected_behind_a_trusted_proxy() -> None:
    checked = access(trusted_proxies="127.0.0.1", allowed_hosts="outer.example")
    for name, value in (
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Host", "outer.example, evil.example"),
        ("Forwarded", 'for=1.2.3.4;host="evil.example"'),
        ("Forwarded", "host=outer.example, host=evil.example"),
    ):
        assert status(checked, ("Host", "localhost"), (name, value)) == 421


def test_a_refusal_responds_to_websocket_handshakes() -> None:
    async def sent(asked: dict[str, Any]) -> list[Any]:
        messages: list[Any] = []

        async def send(message: Any) -> None:
            messages.append(message)

        refused = access().refusal(asked)
        assert refused is not None
        await refused.send(asked, send, "application/json")
        return messages

    host = ("Host", "evil.example")
    start, body = asyncio.run(sent(scope(host)))
    assert (start["type"], start["status"]) == ("http.response.start", 421)
    told = json.loads(body["body"])
    assert told["error_code"] == 421
    assert "evil.example" in told["message"]
    assert "allowed.hosts" in told["message"]
    extensions: dict[str, Any] = {"websocket.http.response": {}}
    start, body = asyncio.run(sent(scope(host, kind="websocket", extensions=extensions)))
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 421)
    assert body["type"] == "websocket.http.response.body"
    assert asyncio.run(sent(scope(host, kind="websocket"))) == [{"type": "websocket.close"}]
