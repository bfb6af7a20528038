"""Readable JSON for Avro's logical types, exact in both directions. All other types keep Avro's JSON encoding.

| logical type | JSON |
|---|---|
| decimal | `"9.99"`; numbers are accepted too |
| date | `"2026-11-18"` |
| time-millis, time-micros | `"10:15:30.123"` |
| timestamp-* | `"2026-11-18T10:15:30.123Z"`; any UTC offset is accepted |
| local-timestamp-* | the same without `Z` |
| uuid | `"c4b8…"`, also for fixed |
| duration | `{"months": 1, "days": 2, "milliseconds": 3}` |

A text with more digits than the type can store is an error. Numbers of the underlying type are accepted for dates and
times.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, DecimalException
from typing import Any, Final
from uuid import UUID

from headgate.serdes.avro.encoder import Encoder
from headgate.serdes.avro.json_compiler import Convert
from headgate.serdes.avro.json_decoder import FromJson
from headgate.serdes.avro.json_encoder import ToJson
from headgate.serdes.avro.logical import UNITS_PER_SECOND, Duration, Nanoseconds, reader_of, writer_of
from headgate.serdes.avro.scalar_encoder import wrong
from headgate.serdes.avro.schema import Enum, Fixed, Logical, Primitive
from headgate.serdes.errors import EncodeError

NANOS_PER_SECOND: Final = 1_000_000_000
_TIME: Final = r"(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?"
_TIME_OF_DAY: Final = re.compile(_TIME, re.ASCII)
_TIMESTAMP: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d)[T ]{_TIME}(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d{1,2000}(?:\.\d{0,2000})?|\.\d{1,2000})(?:[eE][+-]?\d{1,4})?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)


class NativeToJson(ToJson):
    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert:
        if isinstance(schema, Enum) or schema.logical is None:
            return super()._scalar(schema)
        logical, check, text = schema.logical, Encoder(schema), _texts(schema.logical)
        read, write = reader_of(logical), _underlying(schema, logical)

        def convert(value: Any, depth: int) -> Any:
            check.encode(value)
            # The value may be of the Python type or of the underlying type.
            return text(read(write(value)))

        return convert


class NativeFromJson(FromJson):
    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert:
        if isinstance(schema, Enum) or schema.logical is None:
            return super()._scalar(schema)
        parse, logical = _parser(schema.logical), schema.logical

        def convert(document: Any, depth: int) -> Any:
            try:
                return parse(document)
            except (ValueError, OverflowError, DecimalException) as error:
                raise EncodeError(f"{document!r:.60} is not a {logical.name}: {error}") from None

        return convert


def _underlying(schema: Primitive | Fixed, logical: Logical) -> Callable[[Any], Any]:
    if isinstance(schema, Fixed):
        return writer_of(logical, "fixed", schema.size)
    return writer_of(logical, schema.kind)


def _texts(logical: Logical) -> Callable[[Any], Any]:
    name = logical.name
    if name == "decimal":
        return lambda value: format(value, "f")
    if name == "duration":
        return _duration_document
    if name.endswith("-nanos"):
        suffix = "" if name.startswith("local-") else "Z"
        return lambda value: _nanoseconds_text(value, suffix)
    if "timestamp" in name or name.startswith("time-"):
        spec = "milliseconds" if name.endswith("-millis") else "microseconds"
        return lambda value: value.isoformat(timespec=spec).replace("+00:00", "Z")
    return str


def _nanoseconds_text(value: Nanoseconds, suffix: str) -> str:
    seconds, fraction = divmod(int(value), NANOS_PER_SECOND)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat(timespec='seconds')}.{fraction:09}{suffix}"


def _duration_document(value: Duration) -> dict[str, int]:
    return {"months": value.months, "days": value.days, "milliseconds": value.milliseconds}


def _parser(logical: Logical) -> Callable[[Any], Any]:
    name = logical.name
    if name == "decimal":
        return _decimal
    if name == "uuid":
        return lambda document: UUID(_text(document, name))
    if name == "duration":
        return _duration
    if name == "date":
        return lambda document: document if _is_number(document) else date.fromisoformat(_text(document, name))
    unit = UNITS_PER_SECOND[name.rpartition("-")[2]]
    if name.startswith("time-"):
        return lambda document: document if _is_number(document) else _time_of_day(_text(document, name), unit)
    local = name.startswith("local-")
    return lambda document: document if _is_number(document) else _timestamp(_text(document, name), unit, local)


def _is_number(document: Any) -> bool:
    return isinstance(document, int) and not isinstance(document, bool)


def _text(document: Any, wanted: str) -> str:
    if not isinstance(document, str):
        raise wrong(document, wanted)
    return document


def _decimal(document: Any) -> Decimal:
    if isinstance(document, float):
        # The shortest text of a float is the text of the request, up to 17 digits. Longer texts are kept by the parser.
        document = getattr(document, "text", repr(document))
    if _is_number(document):
        return Decimal(document)
    if not _DECIMAL.fullmatch(_text(document, "decimal")):
        raise ValueError("expected a number such as 9.99")
    return Decimal(document)


def _duration(document: Any) -> Duration:
    names = ("months", "days", "milliseconds")
    if not isinstance(document, Mapping) or set(document) != set(names):
        raise ValueError("expected an object with months, days and milliseconds")
    if not all(_is_number(document[name]) for name in names):
        raise ValueError("months, days and milliseconds must be integers")
    return Duration(*(document[name] for name in names))


def _time_of_day(text: str, per_second: int) -> int:
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        raise ValueError("expected a time such as 10:15:30.123")
    clock = time.fromisoformat(found[1])
    seconds = (clock.hour * 60 + clock.minute) * 60 + clock.second
    return _units(seconds, found[2], per_second)


def _timestamp(text: str, per_second: int, local: bool) -> int:
    found = _TIMESTAMP.fullmatch(text)
    if found is None or local != (found[4] is None):
        raise ValueError(f"expected a timestamp such as 2026-11-18T10:15:30.123{'' if local else 'Z'}")
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[4] or ''}")
    moment = moment if local else moment.astimezone(UTC).replace(tzinfo=None)
    delta = moment - _EPOCH
    return _units(delta.days * 86_400 + delta.seconds, found[3], per_second)


def _units(seconds: int, fraction: str | None, per_second: int) -> int:
    nanos = seconds * NANOS_PER_SECOND + int((fraction or "").ljust(9, "0"))
    units, rest = divmod(nanos * per_second, NANOS_PER_SECOND)
    if rest:
        raise ValueError(f"the type stores only {len(str(per_second)) - 1} digits of a second")
    return units
