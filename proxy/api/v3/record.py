"""Parses v3 records, and creates the parts of reports that describe key and value."""

from typing import Any, Final, NamedTuple

from headgate.kafka_client.producer.records import OutgoingRecord
from headgate.proxy.api.record_fields import headers_of, int_field, timestamp_ms
from headgate.proxy.errors import BadRequest, ConversionFailed, SchemaNotFound, SerializationFailed
from headgate.proxy.formats import SCHEMALESS, Encode, Format, SchemaChoice
from headgate.proxy.schemas import SchemaEncoder, SchemaEncoders

_TYPES: Final = {
    "BINARY": Format.BINARY,
    "STRING": Format.STRING,
    "JSON": Format.JSON,
    "AVRO": Format.AVRO,
    "JSONSCHEMA": Format.JSONSCHEMA,
    "PROTOBUF": Format.PROTOBUF,
}
_SCHEMALESS: Final[dict[str, Encode]] = {name: SCHEMALESS[used] for name, used in _TYPES.items() if not used.has_schema}
_STRATEGIES: Final = ("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")
_FIELDS: Final = frozenset({"partition_id", "headers", "key", "value", "timestamp", "id", "original_size"})
_PLAIN: Final = frozenset({"key", "value"})
_PLAIN_PAYLOAD: Final = frozenset({"type", "data"})
_SCHEMA_FIELDS: Final = ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema")
_PAYLOAD_FIELDS: Final = frozenset({"type", "data", *_SCHEMA_FIELDS})


class ParsedRecord(NamedTuple):
    record: OutgoingRecord
    key: dict[str, object] | None
    value: dict[str, object] | None


class SchemaNotCached(Exception):
    """The schema is not cached. Find it with `SchemaEncoders.find`, then parse the record again."""

    def __init__(self, used: Format | None, choice: SchemaChoice) -> None:
        super().__init__()
        self.used = used
        self.choice = choice


class RecordParser:
    """Parses records of one topic. Waits for the registry only if a schema is not cached."""

    def __init__(self, topic: str, schemas: SchemaEncoders, *, native_logical: bool = False) -> None:
        self._topic = topic
        self._schemas = schemas
        self._native_logical = native_logical

    async def parse(self, row: Any) -> ParsedRecord:
        """Raises ProxyError."""
        while True:
            try:
                return self.parse_cached(row)
            except SchemaNotCached as needed:
                await self._find(needed)

    async def _find(self, needed: "SchemaNotCached") -> None:
        """Raises ProxyError. A missing schema has the error codes of Confluent's v3 API."""
        try:
            await self._schemas.find(needed.used, needed.choice)
        except SchemaNotFound as error:
            if needed.choice.schema_id is None and needed.choice.version is not None:
                raise BadRequest(str(error)) from error
            raise SerializationFailed(str(error)) from error

    def parse_cached(self, row: Any) -> ParsedRecord:
        """Raises ProxyError, SchemaNotCached."""
        if not isinstance(row, dict):
            raise BadRequest("A record must be an object.")
        key, key_report = self._payload(row.get("key"), "key")
        value, value_report = self._payload(row.get("value"), "value")
        if row.keys() <= _PLAIN:
            return ParsedRecord(OutgoingRecord(key, value), key_report, value_report)
        unknown = next((name for name in row if name not in _FIELDS), None)
        if unknown is not None:
            raise BadRequest(f"Unrecognized field: {unknown[:100]}")
        record = OutgoingRecord(
            key,
            value,
            int_field(row.get("partition_id"), "partition_id"),
            timestamp_ms(row.get("timestamp"), "timestamp"),
            headers_of(row.get("headers"), "headers"),
        )
        return ParsedRecord(record, key_report, value_report)

    def _payload(self, given: Any, side: str) -> tuple[bytes | None, dict[str, object] | None]:
        if given is None:
            return None, None
        if not isinstance(given, dict):
            raise BadRequest(f"{side} must be an object with a type and data.")
        name, data = given.get("type"), given.get("data")
        try:
            if given.keys() <= _PLAIN_PAYLOAD and isinstance(name, str):
                encode = _SCHEMALESS.get(name)
                if encode is not None:
                    payload = _plain(encode, data, side) if data is not None else None
                    return payload, {"type": name, "size": len(payload) if payload is not None else 0}
            writer = self._writer(given, side)
            payload = writer.encode(data) if data is not None else None
        except ConversionFailed as error:
            raise BadRequest(f"{side}.data: {error}") from error
        report: dict[str, object] = {
            "type": writer.format.upper(),
            "subject": writer.subject,
            "schema_id": writer.schema_id,
        }
        if writer.version is not None:
            report["schema_version"] = writer.version
        report["size"] = len(payload) if payload is not None else 0
        warning = None if writer.find_mistake is None else writer.find_mistake(data)
        if warning is not None:
            report["warning"] = f"data: {warning}"
        return payload, report

    def _writer(self, given: dict[str, Any], side: str) -> SchemaEncoder:
        unknown = next((name for name in given if name not in _PAYLOAD_FIELDS), None)
        if unknown is not None:
            raise BadRequest(f"Unrecognized field: {side}.{unknown[:100]}")
        used = _type_of(given, side)
        if used is not None and not used.has_schema:
            raise BadRequest(f"{side} has type {used.upper()}, which does not use a schema.")
        choice = _choice(given, side, self._topic, self._native_logical)
        if choice.text is not None and used is None:
            raise BadRequest(f"{side}.type must name the schema language of {side}.schema.")
        kept = self._schemas.cached(used, choice)
        if kept is None:
            raise SchemaNotCached(used, choice)
        return kept


def _plain(encode: Encode, data: object, side: str) -> bytes | None:
    """Raises BadRequest."""
    try:
        return encode(data)
    except ConversionFailed as error:
        raise BadRequest(f"{side}.data: {error}") from error


def _type_of(given: dict[str, Any], side: str) -> Format | None:
    name = given.get("type")
    if name is None:
        return None
    found = _TYPES.get(name.upper()) if isinstance(name, str) else None
    if found is None:
        raise BadRequest(f"{side}.type must be one of {', '.join(_TYPES)}, not {name!r:.40}.")
    return found


def _choice(given: dict[str, Any], side: str, topic: str, native_logical: bool) -> SchemaChoice:
    subject, strategy = given.get("subject"), given.get("subject_name_strategy")
    if subject is not None and strategy is not None:
        raise BadRequest("Only one of 'subject_name_strategy' or 'subject' can be used.")
    named = [name for name in ("schema_id", "schema_version", "schema") if given.get(name) is not None]
    if len(named) > 1:
        raise BadRequest("Only one of 'schema_id', 'schema_version' or 'schema' can be used.")
    if strategy is not None and strategy not in _STRATEGIES:
        raise BadRequest(f"{side}.subject_name_strategy must be one of {', '.join(_STRATEGIES)}.")
    if strategy in ("RECORD_NAME", "TOPIC_RECORD_NAME") and "schema" not in named and "schema_id" not in named:
        raise BadRequest(f"Cannot use subject_name_strategy={strategy} without schema_id or schema.")
    text = given.get("schema")
    if text is not None and not isinstance(text, str):
        raise BadRequest(f"{side}.schema must be a string.")
    if subject is not None and not isinstance(subject, str):
        raise BadRequest(f"{side}.subject must be a string.")
    return SchemaChoice(
        int_field(given.get("schema_id"), f"{side}.schema_id"),
        int_field(given.get("schema_version"), f"{side}.schema_version"),
        text,
        subject or f"{topic}-{side}",
        strategy if strategy in ("RECORD_NAME", "TOPIC_RECORD_NAME") else None,
        topic,
        native_logical,
    )
