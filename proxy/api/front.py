"""The plain ASGI path in front of FastAPI: what is asked thousands of times a second, and what concerns every route.

Produce is served from here, FastAPI never hears of it. Rate limits and the encodings of bodies hold for all routes.
"""

import logging
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from headgate.web.errors import error_body

from headgate.openapi.media_types import negotiate
from headgate.proxy.api import encodings
from headgate.proxy.api.answers import JSON, V2_JSON, App, Receive, Scope, Send, send_answer, send_error
from headgate.proxy.api.body import read_body
from headgate.proxy.api.connection import abort_of
from headgate.proxy.api.escaped_paths import unescape_path
from headgate.proxy.api.rate import RateLimit, client_of
from headgate.proxy.api.v2.produce import Ordered, ProduceV2, answer_of, answer_type
from headgate.proxy.api.v3.produce import ProduceV3, batch_answer
from headgate.proxy.api.v3.produce_socket import ProduceSocket
from headgate.proxy.api.v3.record import Understood
from headgate.proxy.errors import (
    BodyTooLarge,
    NotAcceptable,
    PartitionNotFound,
    ProxyError,
    ResourceNotFound,
    TooManyRequests,
    UnsupportedMedia,
)
from headgate.proxy.producers.idempotency import Answered, parse_key
from headgate.proxy.producers.records import OutgoingRecord, Ticket
from headgate.proxy.services import Services
from headgate.web.access import Access

_log: Final = logging.getLogger(__name__)
_V2_PRODUCE: Final = re.compile(rb"/topics/([^/]+)(?:/partitions/([^/]+))?\Z")
_V3_PRODUCE: Final = re.compile(rb"/v3/clusters/([^/]+)/topics/([^/]+)/records(:batch)?\Z")
_WHOLE: Final = re.compile(rb"-?[0-9]{1,19}\Z")
PARTITION_MAX: Final = 2**31 - 1
PRODUCE_PATHS: Final = (_V2_PRODUCE, _V3_PRODUCE)
_V3_SOCKET: Final = re.compile(rb"/v3/clusters/([^/]+)/topics/([^/]+)/records:produce/?\Z")
_V3_MEDIA: Final = frozenset({b"", b"application/json", b"application/x-ndjson", b"application/octet-stream"})
# What a request may always be: connections, of which there are thousands at most, bound their sum.
small_body_bytes: Final = 64 * 1024
_REPEATED: Final = ((b"idempotency-replayed", b"true"),)


class _Fields:
    """The header fields that the front looks at."""

    __slots__ = ("accept", "accept_encoding", "encoding", "key", "length", "media")

    def __init__(self, scope: Scope) -> None:
        self.accept = self.accept_encoding = self.encoding = self.key = self.length = self.media = b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                self.media = value
            elif name == b"content-length":
                self.length = value
            elif name == b"accept":
                self.accept = self.accept + b"," + value if self.accept else value
            elif name == b"accept-encoding":
                self.accept_encoding = value
            elif name == b"content-encoding":
                self.encoding = self.encoding + b"," + value if self.encoding else value
            elif name == b"idempotency-key":
                self.key = value


class Front:
    def __init__(self, app: App, services: Services, access: Access) -> None:
        self._app = app
        self.services = services
        self._limit = RateLimit(services.settings)
        self._access = access
        self._v2 = ProduceV2(services)
        self._v3 = ProduceV3(services, self._limit)
        self._socket = ProduceSocket(services, self._limit)
        self._body_bytes_max = services.settings.request_body_bytes_max
        self._bodies_bytes_max = services.settings.request_bodies_bytes_max
        self._held_bytes = 0
        """Of bodies that are being read or worked on."""
        self._silence_seconds = services.settings.request_body_timeout_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pass(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        media_type = JSON if path.startswith(b"/v3") else V2_JSON
        refused = self._access.refusal(scope)
        if refused is not None:
            await refused.send(scope, send, media_type)
            return
        if self._access.cors.is_on:
            if await self._access.cors.answer_preflight(scope, send):
                return
            send = self._access.cors.marked(scope, send)
        fields = _Fields(scope)
        try:
            if path.endswith(b"/") and len(path) > 1:
                # A slash at the end means nothing, as in Confluent's proxy; clients put one there.
                path = path[:-1]
                scope = {**scope, "path": scope["path"].removesuffix("/"), "raw_path": path}
            if b"%" in path:
                scope = unescape_path(scope)
            if self._limit.is_on:
                client = client_of(scope)
                self._limit.take(client)
                receive = self._limit.counting(receive, client)
            if fields.encoding:
                receive = encodings.opened(receive, fields.encoding)
        except ProxyError as error:
            await send_error(send, error, media_type)
            return
        if fields.accept_encoding:
            name = encodings.wanted(fields.accept_encoding)
            if name is not None:
                send = encodings.closed(send, scope, name)
        if scope["method"] == "POST":
            match = _V2_PRODUCE.match(path)
            if match is not None:
                await self._produce_v2(match, fields, receive, send)
                return
            match = _V3_PRODUCE.match(path)
            if match is not None:
                await self._produce_v3(match, fields, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        refused = self._access.refusal(scope)
        if refused is not None:
            await refused.send(scope, send, JSON)
            return
        try:
            if b"%" in path:
                scope = unescape_path(scope)
        except ProxyError:
            await send({"type": "websocket.close"})  # Before the handshake is complete: the server answers with 403.
            return
        match = _V3_SOCKET.match(path)
        if match is not None:
            await self._socket.serve(_text(match[1]), _text(match[2]), receive, send, client_of(scope))
        else:
            await self._app(scope, receive, send)

    async def _produce_v2(self, match: re.Match[bytes], fields: _Fields, receive: Receive, send: Send) -> None:
        topic = _text(match[1])
        partition: int | None = None
        media_type, held = V2_JSON, 0
        try:
            media_type = answer_type(fields.accept)
            partition = None if match[2] is None else _partition(match[2])
            held = self._hold(fields)
            body = await read_body(receive, self._body_bytes_max, self._silence_seconds)
            if fields.key:
                answered = await self._v2_once(fields, body, topic, partition)
            else:
                ordered = await self._v2.understand(fields.media, body, topic, partition)
                answered = Answered(await self._v2.deliver(topic, ordered), False)
        except ProxyError as error:
            await send_error(send, error, media_type)
        except Exception:
            await _failed(send, topic, media_type)
        else:
            await send_answer(send, 200, answered.body, media_type, _REPEATED if answered.is_repeated else ())
        finally:
            self._held_bytes -= held

    async def _v2_once(self, fields: _Fields, body: bytes, topic: str, partition: int | None) -> Answered:
        ordered: Ordered | None = None

        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            nonlocal ordered
            ordered = await self._v2.understand(fields.media, body, topic, partition)
            return ordered.records

        async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            assert ordered is not None
            tickets = [ticket for ticket in placed if isinstance(ticket, Ticket)]
            answer = await answer_of(ordered, tickets)
            return answer, all(ticket.batch.error is None for ticket in tickets)

        request = b"%s\0%s\0%s" % (fields.media, str(partition).encode(), body)
        return await self.services.once.answer(parse_key(fields.key), "v2", topic, request, prepare, conclude)

    async def _produce_v3(
        self, match: re.Match[bytes], fields: _Fields, scope: Scope, receive: Receive, send: Send
    ) -> None:
        cluster_id, topic = _text(match[1]), _text(match[2])
        held = 0
        try:
            if fields.media.partition(b";")[0].strip().lower() not in _V3_MEDIA:
                raise UnsupportedMedia
            if fields.accept and negotiate(fields.accept.decode("latin-1"), (JSON,)) is None:
                raise NotAcceptable
            if match[3] is None:
                await self._v3.stream(
                    cluster_id,
                    topic,
                    receive,
                    send,
                    abort=abort_of(scope),
                    client=client_of(scope),
                    is_empty=fields.length == b"0",
                )
                return
            held = self._hold(fields)
            body = await read_body(receive, self._body_bytes_max, self._silence_seconds)
            if fields.key:
                answered = await self._v3_once(fields, cluster_id, topic, body)
            else:
                answered = Answered(await self._v3.batch(cluster_id, topic, body), False)
        except ProxyError as error:
            await send_error(send, error, JSON)
        except Exception:
            await _failed(send, topic, JSON)
        else:
            await send_answer(send, 207, answered.body, JSON, _REPEATED if answered.is_repeated else ())
        finally:
            self._held_bytes -= held

    async def _v3_once(self, fields: _Fields, cluster_id: str, topic: str, body: bytes) -> Answered:
        await self.services.identity.check(cluster_id)
        entries: list[tuple[str, Understood | ProxyError]] = []

        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            entries.extend(await self._v3.understand(body, topic))
            return [
                understood.record if isinstance(understood, Understood) else understood for _, understood in entries
            ]

        async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            answer = await batch_answer(cluster_id, topic, entries, placed)
            return answer, all(ticket.batch.error is None for ticket in placed if isinstance(ticket, Ticket))

        return await self.services.once.answer(parse_key(fields.key), "v3", topic, body, prepare, conclude)

    def _hold(self, fields: _Fields) -> int:
        """Room for a body, to be given back: its length, or the most it may be where that is not said."""
        wanted = self._body_bytes_max
        if fields.length and len(fields.length) < 20 and not fields.encoding:
            wanted = int(fields.length)
        if wanted > self._body_bytes_max:
            raise BodyTooLarge(f"The body of {wanted} bytes is over the limit of {self._body_bytes_max}.")
        # A small one always fits: what is bounded is the crowd of large ones.
        if wanted > small_body_bytes and self._held_bytes + wanted > self._bodies_bytes_max:
            raise TooManyRequests("Too many large requests at once; try again in a second.")
        self._held_bytes += wanted
        return wanted


def _partition(text: bytes) -> int:
    """Raises PartitionNotFound for a number that no partition has, ResourceNotFound for another text."""
    if not _WHOLE.match(text):
        raise ResourceNotFound("HTTP 404 Not Found")
    number = int(text)
    if not 0 <= number <= PARTITION_MAX:
        raise PartitionNotFound
    return number


def _text(quoted: bytes) -> str:
    return (unquote_to_bytes(quoted) if b"%" in quoted else quoted).decode()


async def _failed(send: Send, topic: str, media_type: str) -> None:
    _log.exception("produce to %s", topic)
    await send_answer(send, 500, error_body(500, "Internal Server Error"), media_type)
