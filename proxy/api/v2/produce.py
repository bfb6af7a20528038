"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: records in, offsets out.

The format stands in the media type: `application/vnd.kafka.json.v2+json` and its kin. A record that a broker refuses is
reported in its own row; a request that cannot be understood is refused as a whole before anything is written.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson

from proxy.api.answers import V2_JSON, Receive, Scope
from proxy.api.body import parse_json, read_body
from proxy.errors import BadRequest, InvalidBatch, ProxyError, UnsupportedMedia, fault_of
from proxy.formats import SCHEMALESS, Encode, Format
from proxy.producers.sender import Delivered, OutgoingRecord, Ticket
from proxy.services import Services

_MEDIA_TYPES: Final[Mapping[str, Format]] = {
    "application/vnd.kafka.binary.v2+json": Format.BINARY,
    "application/vnd.kafka.v2+json": Format.BINARY,
    "application/vnd.kafka.json.v2+json": Format.JSON,
    "application/vnd.kafka.text.v2+json": Format.STRING,
    "application/json": Format.BINARY,
    "": Format.BINARY,
}


class ProduceV2:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def answer(self, scope: Scope, receive: Receive, topic: str, partition: int | None) -> tuple[bytes, str]:
        """(body, media type). Raises ProxyError."""
        encode = SCHEMALESS[_format_of(scope)]
        settings = self._services.settings
        body = parse_json(await read_body(receive, settings.request_body_bytes_max))
        rows = body.get("records") if isinstance(body, dict) else None
        if not isinstance(rows, list):
            raise BadRequest('The body must be an object with an array "records".')
        if len(rows) > settings.records_per_request_max:
            raise InvalidBatch(f"{len(rows)} records in one request are over {settings.records_per_request_max}.")
        records = [_record(row, index, encode, partition) for index, row in enumerate(rows)]
        tickets = await self._services.sender.place(topic, records)
        offsets = await _offsets(tickets)
        return orjson.dumps({"offsets": offsets, "key_schema_id": None, "value_schema_id": None}), V2_JSON


def _format_of(scope: Scope) -> Format:
    for name, value in scope["headers"]:
        if name == b"content-type":
            media = value.decode("latin-1").partition(";")[0].strip().lower()
            found = _MEDIA_TYPES.get(media)
            if found is None:
                raise UnsupportedMedia
            return found
    return Format.BINARY


def _record(row: Any, index: int, encode: Encode, partition: int | None) -> OutgoingRecord:
    if not isinstance(row, dict):
        raise BadRequest(f"records[{index}] must be an object.")
    key, value = row.get("key"), row.get("value")
    own = row.get("partition")
    if own is not None and not (isinstance(own, int) and own >= 0):
        raise BadRequest(f"records[{index}].partition must be a whole number.")
    return OutgoingRecord(
        None if key is None else encode(key),
        None if value is None else encode(value),
        partition if partition is not None else own,
    )


async def _offsets(tickets: list[Ticket]) -> list[dict[str, object]]:
    if len(tickets) == 1:
        return [await _row(tickets[0])]
    await asyncio.wait({ticket.batch for ticket in tickets})
    return [await _row(ticket) for ticket in tickets]


async def _row(ticket: Ticket) -> dict[str, object]:
    try:
        delivered: Delivered = await ticket.delivered()
    except ProxyError as error:
        return {"partition": None, "offset": None, "error_code": fault_of(error).error_code, "error": str(error)}
    return {"partition": delivered.partition, "offset": delivered.offset, "error_code": None, "error": None}
