"""v3 produce: a stream of records with a report for each, and `records:batch`.

POST …/topics/{topic}/records takes JSON objects one after the other and answers 200 at once; reports come in the order
of the requests while more records are still read. A record that cannot be taken is reported and passed over; JSON that
cannot be understood ends the stream. Only so many records wait for brokers at a time: a client that sends faster than
they answer is not read further.
"""

import asyncio
from typing import Any, Final

import orjson

from proxy.api.answers import JSON, Receive, Send, send_answer
from proxy.api.body import parse_json, read_body
from proxy.api.json_stream import JsonSplitter
from proxy.api.record_fields import iso_time
from proxy.api.v3.record import Understood, understand
from proxy.errors import BadRequest, ProxyError, fault_of
from proxy.producers.sender import Ticket
from proxy.services import Services

# Records of one stream that wait for their acknowledgement.
records_in_flight_max: Final = 4096
# Reports are sent together while more are ready, up to so many bytes.
report_bytes_max: Final = 64 * 1024
# Confluent's limits for records:batch.
batch_entries_max: Final = 10_000
entry_id_characters_max: Final = 80

_Pending = tuple[Understood, Ticket] | ProxyError


class ProduceV3:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def stream(self, cluster_id: str, topic: str, receive: Receive, send: Send) -> None:
        """Answer a stream. Raises ProxyError only before anything was sent."""
        await self._services.identity.check(cluster_id)
        await self._services.sender.partitions(topic)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", JSON.encode())]})
        pending: asyncio.Queue[_Pending | None] = asyncio.Queue(records_in_flight_max)
        reading = asyncio.create_task(self._read(topic, receive, pending))
        try:
            await self._report(cluster_id, topic, pending, send)
        finally:
            reading.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def batch(self, cluster_id: str, topic: str, receive: Receive, send: Send) -> None:
        """`records:batch`: all entries of one body, successes and failures apart. Raises ProxyError."""
        await self._services.identity.check(cluster_id)
        body = parse_json(await read_body(receive, self._services.settings.request_body_bytes_max))
        entries = _entries(body)
        await self._services.sender.partitions(topic)
        waiting = [(entry["id"], await self._place(topic, entry)) for entry in entries]
        successes: list[dict[str, object]] = []
        failures: list[dict[str, object]] = []
        for entry_id, placed in waiting:
            report = await _report_of(cluster_id, topic, placed)
            kept = failures if report["error_code"] != 200 else successes
            kept.append({"id": entry_id, **report})
        await send_answer(send, 207, orjson.dumps({"successes": successes, "failures": failures}), JSON)

    async def _read(self, topic: str, receive: Receive, pending: "asyncio.Queue[_Pending | None]") -> None:
        splitter = JsonSplitter(self._services.settings.producer_batch_bytes_max * 2)
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                for document in splitter.feed(message.get("body", b"")):
                    await pending.put(await self._place(topic, parse_json(document)))
                if not message.get("more_body", False):
                    splitter.end()
                    break
        except ProxyError as error:
            await pending.put(error)
        await pending.put(None)

    async def _place(self, topic: str, row: Any) -> _Pending:
        try:
            understood = await understand(row, topic, self._services.schemas)
            (ticket,) = await self._services.sender.place(topic, [understood.record])
        except ProxyError as error:
            return error
        return understood, ticket

    async def _report(self, cluster_id: str, topic: str, pending: "asyncio.Queue[_Pending | None]", send: Send) -> None:
        out = bytearray()
        while True:
            placed = pending.get_nowait() if not pending.empty() else await pending.get()
            if placed is not None:
                report = await _report_of(cluster_id, topic, placed)
                out += orjson.dumps(report, option=orjson.OPT_APPEND_NEWLINE)
            if out and (placed is None or pending.empty() or len(out) > report_bytes_max):
                await send({"type": "http.response.body", "body": bytes(out), "more_body": True})
                out.clear()
            if placed is None:
                return


def _entries(body: Any) -> list[dict[str, Any]]:
    entries = body.get("entries") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not entries:
        raise BadRequest('The body must be an object with an array "entries" that is not empty.')
    if len(entries) > batch_entries_max:
        raise BadRequest(f"{len(entries)} entries are over the limit of {batch_entries_max}.")
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        entry_id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(entry_id, str) or not 1 <= len(entry_id) <= entry_id_characters_max or entry_id in seen:
            raise BadRequest(f"entries[{index}].id must be distinct text of 1 to {entry_id_characters_max} characters.")
        seen.add(entry_id)
    return entries


async def _report_of(cluster_id: str, topic: str, placed: _Pending) -> dict[str, object]:
    if isinstance(placed, ProxyError):
        return {"error_code": fault_of(placed).error_code, "message": str(placed)}
    understood, ticket = placed
    try:
        delivered = await ticket.delivered()
    except ProxyError as error:
        return {"error_code": fault_of(error).error_code, "message": str(error)}
    report: dict[str, object] = {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": delivered.partition,
        "offset": delivered.offset,
        "timestamp": iso_time(delivered.timestamp_ms),
    }
    if understood.key is not None:
        report["key"] = understood.key
    if understood.value is not None:
        report["value"] = understood.value
    return report
