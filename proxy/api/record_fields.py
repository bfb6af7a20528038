"""Record fields that v2 and v3 share: integers, timestamps, headers."""

import base64
import binascii
import datetime
from functools import lru_cache
from typing import Any, Final

from headgate.kafka_client.producer.records import Header
from headgate.proxy.errors import BadRequest

# Partitions, versions and ids are signed 32-bit integers in Kafka and in the registry.
INT32_MAX: Final = 2**31 - 1
# The end of the year 9999 in milliseconds. ISO 8601 has four digits for the year.
TIMESTAMP_MAX: Final = 253_402_300_799_999
HEADERS_MAX: Final = 10_000
"""Headers of one record. Kafka limits only the record size, but each header uses about 100 bytes of memory here."""


def int_field(value: Any, place: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT32_MAX:
        raise BadRequest(f"{place} must be an integer from 0 to {INT32_MAX}, not {value!r:.40}.")
    return value


def timestamp_ms(value: Any, place: str) -> int | None:
    """Milliseconds since the epoch, from the same or from ISO 8601. Raises BadRequest."""
    if value is None:
        return None
    found: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str) and len(value) <= 64:
        try:
            moment = datetime.datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            found = (moment - _EPOCH) // _MILLISECOND
        except (ValueError, OverflowError):
            pass
    if found is None or not 0 <= found <= TIMESTAMP_MAX:
        raise BadRequest(f"{place} must be milliseconds or a time such as 2026-01-31T12:00:00Z, not {value!r:.40}.")
    return found


_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


@lru_cache(maxsize=256)
def iso_time(milliseconds: int | None) -> str | None:
    """Cached, because records of one batch have the same timestamp."""
    if milliseconds is None or not 0 <= milliseconds <= TIMESTAMP_MAX:
        return None
    moment = _EPOCH + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def headers_of(value: Any, place: str) -> list[Header]:
    """From `[{"name": …, "value": base64}]`. `key` is an alias of `name`. Raises BadRequest."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > HEADERS_MAX:
        raise BadRequest(f"{place} must be an array of up to {HEADERS_MAX} objects with name and value.")
    found: list[Header] = []
    for index, row in enumerate(value):
        name = row.get("name", row.get("key")) if isinstance(row, dict) else None
        content = row.get("value") if isinstance(row, dict) else None
        if not isinstance(name, str) or not (content is None or isinstance(content, str)):
            raise BadRequest(f"{place}[{index}] must have a name and a value in base64.")
        try:
            name.encode()
            found.append((name, None if content is None else base64.b64decode(content, validate=True)))
        except (binascii.Error, ValueError) as error:
            raise BadRequest(f"{place}[{index}].value is not base64: {error}.") from error
    return found
