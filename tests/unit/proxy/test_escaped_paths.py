"""Percent-encoded names in paths: an encoded slash belongs to the name, and everything is decoded once."""

import asyncio
from urllib.parse import quote

import pytest
from starlette.requests import HTTPConnection
from starlette.routing import Match, Route

from headgate.kafka_client.errors import ResourceNotFound
from headgate.proxy.api.escaped_paths import restore_slashes, unescape_path

ROUTE = Route("/groups/{group}/members/{member}", endpoint=lambda _: None)
NAMES = ["plain", "a/b", "/", "//", "100%", "%2F", "%252f", "two words", "müller", "a+b", "a?b#c", "\ufffd", "🦊/🦊"]


def parameters(raw_path: str) -> dict[str, str] | None:
    """Return the path parameters of the route, or None if the path does not match."""
    scope = unescape_path({"type": "http", "method": "GET", "raw_path": raw_path.encode(), "path": "not looked at"})
    match, found = ROUTE.matches(scope)
    if match is not Match.FULL:
        return None
    connection = HTTPConnection({**scope, **found})
    asyncio.run(restore_slashes(connection))
    return dict(connection.path_params)


@pytest.mark.parametrize("name", NAMES)
def test_a_route_gets_the_decoded_name(name: str) -> None:
    path = f"/groups/{quote(name, safe='')}/members/{quote(name[::-1], safe='')}"
    assert parameters(path) == {"group": name, "member": name[::-1]}


def test_an_encoded_slash_does_not_split_a_name() -> None:
    assert parameters("/groups/a%2Fmembers%2fb") is None
    assert parameters("/groups%2Fa/members/b") is None
    assert parameters("/groups/a%2Fmembers/members/b") == {"group": "a/members", "member": "b"}


@pytest.mark.parametrize("written", ["100%", "%zz", "%2"])
def test_a_percent_sign_without_hex_digits_is_literal(written: str) -> None:
    assert parameters(f"/groups/{written}/members/b") == {"group": written, "member": "b"}


@pytest.mark.parametrize("written", ["%ff", "a%2F%C3", "%ed%b0%af"])
def test_names_that_are_not_utf_8_are_not_found(written: str) -> None:
    with pytest.raises(ResourceNotFound, match="not valid UTF-8"):
        parameters(f"/groups/{written}/members/b")
