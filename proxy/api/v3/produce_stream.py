"""A stream of records with a report for each, whatever carries it: chunked HTTP or a WebSocket.

Reports come in the order of the records while more records are still read. A record that cannot be taken is reported
and passed over; JSON that cannot be understood ends the stream. Only so many records wait for brokers at a time: a
client that sends faster than they answer is not read further. Reports wait for slow clients in a `ReportBuffer`.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

import orjson

from headgate.proxy.api.errors import status_of
from headgate.proxy.api.rate_limit import RateLimit
from headgate.proxy.api.record_fields import iso_time
from headgate.proxy.api.v3.record import RecordReader, SchemaNeeded, Understood
from headgate.proxy.errors import ProxyError, TooManyRequests
from headgate.proxy.producers.records import Ticket
from headgate.proxy.producers.report_buffer import ReportBuffer
from headgate.proxy.services import Services

# Of one stream: records that wait for their acknowledgement, and the bytes of the requests they came in.
RECORDS_IN_FLIGHT_MAX: Final = 8192
BYTES_IN_FLIGHT_MAX: Final = 8 * 1024 * 1024
# Reports are sent together while more are ready, up to so many bytes.
REPORT_BYTES_MAX: Final = 64 * 1024
# While all streams and requests together have too much waiting, a stream looks again after so long, and gives up then.
FULL_PAUSE_SECONDS: Final = 0.05
FULL_ATTEMPTS_MAX: Final = 200

_Entry = tuple[Understood | ProxyError, Ticket | None, int]
"""A record and its ticket, or why it has none; and how many bytes of the request it was."""


class ProduceStream:
    def __init__(
        self, services: Services, cluster_id: str, topic: str, limit: RateLimit | None = None, client: str = ""
    ) -> None:
        self._services = services
        self._cluster_id = cluster_id
        self._topic = topic
        self._reader = RecordReader(topic, services.schemas)
        self._limit = limit
        self._client = client
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._ended = False
        self._something = asyncio.Event()
        self._room = asyncio.Event()

    async def take(self, documents: Iterable[tuple[Any, int]]) -> None:
        """Place records, given as parsed JSON with its size; returns when there is room for more."""
        entries, topic = self._entries, self._topic
        place, understand = self._services.sender.place_one, self._reader.understand_now
        is_limited = self._limit is not None and self._limit.is_on
        partitions = self._services.sender.known_partitions(topic)
        now_ms = int(time.time() * 1000)
        for row, size in documents:
            entry: _Entry
            try:
                if partitions is None or is_limited:
                    entry = await self._place_later(row, size)
                else:
                    understood = understand(row)
                    entry = (understood, place(topic, understood.record, partitions, now_ms), size)
            except (SchemaNeeded, TooManyRequests):
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
        """A last report that belongs to no record."""
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
        """Lines of reports, in the order of the records, as soon as they are known. Ends after `end`."""
        entries, cluster_id, topic, dumps = self._entries, self._cluster_id, self._topic, orjson.dumps
        while True:
            while not entries:
                if self._ended:
                    return
                self._something.clear()
                await self._something.wait()
            ticket = entries[0][1]
            if ticket is not None and not ticket.batch.settled.done():
                await asyncio.wait((ticket.batch.settled,))
            out = bytearray()
            while entries and len(out) < REPORT_BYTES_MAX:
                understood, ticket, size = entries[0]
                if ticket is not None and not ticket.batch.settled.done():
                    break
                entries.popleft()
                self._bytes -= size
                out += dumps(report_of(cluster_id, topic, understood, ticket), option=orjson.OPT_APPEND_NEWLINE)
            self._room.set()
            yield bytes(out)

    async def _place_later(self, row: Any, size: int) -> _Entry:
        """For records that must wait: for the registry, for metadata, or until others have been written."""
        self._something.set()
        error: ProxyError
        for _ in range(FULL_ATTEMPTS_MAX):
            try:
                if self._limit is not None and self._limit.is_on:
                    self._limit.take(self._client)
            except TooManyRequests as refused:
                return refused, None, size
            try:
                understood = await self._reader.understand(row)
                (ticket,) = await self._services.sender.place(self._topic, [understood.record])
            except TooManyRequests as full:
                error = full
                await asyncio.sleep(FULL_PAUSE_SECONDS)
            except ProxyError as refused:
                return refused, None, size
            else:
                return understood, ticket, size
        return error, None, size

    async def _wait_for_room(self) -> None:
        self._something.set()
        while len(self._entries) >= RECORDS_IN_FLIGHT_MAX // 2 or self._bytes >= BYTES_IN_FLIGHT_MAX // 2:
            self._room.clear()
            await self._room.wait()


def report_of(
    cluster_id: str, topic: str, understood: Understood | ProxyError, ticket: Ticket | None
) -> dict[str, object]:
    """For a ticket whose batch is settled, or an error that takes its place."""
    if ticket is None or isinstance(understood, ProxyError):
        assert isinstance(understood, ProxyError)
        return {"error_code": status_of(understood).error_code, "message": str(understood)}
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
    if understood.key is not None:
        report["key"] = understood.key
    if understood.value is not None:
        report["value"] = understood.value
    return report
