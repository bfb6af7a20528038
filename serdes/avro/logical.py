"""Converts Avro's logical types to Python values and back, without loss.

Follows the Avro 1.12 specification, "Logical Types". Dates, times and timestamps are `datetime` types, decimals are
`Decimal`, uuids are `UUID`. A timestamp in nanoseconds is a `Nanoseconds`, a duration is a `Duration`. Values that
Python and Spark cannot represent (a year outside 1 to 9999, a time past midnight) raise `ValueError`, which callers
convert to `INVALID_VALUE`.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from typing import Any, Final
from uuid import UUID

from headgate.serdes.avro.schema import DECIMAL_PRECISION_MAX, Logical

DATE_DAYS_MIN, DATE_DAYS_MAX = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970-01-01."""

TIMESTAMP_SECONDS_MIN, TIMESTAMP_SECONDS_END = -62_135_596_800, 253_402_300_800
"""0001-01-01T00:00 and the first second of year 10000, since the epoch."""

DAY_SECONDS: Final = 86_400

UNITS_PER_SECOND: Final = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}

_EPOCH_DAY: Final = date(1970, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
# Trap Inexact, so that no value is rounded silently.
_EXACT: Final = Context(prec=2 * DECIMAL_PRECISION_MAX, traps=[Inexact, InvalidOperation, Overflow])


class Nanoseconds(int):
    """A timestamp in nanoseconds since the epoch: an `int` that converts to `datetime` (microseconds)."""

    __slots__ = ()

    def to_datetime(self) -> datetime:
        return _EPOCH_UTC + timedelta(microseconds=int(self) // 1_000)


@dataclass(frozen=True, slots=True)
class Duration:
    """Months, days and milliseconds, each from 0 to 2³²-1. They do not convert into each other."""

    months: int
    days: int
    milliseconds: int


def reader_of(logical: Logical) -> Callable[[Any], object]:
    """Convert the underlying value (int, bytes or str) to the Python value."""
    name = logical.name
    if name == "decimal":
        return _decimal_reader(logical)
    if name.startswith(("timestamp-", "local-timestamp-")):
        return _timestamp_reader(name)
    readers: dict[str, Callable[[Any], object]] = {
        "date": _read_date,
        "time-millis": _read_time_millis,
        "time-micros": _read_time_micros,
        "uuid": _read_uuid,
        "duration": _read_duration,
    }
    return readers[name]


def writer_of(logical: Logical, kind: str, size: int = 0) -> Callable[[Any], object]:
    """Convert the Python value to the underlying value. An underlying value is returned unchanged."""
    name = logical.name
    if name == "decimal":
        return _decimal_writer(logical, size)
    if name.startswith(("timestamp-", "local-timestamp-")):
        return _timestamp_writer(name)
    if name == "uuid":
        return _write_uuid if kind == "string" else _write_uuid_bytes
    return {
        "date": _write_date,
        "time-millis": _time_writer(1_000),
        "time-micros": _time_writer(1),
        "duration": _write_duration,
    }[name]


def _read_date(days: int) -> date:
    if not DATE_DAYS_MIN <= days <= DATE_DAYS_MAX:
        raise ValueError(f"date {days} days from 1970 is outside the years 1 to 9999")
    return _EPOCH_DAY + timedelta(days=days)


def _read_time_millis(value: int) -> time:
    if not 0 <= value < DAY_SECONDS * 1_000:
        raise ValueError(f"time-millis {value} is outside a day")
    return _time_of(value * 1_000)


def _read_time_micros(value: int) -> time:
    if not 0 <= value < DAY_SECONDS * 1_000_000:
        raise ValueError(f"time-micros {value} is outside a day")
    return _time_of(value)


def _time_of(micros: int) -> time:
    seconds, micros = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return time(*divmod(minutes, 60), second, micros)


def _timestamp_reader(name: str) -> Callable[[int], object]:
    kind, _, unit = name.rpartition("-")
    if unit == "nanos":
        # 64 bits of nanoseconds cover the years 1677 to 2262, so no check is necessary.
        return Nanoseconds
    per_second = UNITS_PER_SECOND[unit]
    low, end = TIMESTAMP_SECONDS_MIN * per_second, TIMESTAMP_SECONDS_END * per_second
    micros = 1_000_000 // per_second
    epoch = _EPOCH_UTC if kind == "timestamp" else _EPOCH

    def read(value: int) -> datetime:
        if not low <= value < end:
            raise ValueError(f"{name} {value} is outside the years 1 to 9999")
        return epoch + timedelta(microseconds=value * micros)

    return read


def _read_uuid(value: str | bytes) -> UUID:
    if isinstance(value, bytes):
        return UUID(bytes=value)
    if not _UUID.fullmatch(value):
        raise ValueError(f"{value!r:.60} is not a UUID")
    return UUID(value)


def _read_duration(value: bytes) -> Duration:
    return Duration(*struct.unpack("<III", value))


def _decimal_reader(logical: Logical) -> Callable[[bytes], Decimal]:
    limit, scale = 10**logical.precision, -logical.scale

    def read(value: bytes) -> Decimal:
        if not value:
            raise ValueError("a decimal without bytes")
        unscaled = int.from_bytes(value, "big", signed=True)
        if not -limit < unscaled < limit:
            raise ValueError(f"a decimal of more than {logical.precision} digits")
        return _EXACT.scaleb(Decimal(unscaled), scale)

    return read


def _write_date(value: object) -> object:
    if isinstance(value, datetime):
        raise ValueError("a datetime instead of a date")
    return (value - _EPOCH_DAY).days if isinstance(value, date) else value


def _time_writer(divisor: int) -> Callable[[object], object]:
    def write(value: object) -> object:
        if not isinstance(value, time):
            return value
        if value.tzinfo is not None:
            raise ValueError("a time of day cannot have a time zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) // divisor

    return write


def _timestamp_writer(name: str) -> Callable[[object], object]:
    kind, _, unit = name.rpartition("-")
    per_second = UNITS_PER_SECOND[unit]
    is_local = kind != "timestamp"

    def write(value: object) -> object:
        if not isinstance(value, datetime):
            return value
        if is_local != (value.tzinfo is None):
            raise ValueError(f"{name} needs a datetime {'without' if is_local else 'with'} a time zone")
        delta = value - (_EPOCH if is_local else _EPOCH_UTC)
        micros = (delta.days * DAY_SECONDS + delta.seconds) * 1_000_000 + delta.microseconds
        return micros * per_second // 1_000_000

    return write


def _write_uuid(value: object) -> object:
    if isinstance(value, str) and not _UUID.fullmatch(value):
        raise ValueError(f"{value!r:.60} is not a UUID")
    return str(value) if isinstance(value, UUID) else value


def _write_uuid_bytes(value: object) -> object:
    if isinstance(value, str) and _UUID.fullmatch(value):
        return UUID(value).bytes
    return value.bytes if isinstance(value, UUID) else value


def _write_duration(value: object) -> object:
    if not isinstance(value, Duration):
        return value
    try:
        return struct.pack("<III", value.months, value.days, value.milliseconds)
    except struct.error:
        raise ValueError("the parts of a duration must be between 0 and 4294967295") from None


def _decimal_writer(logical: Logical, size: int) -> Callable[[object], object]:
    limit, scale = 10**logical.precision, logical.scale

    def write(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal):
            return value
        unscaled = _unscaled(value, scale)
        if not -limit < unscaled < limit:
            raise ValueError(f"{value!s:.60} has more than {logical.precision} digits")
        # The fewest bytes that keep the sign, like Java's BigInteger.toByteArray.
        length = size or (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)

    return write


def _unscaled(value: Decimal, scale: int) -> int:
    if not value.is_finite() or value.adjusted() > DECIMAL_PRECISION_MAX:
        raise ValueError(f"{value!s:.60} is not a decimal of this schema")
    try:
        return int(_EXACT.to_integral_exact(_EXACT.scaleb(value, scale)))
    except DecimalException:
        raise ValueError(f"{value!s:.60} has more than {scale} digits after the point") from None
