"""HTTP side of produce requests: media types, body limits, idempotency keys, error responses."""

import logging
import re
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from headgate.kafka_client.errors import PartitionNotFound, ResourceNotFound
from headgate.kafka_client.producer.records import OutgoingRecord, Ticket
from headgate.openapi.media_types import JSON, KAFKA_V2, negotiate
from headgate.proxy.api.body_memory import BodyMemory
from headgate.proxy.api.errors import send_error
from headgate.proxy.api.rate_limit import RateLimit, client_of
from headgate.proxy.api.request_body import read_body
from headgate.proxy.api.request_headers import RequestHeaders
from headgate.proxy.api.v2.produce import ParsedRequest, ProduceV2, response_body, response_type
from headgate.proxy.api.v3.produce import ProduceV3, batch_response
from headgate.proxy.api.v3.record import ParsedRecord
from headgate.proxy.errors import NotAcceptable, ProxyError, UnsupportedMedia
from headgate.proxy.producers.idempotency import Answered, parse_key
from headgate.proxy.services import Services
from headgate.web import responses
from headgate.web.asgi import Receive, Scope, Send
from headgate.web.connection import abort_of
from headgate.web.errors import INTERNAL_SERVER_ERROR, REASONS

_log: Final = logging.getLogger(__name__)
_V3_MEDIA_TYPES: Final = frozenset({b"", b"application/json", b"application/x-ndjson", b"application/octet-stream"})
_REPLAYED: Final = ((b"idempotency-replayed", b"true"),)
_INTEGER: Final = re.compile(rb"-?[0-9]{1,19}\Z")
PARTITION_MAX: Final = 2**31 - 1


class ProduceEndpoint:
    def __init__(self, services: Services, limit: RateLimit) -> None:
        self._services = services
        self._v2 = ProduceV2(services)
        self._v3 = ProduceV3(services, limit)
        settings = services.settings
        self._body_bytes_max = settings.request_body_bytes_max
        self._idle_seconds_max = settings.request_body_timeout_ms / 1000
        self._bodies = BodyMemory(settings.request_body_bytes_max, settings.request_bodies_bytes_max)

    async def produce_v2(
        self, topic: str, partition: bytes | None, headers: RequestHeaders, receive: Receive, send: Send
    ) -> None:
        """`partition` is the text in the path, None if the path has none."""
        try:
            media_type = response_type(headers.accept)
        except NotAcceptable as error:
            await send_error(send, error, KAFKA_V2)
            return
        await _respond(send, 200, media_type, topic, self._produced_v2(topic, partition, headers, receive))

    async def batch_v3(
        self, cluster_id: str, topic: str, headers: RequestHeaders, receive: Receive, send: Send
    ) -> None:
        await _respond(send, 207, JSON, topic, self._produced_batch_v3(cluster_id, topic, headers, receive))

    async def stream_v3(
        self, cluster_id: str, topic: str, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            _check_media_types_v3(headers)
            await self._v3.stream(
                cluster_id,
                topic,
                receive,
                send,
                abort=abort_of(scope),
                client=client_of(scope),
                is_empty=headers.content_length == b"0",
                native_logical=self._is_native(headers),
            )
        except ProxyError as error:
            await send_error(send, error, JSON)
        except Exception:
            await _send_internal_error(send, topic, JSON)

    async def _produced_v2(
        self, topic: str, partition_text: bytes | None, headers: RequestHeaders, receive: Receive
    ) -> Answered:
        partition = None if partition_text is None else _partition(partition_text)
        reserved = self._bodies.reserve(headers)
        try:
            body = await read_body(receive, self._body_bytes_max, self._idle_seconds_max)
            if headers.idempotency_key:
                return await self._idempotent_v2(headers, body, topic, partition)
            parsed = await self._parsed_v2(headers, body, topic, partition)
            return Answered(await self._v2.deliver(topic, parsed), False)
        finally:
            self._bodies.release(reserved)

    async def _idempotent_v2(self, headers: RequestHeaders, body: bytes, topic: str, partition: int | None) -> Answered:
        parsed: ParsedRequest | None = None

        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            nonlocal parsed
            parsed = await self._parsed_v2(headers, body, topic, partition)
            return parsed.records

        async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            assert parsed is not None
            tickets = [ticket for ticket in placed if isinstance(ticket, Ticket)]
            answer = await response_body(parsed, tickets)
            return answer, all(ticket.batch.error is None for ticket in tickets)

        request = b"%s\0%s\0%s%s" % (headers.content_type, str(partition).encode(), headers.logical, body)
        key = parse_key(headers.idempotency_key)
        return await self._services.once.answer(key, "v2", topic, request, prepare, conclude)

    async def _produced_batch_v3(
        self, cluster_id: str, topic: str, headers: RequestHeaders, receive: Receive
    ) -> Answered:
        _check_media_types_v3(headers)
        reserved = self._bodies.reserve(headers)
        try:
            body = await read_body(receive, self._body_bytes_max, self._idle_seconds_max)
            if headers.idempotency_key:
                return await self._idempotent_batch_v3(headers, cluster_id, topic, body)
            return Answered(await self._v3.batch(cluster_id, topic, body, self._is_native(headers)), False)
        finally:
            self._bodies.release(reserved)

    async def _idempotent_batch_v3(self, headers: RequestHeaders, cluster_id: str, topic: str, body: bytes) -> Answered:
        await self._services.identity.check(cluster_id)
        entries: list[tuple[str, ParsedRecord | ProxyError]] = []

        async def prepare() -> Sequence[OutgoingRecord | ProxyError]:
            entries.extend(await self._v3.parse(body, topic, self._is_native(headers)))
            return [parsed.record if isinstance(parsed, ParsedRecord) else parsed for _, parsed in entries]

        async def conclude(placed: Sequence[Ticket | ProxyError]) -> tuple[bytes, bool]:
            answer = await batch_response(cluster_id, topic, entries, placed)
            return answer, all(ticket.batch.error is None for ticket in placed if isinstance(ticket, Ticket))

        key = parse_key(headers.idempotency_key)
        return await self._services.once.answer(key, "v3", topic, headers.logical + body, prepare, conclude)

    async def _parsed_v2(
        self, headers: RequestHeaders, body: bytes, topic: str, partition: int | None
    ) -> ParsedRequest:
        return await self._v2.parse(headers.content_type, body, topic, partition, self._is_native(headers))

    def _is_native(self, headers: RequestHeaders) -> bool:
        return headers.wants_native_logical(self._services.settings.logical_types)


async def _respond(
    send: Send, status: int, media_type: str, topic: str, produced: Coroutine[Any, Any, Answered]
) -> None:
    """Sends the result of `produced`, or its error."""
    try:
        answered = await produced
    except ProxyError as error:
        await send_error(send, error, media_type)
    except Exception:
        await _send_internal_error(send, topic, media_type)
    else:
        headers = _REPLAYED if answered.is_repeated else ()
        await responses.send_response(send, status, answered.body, media_type, headers)


async def _send_internal_error(send: Send, topic: str, media_type: str) -> None:
    _log.exception("Produce request for topic %s failed", topic)
    await responses.send_error(send, 500, 500, INTERNAL_SERVER_ERROR, media_type)


def _check_media_types_v3(headers: RequestHeaders) -> None:
    """Raises UnsupportedMedia, NotAcceptable."""
    if headers.content_type.partition(b";")[0].strip().lower() not in _V3_MEDIA_TYPES:
        raise UnsupportedMedia
    if headers.accept and negotiate(headers.accept.decode("latin-1"), (JSON,)) is None:
        raise NotAcceptable


def _partition(text: bytes) -> int:
    """Raises PartitionNotFound for an integer out of range, ResourceNotFound for other text."""
    if not _INTEGER.match(text):
        raise ResourceNotFound(REASONS[404])
    number = int(text)
    if not 0 <= number <= PARTITION_MAX:
        raise PartitionNotFound
    return number
