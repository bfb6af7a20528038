"""Fields of a record that v2 and v3 share: where it goes, when it was, and its headers."""

import base64
import binascii
import datetime
from typing import Any

from proxy.errors import BadRequest
from proxy.producers.sender import Header

# Kafka's timestamps are signed 64-bit milliseconds.
TIMESTAMP_MAX = 2**63 - 1


def whole_number(value: Any, place: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{place} must be a whole number from 0 on, not {value!r:.40}.")
    return value


def timestamp_ms(value: Any, place: str) -> int | None:
    """Milliseconds since the epoch, or a time in ISO 8601."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= TIMESTAMP_MAX:
            return value
    elif isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            return int(moment.timestamp() * 1000)
    raise BadRequest(f"{place} must be milliseconds or a time such as 2026-01-31T12:00:00Z, not {value!r:.40}.")


def iso_time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def headers_of(value: Any, place: str) -> list[Header]:
    """v3's `[{"name": …, "value": base64}]`, which v2 takes as well; `key` is accepted for `name`."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest(f"{place} must be an array of objects with name and value.")
    found: list[Header] = []
    for index, row in enumerate(value):
        name = row.get("name", row.get("key")) if isinstance(row, dict) else None
        content = row.get("value") if isinstance(row, dict) else None
        if not isinstance(name, str) or not (content is None or isinstance(content, str)):
            raise BadRequest(f"{place}[{index}] must have a name and a value in base64.")
        try:
            found.append((name, base64.b64decode(content or "", validate=True)))
        except binascii.Error as error:
            raise BadRequest(f"{place}[{index}].value is not base64: {error}.") from error
    return found
