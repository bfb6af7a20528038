"""Parses timestamps and durations from the command line. The current time is an argument."""

import datetime
import re

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_ISO_DURATION = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{1,18}")

TIMESTAMP_FORMS = "2026-01-31, 2026-01-31T12:00:00Z, milliseconds since 1970, or 2h for two hours ago"
DURATION_FORMS = "90s, 15m, 1h30m, 7d, or ISO 8601 like PT1H30M"


class InvalidTimestamp(ValueError):
    """The text is not a timestamp or duration. The message lists the accepted forms."""


def parse_timestamp(text: str, now_ms: int) -> int:
    """Milliseconds since 1970. A date without a UTC offset is UTC, as in Kafka's tools. Raises InvalidTimestamp."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return int(text)
    try:
        return now_ms - parse_duration(text)
    except InvalidTimestamp:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidTimestamp(f"{text!r} is not a time; use {TIMESTAMP_FORMS}") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    # Not timestamp(): floats lose milliseconds far from 1970.
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """Milliseconds. Raises InvalidTimestamp."""
    text = text.strip()
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return round(sum(float(number) * _UNITS_MS[unit] for number, unit in parts))
    iso = _ISO_DURATION.fullmatch(text)
    if iso is None or not any(iso.groupdict().values()):
        raise InvalidTimestamp(f"{text!r} is not a duration; use {DURATION_FORMS}")
    return round(sum(float(number) * _UNITS_MS[unit] for unit, number in iso.groupdict().items() if number))
