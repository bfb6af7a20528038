"""Produce stream over chunked HTTP or a WebSocket: one report per record.

Reports have the order of the records, and are sent while more records are read. An invalid record gets an error report.
Invalid JSON ends the stream. The number of in-flight records is limited: at the limit the proxy stops reading. A
`ReportBuffer` holds reports for slow clients.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

import orjson

from headgate.kafka_client.errors import BufferFull
from headgate.kafka_client.producer.records import Ticket
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.rate_limit import RateLimit
from headgate.proxy.api.record_fields import iso_time
from headgate.proxy.api.v3.record import ParsedRecord, RecordParser, SchemaNotCached
from headgate.proxy.errors import ProxyError, ShuttingDown, TooManyRequests
from headgate.proxy.producers.report_buffer import ReportBuffer
from headgate.proxy.services import Services

RECORDS_IN_FLIGHT_MAX: Final = 8192
BYTES_IN_FLIGHT_MAX: Final = 8 * 1024 * 1024
"""Records of one stream that wait for an acknowledgement, and their bytes in the request."""
REPORT_BYTES_MAX: Final = 64 * 1024
"""Reports that are sent in one write."""
FULL_PAUSE_SECONDS: Final = 0.05
FULL_ATTEMPTS_MAX: Final = 200
"""Retries while the producer's buffer is full. After the last one the record fails."""

_Entry = tuple[ParsedRecord | ProxyError, Ticket | None, int]
"""A record and its ticket, or an error and None; and the bytes of the request that it used."""


class ProduceStream:
    def __init__(
        self,
        services: Services,
        cluster_id: str,
        topic: str,
        limit: RateLimit | None = None,
        client: str = "",
        *,
        native_logical: bool = False,
    ) -> None:
        self._services = services
        self._cluster_id = cluster_id
        self._topic = topic
        self._parser = RecordParser(topic, services.schemas, native_logical=native_logical)
        self._limit = limit
        self._client = client
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._ended = False
        self._something = asyncio.Event()
        self._room = asyncio.Event()

    async def take(self, documents: Iterable[tuple[Any, int]]) -> None:
        """Queues records (parsed JSON and its size). Returns when there is space for more."""
        entries, topic = self._entries, self._topic
        place, parse = self._services.sender.place_one, self._parser.parse_cached
        is_limited = self._limit is not None and self._limit.is_on
        partitions = self._services.sender.known_partitions(topic)
        now_ms = int(time.time() * 1000)
        for row, size in documents:
            entry: _Entry
            try:
                if partitions is None or is_limited:
                    entry = await self._place_later(row, size)
                else:
                    parsed = parse(row)
                    entry = (parsed, place(topic, parsed.record, partitions, now_ms), size)
            except (SchemaNotCached, BufferFull):
                entry = await self._place_later(row, size)
            except ProxyError as error:
                entry = (error, None, size)
            entries.append(entry)
            self._bytes += size
            if len(entries) >= RECORDS_IN_FLIGHT_MAX or self._bytes >= BYTES_IN_FLIGHT_MAX:
                await self._wait_for_room()
                now_ms = int(time.time() * 1000)
        self._something.set()

    def fail(self, error: ProxyError) -> None:
        """Adds a report that belongs to no record."""
        self._entries.append((error, None, 0))

    def end(self) -> None:
        self._ended = True
        self._something.set()

    async def send_reports(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send every report, in pieces that may end inside one. Raises ClientStalled."""
        settings = self._services.settings
        buffer = ReportBuffer(self._services.reports, settings.produce_reports_timeout_ms / 1000)
        filling = asyncio.create_task(self._fill(buffer))
        try:
            async for piece in buffer.pieces():
                async with buffer.sending():
                    await send(piece)
            await filling
        finally:
            filling.cancel()
            buffer.clear()

    async def _fill(self, buffer: ReportBuffer) -> None:
        try:
            async for lines in self.reports():
                await buffer.put(lines)
        finally:
            buffer.end()

    async def reports(self) -> AsyncIterator[bytes]:
        """Reports as lines of JSON, in the order of the records. Ends after `end`."""
        entries, cluster_id, topic, dumps = self._entries, self._cluster_id, self._topic, orjson.dumps
        while True:
            while not entries:
                if self._ended:
                    return
                self._something.clear()
                await self._something.wait()
            ticket = entries[0][1]
            if ticket is not None:
                await ticket.batch.wait()
            out = bytearray()
            while entries and len(out) < REPORT_BYTES_MAX:
                parsed, ticket, size = entries[0]
                if ticket is not None and not ticket.batch.is_settled:
                    break
                entries.popleft()
                self._bytes -= size
                out += dumps(report_of(cluster_id, topic, parsed, ticket), option=orjson.OPT_APPEND_NEWLINE)
            self._room.set()
            yield bytes(out)

    async def end_with_proxy(self, reading: "asyncio.Task[Any]") -> None:
        """When the proxy stops, end the stream after the reports of all records that `reading` has read."""
        await self._services.stopping.wait()
        if not reading.done():
            reading.cancel()
            self.fail(ShuttingDown("The proxy is shutting down: records after the last report were not taken."))
            self.end()

    async def _place_later(self, row: Any, size: int) -> _Entry:
        """For records that must wait for the registry, for metadata, or for buffer space."""
        self._something.set()
        error: ProxyError
        for _ in range(FULL_ATTEMPTS_MAX):
            try:
                if self._limit is not None and self._limit.is_on:
                    self._limit.take(self._client)
            except TooManyRequests as refused:
                return refused, None, size
            try:
                parsed = await self._parser.parse(row)
                (ticket,) = await self._services.sender.place(self._topic, [parsed.record])
            except BufferFull as full:
                error = full
                await asyncio.sleep(FULL_PAUSE_SECONDS)
            except ProxyError as refused:
                return refused, None, size
            else:
                return parsed, ticket, size
        return error, None, size

    async def _wait_for_room(self) -> None:
        self._something.set()
        while len(self._entries) >= RECORDS_IN_FLIGHT_MAX // 2 or self._bytes >= BYTES_IN_FLIGHT_MAX // 2:
            self._room.clear()
            await self._room.wait()


def report_of(
    cluster_id: str, topic: str, parsed: ParsedRecord | ProxyError, ticket: Ticket | None
) -> dict[str, object]:
    """The report of a record whose batch is complete, or of an error."""
    if ticket is None or isinstance(parsed, ProxyError):
        assert isinstance(parsed, ProxyError)
        return {"error_code": status_of(parsed).error_code, "message": str(parsed)}
    batch = ticket.batch
    if batch.error is not None:
        return {"error_code": status_of(batch.error).error_code, "message": str(batch.error)}
    report: dict[str, object] = {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": batch.partition,
        "offset": batch.base_offset + ticket.position if batch.base_offset >= 0 else -1,
        "timestamp": iso_time(batch.append_time_ms or ticket.timestamp_ms),
    }
    if parsed.key is not None:
        report["key"] = parsed.key
    if parsed.value is not None:
        report["value"] = parsed.value
    return report
