"""v3 produce over HTTP: POST …/topics/{topic}/records as a stream, and `records:batch`."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from headgate.kafka_client.producer.records import Ticket, settled
from headgate.kafka_client.time_slicing import chunks
from headgate.openapi.media_types import JSON
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.json_stream import JsonSplitter
from headgate.proxy.api.large_body import parse_rows
from headgate.proxy.api.rate_limit import RateLimit
from headgate.proxy.api.v3.produce_stream import ProduceStream, report_of
from headgate.proxy.api.v3.record import ParsedRecord, RecordParser
from headgate.proxy.errors import InvalidBatch, InvalidPayload, ProxyError, Unprocessable
from headgate.proxy.producers.internal_topics import check_writable
from headgate.proxy.producers.report_buffer import ClientStalled
from headgate.proxy.services import Services
from headgate.web.asgi import Receive, Send

ENTRY_ID_CHARACTERS_MAX: Final = 80
_log: Final = logging.getLogger(__name__)
_BATCH_FIELDS: Final = frozenset({"entries"})
_STREAM_STARTS: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", JSON.encode()), (b"x-accel-buffering", b"no")],
}


class ProduceV3:
    def __init__(self, services: Services, limit: RateLimit) -> None:
        self._services = services
        self._limit = limit

    async def stream(
        self,
        cluster_id: str,
        topic: str,
        receive: Receive,
        send: Send,
        *,
        abort: Callable[[], None],
        client: str = "",
        is_empty: bool = False,
        native_logical: bool = False,
    ) -> None:
        """Serves a produce stream. `abort` closes the connection. Raises ProxyError before the response starts."""
        await self._services.identity.check(cluster_id)
        check_writable(topic, self._services.settings)
        await self._services.sender.check_topic(topic)
        if is_empty:
            raise InvalidPayload("Null input provided. Data is required.")
        await send(dict(_STREAM_STARTS))
        stream = ProduceStream(self._services, cluster_id, topic, self._limit, client, native_logical=native_logical)
        reading = asyncio.create_task(self._read(stream, receive))
        stopping = asyncio.create_task(stream.end_with_proxy(reading))

        async def send_piece(piece: bytes) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

        try:
            await stream.send_reports(send_piece)
        except ClientStalled as error:
            _log.warning("The connection of a produce stream to %s was ended: %s", topic, error)
            abort()
            await asyncio.sleep(0)  # Lets the server detect the closed connection before the application returns.
            return
        finally:
            reading.cancel()
            stopping.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read(self, stream: ProduceStream, receive: Receive) -> None:
        splitter = JsonSplitter(self._services.settings.producer_batch_bytes_max * 2)
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                await stream.take(splitter.feed(message.get("body", b"")))
                if not message.get("more_body", False):
                    splitter.end()
                    break
        except ProxyError as error:
            stream.fail(error)
        stream.end()

    async def parse(self, body: bytes, topic: str, native_logical: bool) -> list[tuple[str, ParsedRecord | ProxyError]]:
        """The entries of `records:batch`: a parsed record or its error. Raises ProxyError for an invalid batch."""
        check_writable(topic, self._services.settings)
        settings = self._services.settings
        parsed = await parse_rows(body, "entries", settings.producer_batch_bytes_max)
        entries = _entries(parsed, settings.produce_batch_maximum_entries)
        await self._services.sender.check_topic(topic)
        parser = RecordParser(topic, self._services.schemas, native_logical=native_logical)
        found: list[tuple[str, ParsedRecord | ProxyError]] = []
        async for _, some in chunks(entries):
            for entry in some:
                try:
                    found.append((entry["id"], await parser.parse(entry)))
                except ProxyError as error:
                    found.append((entry["id"], error))
        return found

    async def batch(self, cluster_id: str, topic: str, body: bytes, native_logical: bool) -> bytes:
        """The response body of `records:batch`, with successes and failures in two lists. Raises ProxyError."""
        await self._services.identity.check(cluster_id)
        entries = await self.parse(body, topic, native_logical)
        sender = self._services.sender
        placed: list[Ticket | ProxyError] = []
        now_ms = int(time.time() * 1000)
        for _, parsed in entries:
            if isinstance(parsed, ProxyError):
                placed.append(parsed)
                continue
            try:
                partitions = sender.known_partitions(topic)
                if partitions is None:
                    placed += await sender.place(topic, [parsed.record])
                else:
                    placed.append(sender.place_one(topic, parsed.record, partitions, now_ms))
            except ProxyError as error:
                placed.append(error)
        return await batch_response(cluster_id, topic, entries, placed)


async def batch_response(
    cluster_id: str,
    topic: str,
    entries: Sequence[tuple[str, ParsedRecord | ProxyError]],
    placed: Sequence[Ticket | ProxyError],
) -> bytes:
    await settled([ticket for ticket in placed if isinstance(ticket, Ticket)])
    successes: list[dict[str, object]] = []
    failures: list[dict[str, object]] = []
    for (entry_id, parsed), ticket in zip(entries, placed, strict=True):
        error = ticket.batch.error if isinstance(ticket, Ticket) else ticket
        if error is not None or isinstance(parsed, ProxyError) or not isinstance(ticket, Ticket):
            assert isinstance(error, ProxyError)
            failures.append({"id": entry_id, "error_code": status_of(error).error_code, "message": str(error)})
            continue
        report = report_of(cluster_id, topic, parsed, ticket)
        del report["error_code"]
        successes.append({"id": entry_id, **report})
    return orjson.dumps({"successes": successes, "failures": failures})


def _entries(body: Any, entries_max: int) -> list[dict[str, Any]]:
    if isinstance(body, dict) and not body.keys() <= _BATCH_FIELDS:
        raise Unprocessable(f"Unrecognized field: {next(name for name in body if name not in _BATCH_FIELDS)[:100]}")
    entries = body.get("entries") if isinstance(body, dict) else None
    if not isinstance(entries, list):
        raise InvalidBatch('The body must be an object with an array "entries".')
    if not entries:
        raise InvalidBatch("Empty batch")
    if len(entries) > entries_max:
        raise InvalidBatch(f"Too many entries in batch: {len(entries)}. The limit is {entries_max}.")
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        entry_id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(entry_id, str) or not 1 <= len(entry_id) <= ENTRY_ID_CHARACTERS_MAX:
            raise InvalidBatch(f"entries[{index}].id must be a string of 1 to {ENTRY_ID_CHARACTERS_MAX} characters")
        if entry_id in seen:
            raise InvalidBatch(f"Entry IDs are not distinct: {entry_id}")
        seen.add(entry_id)
    return entries
