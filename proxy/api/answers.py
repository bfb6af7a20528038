"""Answers as bytes: plain ASGI messages for the hot path, and errors in the body that every client knows."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

from headgate.openapi.errors import error_body
from headgate.proxy.errors import BodyTimedOut, ProxyError, TooManyRequests, fault_of

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
    fault = fault_of(error)
    await send_answer(send, fault.status, error_body(fault.error_code, str(error)), media_type, extra_headers(error))


def extra_headers(error: ProxyError) -> list[tuple[bytes, bytes]]:
    if isinstance(error, TooManyRequests):
        return [(b"retry-after", str(error.retry_after_seconds).encode())]
    if isinstance(error, BodyTimedOut):
        return [(b"connection", b"close")]  # The rest of the body would be read as the next request.
    return []
