"""CORS: allowed origins, preflight requests, response headers."""

import asyncio
from typing import Any

import pytest

from headgate.web.cors import Cors
from headgate.web.settings import AccessSettings


def scope(method: str = "GET", **headers: str) -> dict[str, Any]:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": "/", "scheme": "http", "server": ("x", 1), "headers": fields}


def origins(allowed: str, **more: str) -> Cors:
    return Cors(AccessSettings.of("127.0.0.1", {"access.control.allow.origin": allowed, **more}))


def preflight(of: Cors, **headers: str) -> dict[bytes, bytes] | None:
    """The headers of the answer; None where it was no preflight."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asked = {"access_control_request_method": "POST", **headers}
    if not asyncio.run(of.answer_preflight(scope("OPTIONS", **asked), send)):
        return None
    assert sent[0]["status"] == 200
    return dict(sent[0]["headers"])


def marks(of: Cors, **headers: str) -> dict[bytes, bytes]:
    """What is added to an answer."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"x")]}
        await of.marked(scope(**headers), send)(start)

    asyncio.run(answer())
    found = dict(sent[0]["headers"])
    assert found.pop(b"content-type") == b"x"
    return found


@pytest.mark.parametrize(
    ("allowed", "origin", "expected"),
    [
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "https://A.example", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "https://axexample", False),
        ("https://a.example", "https://a.example.evil.example", False),
        ("https://b.example , https://a.example", "https://a.example", True),
        ("https://*.example", "https://deep.down.example", True),
        ("https://*.example", "https://example", False),
        ("https://*.example", "https://evil.org/.example", False),
        ("https://*.example", "https://evil.org\n.example", False),
        ("https://a.example", "null", False),
        ("null", "null", True),
        ("*", "null", True),
        ("*", "https://anything.example", True),
        ("", "https://a.example", False),
    ],
)
def test_a_star_in_an_origin_matches_a_part_of_the_name(allowed: str, origin: str, expected: bool) -> None:
    assert origins(allowed).allows(origin.encode()) is expected


def test_an_allowed_origin_gets_cors_headers_and_every_response_varies_by_origin() -> None:
    few = origins("https://a.example")
    told = marks(few, origin="https://a.example")
    assert told[b"access-control-allow-origin"] == b"https://a.example"
    assert b"X-Headgate-Replay" in told[b"access-control-expose-headers"]
    assert told[b"vary"] == b"origin"
    assert marks(few, origin="https://b.example") == {b"vary": b"origin"}
    assert marks(few) == {b"vary": b"origin"}


def test_a_star_allows_all_origins_without_naming_one() -> None:
    assert marks(origins("*"), origin="https://a.example")[b"access-control-allow-origin"] == b"*"
    assert marks(origins("*")) == {}


def test_a_preflight_response_lists_methods_and_headers() -> None:
    told = preflight(origins("https://a.example"), origin="https://a.example")
    assert told is not None
    assert told[b"access-control-allow-origin"] == b"https://a.example"
    assert b"DELETE" in told[b"access-control-allow-methods"]
    assert b"Idempotency-Key" in told[b"access-control-allow-headers"]
    assert b"access-control-allow-private-network" not in told
    given = {"access.control.allow.methods": "GET,POST", "access.control.allow.headers": "X-Own"}
    told = preflight(origins("*", **given), origin="null", access_control_request_private_network="true")
    assert told is not None
    assert told[b"access-control-allow-methods"] == b"GET,POST"
    assert told[b"access-control-allow-headers"] == b"X-Own"
    assert told[b"access-control-allow-private-network"] == b"true"


def test_a_preflight_of_another_origin_gets_no_cors_headers() -> None:
    told = preflight(origins("https://a.example"), origin="https://b.example")
    assert told is not None
    assert not [name for name in told if name.startswith(b"access-control")]


def test_other_requests_are_not_preflights() -> None:
    assert preflight(origins("*")) is None
    assert preflight(origins("*"), origin="https://a.example", access_control_request_method="") is None
