"""Request bodies: read whole within the limit, and understood as JSON that is not too deep."""

from typing import Any

import orjson

from proxy.api.answers import Receive
from proxy.errors import BadRequest, BodyTooLarge


async def read_body(receive: Receive, bytes_max: int) -> bytes:
    """Raises BodyTooLarge; a client that goes away in the middle is a BadRequest nobody will read."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > bytes_max:
            raise BodyTooLarge(f"The body of {len(body)} bytes is over the limit of {bytes_max}.")
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("The request was cut off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > bytes_max:
            raise BodyTooLarge(f"The body is over the limit of {bytes_max} bytes.")
    return b"".join(parts)


def parse_json(body: bytes) -> Any:
    """orjson stops at a depth of 1024 by itself, and refuses what is not JSON with line and column."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error}") from error
