"""Response of limited size that releases its memory when the client has read it."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headgate.proxy.reading.memory import Share, TooSlow

PIECE_BYTES: Final = 256 * 1024
"""Size of one write. uvicorn does not wait for the last write, so a body in one write would stay in its buffer."""


class PageResponse(Response):
    """Holds the memory of `share` until the client has read the body."""

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
            return  # The body is shorter than its Content-Length, so the server closes the connection.
        finally:
            self._share.resize(0)
