"""Reads dead letters of Kafka Connect (KIP-298) and Spring for Apache Kafka.

Connect writes texts in headers with the prefix `__connect.errors.`. Spring writes texts and big-endian numbers with the
prefix `kafka_dlt-`, and the attempts of its retry topics with the prefix `retry_topic-`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.serdes.outcome import Reason

CONNECT_PREFIX: Final = "__connect.errors."
SPRING_PREFIX: Final = "kafka_dlt-"
_SPRING_ATTEMPTS: Final = "retry_topic-attempts"
_SPRING_PREFIXES: Final = (SPRING_PREFIX, "retry_topic-", "springDeserializerException")

# Exceptions that mean an unreadable payload. Other exceptions (a database failure) say nothing about the payload.
_UNREADABLE: Final = (
    "SerializationException",
    "DeserializationException",
    "AvroRuntimeException",
    "JsonParseException",
    "InvalidProtocolBufferException",
    "DataException",
)


@dataclass(frozen=True, slots=True)
class Foreign:
    prefixes: tuple[str, ...] = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    reason: Reason | None = None
    detail: str = ""
    part: str = "value"
    application: str | None = None
    attempt: int = 1

    def owns(self, header: str) -> bool:
        return bool(self.prefixes) and header.startswith(self.prefixes)


def read_connect(headers: Sequence[tuple[str, bytes | None]]) -> Foreign | None:
    found = _under(headers, CONNECT_PREFIX)
    if not found:
        return None
    stage, exception = header_text(found.get("stage")), header_text(found.get("exception.class.name"))
    return Foreign(
        prefixes=(CONNECT_PREFIX,),
        topic=header_text(found.get("topic")),
        partition=header_number(found.get("partition")),
        offset=header_number(found.get("offset")),
        reason=_reason(exception),
        detail=_joined(stage, exception, header_text(found.get("exception.message"))),
        part="key" if stage == "KEY_CONVERTER" else "value",
        application=header_text(found.get("connector.name")),
    )


def read_spring(headers: Sequence[tuple[str, bytes | None]]) -> Foreign | None:
    found = _under(headers, SPRING_PREFIX)
    if not found:
        return None
    # A record that fails several times has the headers of each failure. The first ones name the original record.
    original = _under(headers[::-1], SPRING_PREFIX + "original-")
    attempts = next((value for key, value in headers if key == _SPRING_ATTEMPTS), None)
    is_key = any(name.startswith("key-exception") for name in found)
    kind = "key-exception" if is_key else "exception"
    exception = header_text(found.get(f"{kind}-cause-fqcn")) or header_text(found.get(f"{kind}-fqcn"))
    return Foreign(
        prefixes=_SPRING_PREFIXES,
        topic=header_text(original.get("topic")),
        partition=_big_endian(original.get("partition"), 4),
        offset=_big_endian(original.get("offset"), 8),
        timestamp_ms=_big_endian(original.get("timestamp"), 8),
        reason=_reason(exception),
        detail=_joined(exception, header_text(found.get(f"{kind}-message"))),
        part="key" if is_key else "value",
        application=header_text(found.get("original-consumer-group")),
        attempt=max(_big_endian(attempts, 4) or _big_endian(attempts, 1) or 1, 1),
    )


def _under(headers: Sequence[tuple[str, bytes | None]], prefix: str) -> dict[str, bytes]:
    """The last header with the name, because both frameworks append headers."""
    return {key[len(prefix) :]: value for key, value in headers if key.startswith(prefix) and value is not None}


def header_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def header_number(value: bytes | None) -> int | None:
    if value is None or len(value) > 20:
        return None
    try:
        return int(value)
    except ValueError:
        return None


def _big_endian(value: bytes | None, size: int) -> int | None:
    return int.from_bytes(value, "big", signed=True) if value is not None and len(value) == size else None


def _reason(exception: str | None) -> Reason | None:
    return Reason.CORRUPT if exception is not None and exception.endswith(_UNREADABLE) else None


def _joined(*parts: str | None) -> str:
    return ": ".join(part for part in parts if part)
