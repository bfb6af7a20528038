"""WebSocket produce: …/topics/{topic}/records:produce, with the records and reports of v3 produce streams.

A message (text or binary) contains one or more records. Each report is one message. All reports are sent before the
proxy closes the WebSocket.
"""

import asyncio
import logging
from typing import Final

from headgate.proxy.api.errors import status_of
from headgate.proxy.api.json_stream import JsonSplitter
from headgate.proxy.api.rate_limit import RateLimit
from headgate.proxy.api.request_headers import RequestHeaders
from headgate.proxy.api.v3.produce_stream import ProduceStream
from headgate.proxy.errors import BadRequest, ProxyError
from headgate.proxy.producers.internal_topics import check_writable
from headgate.proxy.producers.report_buffer import ClientStalled
from headgate.proxy.services import Services
from headgate.web.asgi import Receive, Send

_log: Final = logging.getLogger(__name__)

# RFC 6455, section 7.4.1.
_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001
_BAD_DATA: Final = 1007
_REFUSED: Final = 4000
"""Plus the HTTP status: 4404 for an unknown topic."""


class ProduceWebSocket:
    def __init__(self, services: Services, limit: RateLimit) -> None:
        self._services = services
        self._limit = limit

    async def serve(
        self, cluster_id: str, topic: str, headers: RequestHeaders, receive: Receive, send: Send, client: str
    ) -> None:
        message = await receive()
        if message["type"] != "websocket.connect":
            return
        await send({"type": "websocket.accept"})
        try:
            await self._services.identity.check(cluster_id)
            check_writable(topic, self._services.settings)
            await self._services.sender.check_topic(topic)
            native = headers.wants_native_logical(self._services.settings.logical_types)
        except ProxyError as error:
            stream = ProduceStream(self._services, cluster_id, topic)
            stream.fail(error)
            stream.end()
            await stream.send_reports(_Messages(send).send)
            await send(
                {"type": "websocket.close", "code": _REFUSED + status_of(error).status, "reason": str(error)[:100]}
            )
            return
        stream = ProduceStream(self._services, cluster_id, topic, self._limit, client, native_logical=native)
        reading = asyncio.create_task(self._read(stream, receive))
        stopping = asyncio.create_task(stream.end_with_proxy(reading))
        messages = _Messages(send)
        try:
            await stream.send_reports(messages.send)
        except ClientStalled as error:
            _log.warning("The WebSocket of a produce stream to %s was ended: %s", topic, error)
            messages.is_gone = True
        finally:
            stopping.cancel()
            reading.cancel()
        code = reading.result() if reading.done() and not reading.cancelled() else _GOING_AWAY
        if code is not None and not messages.is_gone:
            await send({"type": "websocket.close", "code": code})

    async def _read(self, stream: ProduceStream, receive: Receive) -> int | None:
        """The close code. None if the client has closed the WebSocket."""
        limit = self._services.settings.producer_batch_bytes_max * 2
        code: int | None = _NORMAL
        try:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    code = None
                    break
                text = message.get("text")
                data: bytes = text.encode() if text is not None else message.get("bytes") or b""
                splitter = JsonSplitter(limit)
                await stream.take(splitter.feed(data))
                splitter.end()
        except (BadRequest, UnicodeEncodeError) as error:
            stream.fail(error if isinstance(error, BadRequest) else BadRequest("The message is not UTF-8."))
            code = _BAD_DATA
        stream.end()
        return code


class _Messages:
    """One message per report."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._partial = b""
        self.is_gone = False

    async def send(self, piece: bytes) -> None:
        *lines, self._partial = (self._partial + piece).split(b"\n")
        try:
            for line in () if self.is_gone else lines:
                await self._send({"type": "websocket.send", "text": line.decode()})
        except Exception:  # The exception type depends on the version of the server.
            self.is_gone = True
