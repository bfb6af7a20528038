"""Configuration of a consumer instance: the body of POST /consumers/{group}."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.proxy.errors import InvalidConsumerConfig, InvalidConsumerConfigValue, Unprocessable
from headgate.proxy.reading.formats import Formats, ReadFormat

FETCH_MIN_BYTES_MAX: Final = 10_000_000
"""The limit of Confluent's REST Proxy."""
REQUEST_TIMEOUT_MS_MAX: Final = 300_000
"""Load balancers close connections that are idle for longer."""
NAME_CHARS_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class InstanceConfig:
    name: str | None = None
    formats: Formats = field(default_factory=lambda: Formats(ReadFormat.BINARY, ReadFormat.BINARY))
    auto_offset_reset: str = "latest"
    auto_commit: bool = True
    fetch_min_bytes: int = 1
    request_timeout_ms: int | None = None
    isolation_level: str = "read_uncommitted"
    group_instance_id: str | None = None


def read_config(body: Any, logical_types: str) -> InstanceConfig:
    """`logical_types` is the default. Raises InvalidConsumerConfigValue, InvalidConsumerConfig, Unprocessable."""
    body = {} if body is None else body
    if not isinstance(body, dict):
        raise InvalidConsumerConfigValue("The request body must be an object with consumer settings.")
    for name in body:
        if name not in _FIELDS:
            raise Unprocessable(f"Unrecognized field: {str(name)[:100]}")
    given = {name: value for name, value in body.items() if value is not None}
    both = _format(given, "format", ReadFormat.BINARY)
    return InstanceConfig(
        name=_text(given, "id") or _text(given, "name"),
        formats=Formats(
            _format(given, "key.format", both),
            _format(given, "value.format", both),
            _one_of({"logical.types": logical_types, **given}, "logical.types", ("avro", "native")) == "native",
        ),
        auto_offset_reset=_one_of(given, "auto.offset.reset", ("latest", "earliest", "none")),
        auto_commit=_flag(given, "enable.auto.commit" if "enable.auto.commit" in given else "auto.commit.enable"),
        fetch_min_bytes=max(1, _fetch_min_bytes(given)),
        request_timeout_ms=_timeout(given),
        isolation_level=_one_of(given, "isolation.level", ("read_uncommitted", "read_committed")),
        group_instance_id=_text(given, "group.instance.id"),
    )


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > NAME_CHARS_MAX:
        raise InvalidConsumerConfigValue(f"{name} must be a string of 1 to {NAME_CHARS_MAX} characters.")
    if any(ord(character) < 32 or 0xD800 <= ord(character) < 0xE000 for character in value):
        raise InvalidConsumerConfigValue(f"{name} must not contain control characters, because it is part of URLs.")
    return value


def _format(given: Mapping[str, Any], name: str, default: ReadFormat) -> ReadFormat:
    value = given.get(name)
    if value is None:
        return default
    found = ReadFormat.named(value) if isinstance(value, str) else None
    if found is None:
        names = ", ".join(ReadFormat)
        raise InvalidConsumerConfigValue(f"Invalid format type. {name} must be one of {names}.")
    return found


def _one_of(given: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    value = given.get(name, allowed[0])
    lowered = value.lower() if isinstance(value, str) else value
    if lowered not in allowed:
        raise InvalidConsumerConfigValue(
            f"Invalid consumer configuration: {name} must be one of {', '.join(allowed)}, not {value!r:.100}."
        )
    return str(lowered)


def _flag(given: Mapping[str, Any], name: str) -> bool:
    """Reads a boolean, or the string that Confluent's clients send."""
    value = given.get(name, True)
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidConsumerConfigValue(f"Invalid consumer configuration: {name} must be true or false.")


def _fetch_min_bytes(given: Mapping[str, Any]) -> int:
    found = _first(given, "fetch.min.bytes", "responseMinBytes")
    value = -1 if found is None else _integer(found, "fetch.min.bytes")
    if value != -1 and not 1 <= value <= FETCH_MIN_BYTES_MAX:
        raise InvalidConsumerConfig(
            "Invalid consumer configuration. It does not abide by the constraints: "
            f"fetch.min.bytes must be -1 or between 1 and {FETCH_MIN_BYTES_MAX}, not {value}."
        )
    return value


def _timeout(given: Mapping[str, Any]) -> int | None:
    found = _first(given, "consumer.request.timeout.ms", "requestWaitMs")
    if found is None:
        return None
    value = _integer(found, "consumer.request.timeout.ms")
    if not 0 <= value <= REQUEST_TIMEOUT_MS_MAX:
        raise InvalidConsumerConfigValue(
            f"consumer.request.timeout.ms must be between 0 and {REQUEST_TIMEOUT_MS_MAX}, not {value}."
        )
    return value


def _first(given: Mapping[str, Any], *names: str) -> Any:
    return next((given[name] for name in names if name in given), None)


def _integer(value: Any, name: str) -> int:
    if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidConsumerConfigValue(f"{name} must be an integer, not {value!r:.100}.")


_FIELDS: Final = frozenset(
    {
        "id",
        "name",
        "format",
        "key.format",
        "value.format",
        "auto.offset.reset",
        "auto.commit.enable",
        "enable.auto.commit",
        "fetch.min.bytes",
        "responseMinBytes",
        "consumer.request.timeout.ms",
        "requestWaitMs",
        "isolation.level",
        "logical.types",
        "group.instance.id",
    }
)
