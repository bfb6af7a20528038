"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: produce records, return their offsets.

The media type selects the format, such as `application/vnd.kafka.json.v2+json`. The fields `key_format` and
`value_format` override it. The response has one row per record, with an offset or an
error. An invalid request fails before any record is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from headgate.kafka_client.errors import (
    BrokerUnavailable,
    LeaderNotFound,
    NotAuthenticated,
    NotAuthorized,
    ProducerClosed,
    RetriableError,
)
from headgate.kafka_client.producer.records import OutgoingRecord, Ticket, settled
from headgate.kafka_client.time_slicing import chunks
from headgate.openapi.media_types import JSON, KAFKA_V2, negotiate
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.large_body import parse_rows
from headgate.proxy.api.record_fields import headers_of, int_field, timestamp_ms
from headgate.proxy.errors import (
    BadRequest,
    ConversionFailed,
    InvalidBatch,
    InvalidPayload,
    KeySchemaMissing,
    NotAcceptable,
    ProxyError,
    Unprocessable,
    UnsupportedMedia,
    ValueSchemaMissing,
)
from headgate.proxy.formats import SCHEMALESS, Encode, Format, SchemaChoice, encode_json
from headgate.proxy.producers.internal_topics import check_writable
from headgate.proxy.schemas import SchemaEncoder
from headgate.proxy.services import Services

_MEDIA_TYPES: Final[Mapping[bytes, Format]] = {
    b"application/vnd.kafka.binary.v2+json": Format.BINARY,
    b"application/vnd.kafka.v2+json": Format.BINARY,
    b"application/vnd.kafka+json": Format.BINARY,
    b"application/vnd.kafka.json.v2+json": Format.JSON,
    b"application/vnd.kafka.text.v2+json": Format.STRING,
    b"application/vnd.kafka.string.v2+json": Format.STRING,
    b"application/vnd.kafka.avro.v2+json": Format.AVRO,
    b"application/vnd.kafka.jsonschema.v2+json": Format.JSONSCHEMA,
    b"application/vnd.kafka.protobuf.v2+json": Format.PROTOBUF,
    b"application/json": Format.BINARY,
    b"application/octet-stream": Format.BINARY,
    b"": Format.BINARY,
}
_ANSWERS: Final = (KAFKA_V2, "application/vnd.kafka+json", JSON)
_FIELDS: Final = frozenset(
    {
        "records",
        "key_format",
        "value_format",
        *(f"{side}_schema{of}" for side in ("key", "value") for of in ("", "_id", "_version", "_subject")),
    }
)
_RECORD_FIELDS: Final = frozenset({"key", "value", "partition", "timestamp", "headers"})
WARNING_ROWS_MAX: Final = 100
"""Records of a request that are searched for mistakes."""
_FORMATS: Final[Mapping[str, Format]] = {**{name.value: name for name in Format}, "text": Format.STRING}
_RETRIABLE: Final = (RetriableError, BrokerUnavailable, LeaderNotFound, ProducerClosed)
_KEPT_CODES: Final = (NotAuthenticated, NotAuthorized)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A valid request, before it is written."""

    records: list[OutgoingRecord]
    key_schema_id: int | None
    value_schema_id: int | None
    warnings: tuple[str, ...] = ()


def response_type(accept: bytes) -> str:
    """Raises NotAcceptable."""
    if not accept:
        return KAFKA_V2
    found = negotiate(accept.decode("latin-1"), _ANSWERS)
    if found is None:
        raise NotAcceptable
    return found


class ProduceV2:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def parse(
        self, media: bytes, body: bytes, topic: str, partition: int | None, native_logical: bool
    ) -> ParsedRequest:
        """Raises ProxyError."""
        check_writable(topic, self._services.settings)
        given = _format_of(media)
        if not body.strip():
            raise InvalidPayload("Payload error. Null input provided. Data is required.")
        settings = self._services.settings
        parsed = await parse_rows(body, "records", settings.producer_batch_bytes_max)
        rows = _rows(parsed, settings.records_per_request_max)
        value_format = _named_format(parsed, "value_format", given)
        key_format = _named_format(parsed, "key_format", given)
        # First the topic, so that no schema is registered for a misspelled name. It is created later (`deliver`), so
        # that a request that is refused for its records or schemas creates nothing.
        await self._services.sender.check_topic(topic)
        encode_key, key_id, key_warnings = await self._encoder(
            parsed, rows, topic, key_format, native_logical, is_key=True
        )
        encode_value, value_id, value_warnings = await self._encoder(
            parsed, rows, topic, value_format, native_logical, is_key=False
        )
        records: list[OutgoingRecord] = []
        async for start, some in chunks(rows):
            records += [
                _record(row, index, encode_key, encode_value, partition) for index, row in enumerate(some, start)
            ]
        return ParsedRequest(records, key_id, value_id, key_warnings + value_warnings)

    async def deliver(self, topic: str, parsed: ParsedRequest) -> bytes:
        """The body of the response. Raises ProxyError if no record was written."""
        tickets = await self._services.sender.place(topic, parsed.records)
        return await response_body(parsed, tickets)

    async def _encoder(
        self, body: Mapping[str, Any], rows: list[Any], topic: str, used: Format, native_logical: bool, *, is_key: bool
    ) -> tuple[Encode, int | None, tuple[str, ...]]:
        """The encoder, the schema id, and warnings about the rows."""
        if not used.has_schema:
            return SCHEMALESS[used], None, ()
        side = "key" if is_key else "value"
        text, schema_id = body.get(f"{side}_schema"), _schema_id(body.get(f"{side}_schema_id"), f"{side}_schema_id")
        version = int_field(body.get(f"{side}_schema_version"), f"{side}_schema_version")
        subject = body.get(f"{side}_schema_subject")
        if subject is not None and not isinstance(subject, str):
            raise Unprocessable(f"{side}_schema_subject must be a string.")
        if text is None and schema_id is None and version is None and subject is None:
            if not any(isinstance(row, dict) and row.get(side) is not None for row in rows):
                return _encode_null, None, ()
            if is_key:
                raise KeySchemaMissing("Request includes keys but does not include key schema")
            raise ValueSchemaMissing("Request includes values but does not include value schema")
        if text is not None and not isinstance(text, str):
            # The schema as a JSON value instead of a string of JSON.
            text = encode_json(text).decode()
        if schema_id is not None:
            version = text = None
        elif version is not None:
            text = None
        choice = SchemaChoice(schema_id, version, text, subject or f"{topic}-{side}", native_logical=native_logical)
        writer = await self._services.schemas.find(used, choice)
        return writer.encode, writer.schema_id, _warnings(writer, rows, side)


def _warnings(writer: SchemaEncoder, rows: list[Any], side: str) -> tuple[str, ...]:
    if writer.find_mistake is None:
        return ()
    for index, row in enumerate(rows[:WARNING_ROWS_MAX]):
        found = writer.find_mistake(row.get(side)) if isinstance(row, dict) else None
        if found is not None:
            return (f"records[{index}].{side}: {found}",)
    return ()


def _schema_id(value: Any, place: str) -> int | None:
    """Accepts strings of digits too, because some clients send them. Raises BadRequest."""
    is_text = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10
    return int_field(int(value) if is_text else value, place)


async def response_body(parsed: ParsedRequest, tickets: Sequence[Ticket]) -> bytes:
    """Raises ProxyError if no record was written because no broker is available."""
    await settled(tickets)
    rows: list[dict[str, object]] = []
    failed: ProxyError | None = None
    async for _, some in chunks(tickets):
        for ticket in some:
            batch = ticket.batch
            if batch.error is None:
                offset = batch.base_offset + ticket.position if batch.base_offset >= 0 else -1
                rows.append({"partition": batch.partition, "offset": offset, "error_code": None, "error": None})
            else:
                failed = batch.error
                rows.append({"partition": None, "offset": None, "error_code": row_code(failed), "error": str(failed)})
    if isinstance(failed, (BrokerUnavailable, ProducerClosed)) and all(row["error"] for row in rows):
        raise failed
    answer: dict[str, object] = {
        "offsets": rows,
        "key_schema_id": parsed.key_schema_id,
        "value_schema_id": parsed.value_schema_id,
    }
    if parsed.warnings:
        answer["warnings"] = parsed.warnings
    return orjson.dumps(answer)


def row_code(error: ProxyError) -> int:
    """Confluent's rows have four codes: not authenticated, not authorized, retriable, not retriable."""
    if isinstance(error, _KEPT_CODES):
        return status_of(error).error_code
    return 50003 if isinstance(error, _RETRIABLE) else 50002


def _encode_null(value: object) -> bytes | None:
    return None


def _rows(parsed: Any, rows_max: int) -> list[Any]:
    if not isinstance(parsed, dict):
        raise Unprocessable('The body must be an object with an array "records".')
    rows = parsed.get("records")
    if not isinstance(rows, list) or not rows:
        raise Unprocessable("records must be a non-empty array")
    if len(rows) > rows_max:
        raise InvalidBatch(f"The request has {len(rows)} records. The limit is {rows_max}.")
    if not parsed.keys() <= _FIELDS:
        raise Unprocessable(f"Unrecognized field: {next(name for name in parsed if name not in _FIELDS)[:100]}")
    return rows


def _format_of(media: bytes) -> Format:
    found = _MEDIA_TYPES.get(media)
    if found is None:
        found = _MEDIA_TYPES.get(media.partition(b";")[0].strip().lower())
        if found is None:
            raise UnsupportedMedia
    return found


def _named_format(body: Mapping[str, Any], name: str, otherwise: Format) -> Format:
    given = body.get(name)
    if given is None:
        return otherwise
    found = _FORMATS.get(given.lower()) if isinstance(given, str) else None
    if found is None:
        raise Unprocessable(f"{name} must be one of {', '.join(_FORMATS)}, not {given!r:.40}.")
    return found


def _record(row: Any, index: int, encode_key: Encode, encode_value: Encode, partition: int | None) -> OutgoingRecord:
    if not isinstance(row, dict):
        raise BadRequest(f"records[{index}] must be an object.")
    key, value = row.get("key"), row.get("value")
    place = "key"
    try:
        key_bytes = None if key is None else encode_key(key)
        place = "value"
        value_bytes = None if value is None else encode_value(value)
    except ConversionFailed as error:
        raise ConversionFailed(f"records[{index}].{place}: {error}") from error
    if row.keys() <= _PLAIN:
        return OutgoingRecord(key_bytes, value_bytes, partition)
    unknown = next((name for name in row if name not in _RECORD_FIELDS), None)
    if unknown is not None:
        raise Unprocessable(f"Unrecognized field: records[{index}].{unknown[:100]}")
    own = int_field(row.get("partition"), f"records[{index}].partition")
    if own is not None and partition is not None and own != partition:
        raise Unprocessable(f"records[{index}].partition is {own}, but the path names partition {partition}.")
    return OutgoingRecord(
        key_bytes,
        value_bytes,
        partition if partition is not None else own,
        timestamp_ms(row.get("timestamp"), f"records[{index}].timestamp"),
        headers_of(row.get("headers"), f"records[{index}].headers"),
    )


_PLAIN: Final = frozenset({"key", "value"})
