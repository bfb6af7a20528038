"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: records in, offsets out.

The format stands in the media type: `application/vnd.kafka.json.v2+json` and its kin; `key_format` in the body chooses
another one for keys. A record that a broker refuses is reported in its own row; a request that cannot be understood is
refused as a whole before anything is written.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson

from proxy.api.answers import V2_JSON, Receive, Scope
from proxy.api.body import parse_json, read_body
from proxy.api.record_fields import headers_of, timestamp_ms, whole_number
from proxy.errors import (
    BadRequest,
    ConversionFailed,
    InvalidBatch,
    KeySchemaMissing,
    ProxyError,
    UnsupportedMedia,
    ValueSchemaMissing,
    fault_of,
)
from proxy.formats import SCHEMALESS, Encode, Format, SchemaChoice
from proxy.producers.sender import OutgoingRecord, Ticket
from proxy.services import Services

_MEDIA_TYPES: Final[Mapping[str, Format]] = {
    "application/vnd.kafka.binary.v2+json": Format.BINARY,
    "application/vnd.kafka.v2+json": Format.BINARY,
    "application/vnd.kafka.json.v2+json": Format.JSON,
    "application/vnd.kafka.text.v2+json": Format.STRING,
    "application/vnd.kafka.string.v2+json": Format.STRING,
    "application/vnd.kafka.avro.v2+json": Format.AVRO,
    "application/vnd.kafka.jsonschema.v2+json": Format.JSONSCHEMA,
    "application/vnd.kafka.protobuf.v2+json": Format.PROTOBUF,
    "application/json": Format.BINARY,
    "": Format.BINARY,
}


class ProduceV2:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def answer(self, scope: Scope, receive: Receive, topic: str, partition: int | None) -> tuple[bytes, str]:
        """(body, media type). Raises ProxyError."""
        value_format = _format_of(scope)
        settings = self._services.settings
        body = parse_json(await read_body(receive, settings.request_body_bytes_max))
        rows = body.get("records") if isinstance(body, dict) else None
        if not isinstance(rows, list):
            raise BadRequest('The body must be an object with an array "records".')
        if len(rows) > settings.records_per_request_max:
            raise InvalidBatch(f"{len(rows)} records in one request are over {settings.records_per_request_max}.")
        key_format = _key_format(body, value_format)
        # Whether the topic is there comes before its schemas: nothing is registered for a typing mistake.
        await self._services.sender.partitions(topic)
        encode_key, key_id = await self._encoder(body, rows, topic, key_format, is_key=True)
        encode_value, value_id = await self._encoder(body, rows, topic, value_format, is_key=False)
        records = [_record(row, index, encode_key, encode_value, partition) for index, row in enumerate(rows)]
        tickets = await self._services.sender.place(topic, records)
        offsets = await _offsets(tickets)
        return orjson.dumps({"offsets": offsets, "key_schema_id": key_id, "value_schema_id": value_id}), V2_JSON

    async def _encoder(
        self, body: Mapping[str, Any], rows: list[Any], topic: str, used: Format, *, is_key: bool
    ) -> tuple[Encode, int | None]:
        if not used.has_schema:
            return SCHEMALESS[used], None
        side = "key" if is_key else "value"
        if not any(isinstance(row, dict) and row.get(side) is not None for row in rows):
            return _nothing, None
        text, schema_id = body.get(f"{side}_schema"), whole_number(body.get(f"{side}_schema_id"), f"{side}_schema_id")
        if text is None and schema_id is None:
            if is_key:
                raise KeySchemaMissing("Keys are given without a key_schema or key_schema_id.")
            raise ValueSchemaMissing("Values are given without a value_schema or value_schema_id.")
        if text is not None and not isinstance(text, str):
            # A schema as JSON, not as text of JSON: plain enough what is meant.
            text = orjson.dumps(text).decode()
        choice = SchemaChoice(schema_id, None, None if schema_id is not None else text, f"{topic}-{side}")
        writer = await self._services.schemas.find(used, choice)
        return writer.encode, writer.schema_id


def _nothing(value: object) -> bytes | None:
    return None


def _format_of(scope: Scope) -> Format:
    for name, value in scope["headers"]:
        if name == b"content-type":
            media = value.decode("latin-1").partition(";")[0].strip().lower()
            found = _MEDIA_TYPES.get(media)
            if found is None:
                raise UnsupportedMedia
            return found
    return Format.BINARY


def _key_format(body: Mapping[str, Any], value_format: Format) -> Format:
    given = body.get("key_format")
    if given is None:
        return value_format
    try:
        return Format(str(given).lower())
    except ValueError:
        raise BadRequest(f"key_format must be one of {', '.join(Format)}, not {given!r:.40}.") from None


def _record(row: Any, index: int, encode_key: Encode, encode_value: Encode, partition: int | None) -> OutgoingRecord:
    if not isinstance(row, dict):
        raise BadRequest(f"records[{index}] must be an object.")
    key, value = row.get("key"), row.get("value")
    try:
        key_bytes = None if key is None else encode_key(key)
        value_bytes = None if value is None else encode_value(value)
    except ConversionFailed as error:
        raise ConversionFailed(f"records[{index}]: {error}") from error
    if len(row) <= 2 and "partition" not in row and "headers" not in row and "timestamp" not in row:
        return OutgoingRecord(key_bytes, value_bytes, partition)
    own = whole_number(row.get("partition"), f"records[{index}].partition")
    return OutgoingRecord(
        key_bytes,
        value_bytes,
        partition if partition is not None else own,
        timestamp_ms(row.get("timestamp"), f"records[{index}].timestamp"),
        headers_of(row.get("headers"), f"records[{index}].headers"),
    )


async def _offsets(tickets: list[Ticket]) -> list[dict[str, object]]:
    if len(tickets) > 1:
        await asyncio.wait({ticket.batch for ticket in tickets})
    return [await _row(ticket) for ticket in tickets]


async def _row(ticket: Ticket) -> dict[str, object]:
    try:
        delivered = await ticket.delivered()
    except ProxyError as error:
        return {"partition": None, "offset": None, "error_code": fault_of(error).error_code, "error": str(error)}
    return {"partition": delivered.partition, "offset": delivered.offset, "error_code": None, "error": None}
