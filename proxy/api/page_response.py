"""A response of bounded size whose client may be too slow for its memory."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headgate.proxy.reading.memory import Share, TooSlow

PIECE_BYTES: Final = 256 * 1024
"""Handed to the socket at once. The server does not wait for the last piece, so that a body in one piece stays in the
socket's buffer after the response is complete."""


class PageResponse(Response):
    """Holds the memory of `share` until the client has taken the body, then releases it."""

    def __init__(self, content: bytes, share: Share, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._share = share
        share.resize(len(content))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            body = memoryview(self.body)
            for at in range(0, max(len(body), 1), PIECE_BYTES):
                is_last = at + PIECE_BYTES >= len(body)
                async with self._share.sending():
                    piece = bytes(body[at : at + PIECE_BYTES])
                    await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
        except TooSlow:
            return  # The server closes the connection: the body is shorter than its Content-Length.
        finally:
            self._share.resize(0)
