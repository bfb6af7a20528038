"""Request bodies: size limit, idle timeout (with the registry's application), replay."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.registry import limits
from headgate.registry.api import create_app
from headgate.registry.api.server import open_registry
from headgate.web.request_body import BodyTooLarge, ClientDisconnected, read_body, replayed


@pytest.mark.parametrize("path", ["/subjects/s/versions", "/import"])
@pytest.mark.parametrize("first", [[], [{"type": "http.request", "body": b"{", "more_body": True}]])
def test_a_body_that_stops_arriving_is_a_request_timeout(
    path: str, first: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_SILENCE_SECONDS_MAX", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        if parts:
            return parts.pop()
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"100")]
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        await create_app(registry)({**scope, "headers": headers}, receive, send)

    parts = list(first)
    registry = open_registry(tmp_path)
    asyncio.run(ask())
    registry.store.close()
    assert sent[0]["status"] == 408
    assert dict(sent[0]["headers"])[b"connection"] == b"close"
    assert b"did not arrive" in sent[1]["body"]


def messages(*parts: bytes) -> Callable[[], Awaitable[Any]]:
    left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if left:
        left[-1]["more_body"] = False
    left.append({"type": "http.disconnect"})

    async def receive() -> Any:
        return left.pop(0)

    return receive


def test_a_body_up_to_the_limit_is_read() -> None:
    assert asyncio.run(read_body(messages(b"abc", b"", b"de"), 5, 1.0)) == b"abcde"
    assert asyncio.run(read_body(messages(b""), 5, 1.0)) == b""


@pytest.mark.parametrize("parts", [[b"abcdef"], [b"abc", b"def"], [b"abcdef", b"g"]])
@pytest.mark.parametrize("drained_bytes_max", [0, 100])
def test_a_body_over_the_limit_is_rejected(parts: list[bytes], drained_bytes_max: int) -> None:
    receive = messages(*parts)
    with pytest.raises(BodyTooLarge):
        asyncio.run(read_body(receive, 5, 1.0, drained_bytes_max=drained_bytes_max))
    if drained_bytes_max:
        assert asyncio.run(call(receive))["type"] == "http.disconnect", "the whole body was read"


def test_a_body_is_drained_up_to_a_limit() -> None:
    receive = messages(b"abcdef", b"ghijkl", b"mnopqr")
    with pytest.raises(BodyTooLarge):
        asyncio.run(read_body(receive, 5, 1.0, drained_bytes_max=8))
    assert asyncio.run(call(receive))["body"] == b"mnopqr"


def test_a_client_that_disconnects_is_reported() -> None:
    for receive in (messages(), messages(b"a", b"b")):
        with pytest.raises(ClientDisconnected):
            asyncio.run(read_until_disconnect(receive))


async def call(receive: Callable[[], Awaitable[Any]]) -> Any:
    return await receive()


async def read_until_disconnect(receive: Callable[[], Awaitable[Any]]) -> None:
    while True:
        await read_body(receive, 5, 1.0)


def test_a_replayed_body_comes_before_the_next_message() -> None:
    async def run() -> None:
        receive = replayed(b"body", messages())
        assert await receive() == {"type": "http.request", "body": b"body", "more_body": False}
        assert (await receive())["type"] == "http.disconnect"

    asyncio.run(run())
