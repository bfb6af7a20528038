"""Media types of the HTTP APIs, and content negotiation by the Accept header (RFC 9110, section 12.5.1)."""

from functools import lru_cache
from typing import Final

REGISTRY_V1: Final = "application/vnd.schemaregistry.v1+json"
REGISTRY: Final = "application/vnd.schemaregistry+json"
JSON: Final = "application/json"
OCTET_STREAM: Final = "application/octet-stream"
NDJSON: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
KAFKA_V2: Final = "application/vnd.kafka.v2+json"

REGISTRY_RESPONSES: Final = (REGISTRY_V1, REGISTRY, JSON)
"""Media types of responses, in order of preference."""
REGISTRY_REQUESTS: Final = frozenset({REGISTRY_V1, REGISTRY, JSON, OCTET_STREAM})

_accept_chars_max: Final = 4096
"""Longer headers count as `*/*`, so that negotiation stays cheap."""


@lru_cache(maxsize=1024)
def negotiate(accept: str, offered: tuple[str, ...] = REGISTRY_RESPONSES) -> str | None:
    """The offered type with the highest weight, the first one of equals. None if `accept` excludes all of them."""
    if not accept.strip() or len(accept) > _accept_chars_max:
        return offered[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best: str | None = None
    best_weight = 0.0
    for candidate in offered:
        weight = _weight(candidate, ranges)
        if weight > best_weight:
            best, best_weight = candidate, weight
    return best


def _range(part: str) -> tuple[str, str, float]:
    media, *parameters = part.split(";")
    main, _, sub = media.strip().lower().partition("/")
    weight = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                weight = min(max(float(value.strip()), 0.0), 1.0)
            except ValueError:
                weight = 0.0
    # Some old clients send "*" or "*/json", which the grammar does not allow, and mean "*/*".
    return (main, "*" if main == "*" else sub, weight)


def _weight(candidate: str, ranges: list[tuple[str, str, float]]) -> float:
    main, _, sub = candidate.partition("/")
    weight, precision = 0.0, -1
    for range_main, range_sub, range_weight in ranges:
        if (range_main, range_sub) == (main, sub):
            found = 2
        elif range_main == main and range_sub == "*":
            found = 1
        elif range_main == "*":
            found = 0
        else:
            continue
        if found > precision:
            weight, precision = range_weight, found
    return weight


def content_type(header: str) -> tuple[str, str]:
    """Media type and charset of a Content-Type header, both in lower case. The default charset is UTF-8."""
    media, *parameters = header.split(";")
    charset = "utf-8"
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return media.strip().lower(), charset
