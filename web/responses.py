"""Responses as plain ASGI messages, for requests that FastAPI does not handle."""

from collections.abc import Sequence

from headgate.web.asgi import Message, Send
from headgate.web.errors import error_body


async def send_response(
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


async def send_error(
    send: Send,
    status: int,
    error_code: int,
    message: str,
    media_type: str,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    await send_response(send, status, error_body(error_code, message), media_type, headers)


def without_body(send: Send) -> Send:
    """`send` for HEAD requests: the headers of a GET, and an empty body."""

    async def send_headers_only(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_headers_only
