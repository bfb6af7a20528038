"""A record as v3 spells it, to bytes; and what its report says about key and value."""

from dataclasses import dataclass
from typing import Any, Final

from proxy.api.record_fields import headers_of, timestamp_ms, whole_number
from proxy.errors import BadRequest, InvalidPayload
from proxy.formats import SCHEMALESS, Format, SchemaChoice
from proxy.producers.sender import OutgoingRecord
from proxy.schemas import SchemaWriters

_TYPES: Final = {
    "BINARY": Format.BINARY,
    "STRING": Format.STRING,
    "JSON": Format.JSON,
    "AVRO": Format.AVRO,
    "JSONSCHEMA": Format.JSONSCHEMA,
    "PROTOBUF": Format.PROTOBUF,
}
_STRATEGIES: Final = ("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")
_FIELDS: Final = frozenset({"partition_id", "headers", "key", "value", "timestamp", "id", "original_size"})


@dataclass(frozen=True, slots=True)
class Understood:
    record: OutgoingRecord
    key: dict[str, object] | None
    value: dict[str, object] | None


async def understand(row: Any, topic: str, schemas: SchemaWriters) -> Understood:
    """Raises ProxyError."""
    if not isinstance(row, dict):
        raise BadRequest("A record must be an object.")
    unknown = [name for name in row if name not in _FIELDS]
    if unknown:
        raise BadRequest(f"A record has no field {unknown[0]!r:.60}.")
    key, key_report = await _payload(row.get("key"), "key", topic, schemas)
    value, value_report = await _payload(row.get("value"), "value", topic, schemas)
    record = OutgoingRecord(
        key,
        value,
        whole_number(row.get("partition_id"), "partition_id"),
        timestamp_ms(row.get("timestamp"), "timestamp"),
        headers_of(row.get("headers"), "headers"),
    )
    return Understood(record, key_report, value_report)


async def _payload(
    given: Any, side: str, topic: str, schemas: SchemaWriters
) -> tuple[bytes | None, dict[str, object] | None]:
    if given is None:
        return None, None
    if not isinstance(given, dict):
        raise BadRequest(f"{side} must be an object with a type and data.")
    data = given.get("data")
    used = _type_of(given, side)
    if used is not None and not used.has_schema:
        if any(given.get(name) is not None for name in _SCHEMA_FIELDS):
            raise BadRequest(f"{side} is {used.upper()} and takes no schema.")
        payload = SCHEMALESS[used](data) if data is not None else None
        return payload, {"type": used.upper(), "size": len(payload or b"")}
    writer = await schemas.find(used, _choice(given, side, topic))
    payload = writer.encode(data) if data is not None else None
    return payload, {
        "type": writer.format.upper(),
        "subject": writer.subject,
        "schema_id": writer.schema_id,
        "schema_version": writer.version,
        "size": len(payload or b""),
    }


_SCHEMA_FIELDS: Final = ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema")


def _type_of(given: dict[str, Any], side: str) -> Format | None:
    name = given.get("type")
    if name is None:
        return None
    found = _TYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise BadRequest(f"{side}.type must be one of {', '.join(_TYPES)}, not {name!r:.40}.")
    return found


def _choice(given: dict[str, Any], side: str, topic: str) -> SchemaChoice:
    subject, strategy = given.get("subject"), given.get("subject_name_strategy")
    if subject is not None and strategy is not None:
        raise BadRequest(f"{side} may name a subject or a subject_name_strategy, not both.")
    named = [name for name in ("schema_id", "schema_version", "schema") if given.get(name) is not None]
    if len(named) > 1:
        raise BadRequest(f"{side} may name one of schema_id, schema_version and schema, not {' and '.join(named)}.")
    if strategy is not None and strategy not in _STRATEGIES:
        raise BadRequest(f"{side}.subject_name_strategy must be one of {', '.join(_STRATEGIES)}.")
    if strategy in ("RECORD_NAME", "TOPIC_RECORD_NAME") and "schema" not in named and "schema_id" not in named:
        raise InvalidPayload(f"{side}.subject_name_strategy {strategy} needs the schema itself.")
    text = given.get("schema")
    if text is not None and not isinstance(text, str):
        raise BadRequest(f"{side}.schema must be the schema as text.")
    if subject is not None and not isinstance(subject, str):
        raise BadRequest(f"{side}.subject must be text.")
    return SchemaChoice(
        whole_number(given.get("schema_id"), f"{side}.schema_id"),
        whole_number(given.get("schema_version"), f"{side}.schema_version"),
        text,
        subject or f"{topic}-{side}",
        strategy if strategy in ("RECORD_NAME", "TOPIC_RECORD_NAME") else None,
        topic,
    )
