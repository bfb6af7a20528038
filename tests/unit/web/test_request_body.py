"""Idle timeout of request bodies, with the registry's application."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headgate.registry import limits
from headgate.registry.api import create_app
from headgate.registry.api.server import open_registry


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
