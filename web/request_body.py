"""Request bodies: size limit, idle timeout, replay."""

import asyncio
from collections.abc import Callable

from headgate.web.asgi import Message, Receive


class BodyTooLarge(Exception):
    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size
        """Bytes received so far, at least."""


class BodyTimedOut(Exception):
    """No part of the body arrived within the idle timeout."""


class ClientDisconnected(Exception):
    """The client closed the connection before the end of the body."""


async def read_body(receive: Receive, bytes_max: int, idle_seconds_max: float, *, drained_bytes_max: int = 0) -> bytes:
    """Reads a whole body. Raises BodyTooLarge, BodyTimedOut, ClientDisconnected.

    A body over `bytes_max` is read up to `drained_bytes_max` and dropped. Many clients send the whole body before they
    read the response.
    """
    message = await _next_message(receive, idle_seconds_max)
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        if len(body) > bytes_max:
            raise BodyTooLarge(len(body))
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False) and size <= max(bytes_max, drained_bytes_max):
        message = await _next_message(receive, idle_seconds_max)
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        size += len(part)
        if size <= bytes_max:
            parts.append(part)
        else:
            parts.clear()
    if size > bytes_max:
        raise BodyTooLarge(size)
    return b"".join(parts)


async def _next_message(receive: Receive, idle_seconds_max: float) -> Message:
    try:
        async with asyncio.timeout(idle_seconds_max):
            return await receive()
    except TimeoutError:
        raise BodyTimedOut from None


def with_idle_timeout(receive: Receive, idle_seconds_max: float, timed_out: Callable[[], Exception]) -> Receive:
    """`receive` for streamed bodies. Raises `timed_out()` if no part of the body arrives for `idle_seconds_max`.

    After the end of the body there is no timeout: the application then waits for the client to disconnect.
    """
    is_complete = False

    async def receive_in_time() -> Message:
        nonlocal is_complete
        if is_complete:
            return await receive()
        try:
            message = await _next_message(receive, idle_seconds_max)
        except BodyTimedOut:
            raise timed_out() from None
        is_complete = not message.get("more_body", False)
        return message

    return receive_in_time


def replayed(body: bytes, receive: Receive) -> Receive:
    """`receive` for an application behind a component that has read `body` already."""
    is_replayed = False

    async def receive_again() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
