"""Streamed response that ends if the client reads too slowly."""

from collections.abc import AsyncIterator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Send

from headgate.proxy.reading.memory import Share, TooSlow


class StreamResponse(StreamingResponse):
    """Omits the last chunk if the client is too slow, so that the client detects the incomplete response."""

    def __init__(
        self, content: AsyncIterator[bytes], share: Share, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._content = content
        self._share = share

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for piece in self._content:
                async with self._share.sending():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TooSlow:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
