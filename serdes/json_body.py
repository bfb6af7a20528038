"""JSON Schema bodies: one JSON document in UTF-8, validated on write and on read.

Integers keep all digits. `registry.formats.json_schema` validates.
"""

import json
from collections.abc import Mapping
from typing import Final, NoReturn

from headgate.registry.formats.json_schema import JsonSchema, Validator, parse
from headgate.serdes.codec import Body, JsonValue, ReadOptions, WriteOptions
from headgate.serdes.errors import EncodeError
from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Poison, Reason

DEPTH_MAX: Final = 100
"""Nested arrays and objects. The other languages have the same limit."""


class JsonWriter:
    __slots__ = ("_validator", "record_name")

    def __init__(self, text: str, references: Mapping[str, str], options: WriteOptions) -> None:
        schema = _parsed(text, references)
        title = schema.value.get("title") if isinstance(schema.value, dict) else None
        self.record_name: str | None = title if isinstance(title, str) else None
        self._validator = schema.validator() if options.validate_json else None

    def write(self, value: object) -> Body:
        try:
            document = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise EncodeError(f"not a JSON value: {error}") from None
        if _is_too_deep(value):
            raise EncodeError(f"nested more than {DEPTH_MAX} levels deep")
        fault = _first_fault(self._validator, value)
        if fault is not None:
            raise EncodeError(fault)
        return Body(document)


class JsonReader:
    __slots__ = ("_validator",)

    def __init__(
        self, writer: tuple[str, Mapping[str, str]], reader: tuple[str, Mapping[str, str]] | None, options: ReadOptions
    ) -> None:
        self._validator = _parsed(*(reader or writer)).validator() if options.validate_json else None

    def read(self, frame: Frame) -> object | Poison:
        body = frame.body
        try:
            value = loads(body)
        except JsonFault as fault:
            return Poison(fault.reason, str(fault), body)
        problem = _first_fault(self._validator, value)
        return value if problem is None else Poison(Reason.INVALID_VALUE, problem, body)


def _parsed(text: str, references: Mapping[str, str]) -> JsonSchema:
    # A registry accepted the schema, possibly as an import with fewer checks.
    return parse(text, references, strict=False)


class JsonFault(ValueError):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def loads(body: bytes) -> JsonValue:
    """Parse strict JSON. Raises `JsonFault` and no other error."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise JsonFault(Reason.CORRUPT, f"invalid UTF-8 ({error.reason}) at {error.start}") from None
    except json.JSONDecodeError as error:
        raise JsonFault(_reason_of(error), f"{error.msg} at {error.pos}") from None
    except RecursionError:
        raise JsonFault(Reason.TOO_DEEP, "nested deeper than the caller's stack allows") from None
    except ValueError as error:
        raise JsonFault(Reason.CORRUPT, str(error)[:200]) from None
    if _is_too_deep(value):
        raise JsonFault(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels deep")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _reason_of(error: json.JSONDecodeError) -> Reason:
    if error.msg == "Extra data":
        return Reason.TRAILING_BYTES
    ended = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
    return Reason.TRUNCATED if ended else Reason.CORRUPT


def _is_too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(DEPTH_MAX):
        inner: list[object] = []
        for entry in level:
            if isinstance(entry, dict):
                inner.extend(entry.values())
            elif isinstance(entry, (list, tuple)):
                inner.extend(entry)
        if not inner:
            return False
        level = inner
    return any(isinstance(entry, (dict, list, tuple)) for entry in level)


def _first_fault(validator: Validator | None, value: object) -> str | None:
    if validator is None:
        return None
    fault = next(validator.faults(value), None)
    return None if fault is None else f"{fault.path or '/'}: {fault.message[:500]}"
