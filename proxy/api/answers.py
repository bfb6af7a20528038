"""Answers as bytes: plain ASGI messages for the hot path, and errors in the body that every client knows."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

from headgate.web.errors import error_body

from headgate.proxy.api.errors import error_headers, status_of
from headgate.proxy.errors import ProxyError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

V2_JSON = "application/vnd.kafka.v2+json"
JSON = "application/json"


async def send_answer(
    send: Send, status: int, body: bytes, media_type: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", media_type.encode()),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: ProxyError, media_type: str) -> None:
    fault = status_of(error)
    await send_answer(send, fault.status, error_body(fault.error_code, str(error)), media_type, error_headers(error))
