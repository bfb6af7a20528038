"""Topic patterns of subscriptions, matched whole as Java's consumers do, and never for longer than a bounded time.

A pattern comes from a client: the standard library's matcher could be kept busy for ever by one.
"""

from collections.abc import Iterable
from typing import Final

import regex

from headgate.proxy.errors import BadRequest

PATTERN_CHARS_MAX: Final = 1000
MATCH_SECONDS_MAX: Final = 0.05


def check_pattern(pattern: str) -> None:
    """Raises BadRequest."""
    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadRequest(f"A topic pattern has at most {PATTERN_CHARS_MAX} characters.")
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise BadRequest(f"The topic pattern is not a regular expression: {error}") from error


def matching(pattern: str, topics: Iterable[str]) -> list[str]:
    """Raises BadRequest for a pattern that takes too long. Internal topics are matched only by their own names."""
    compiled = regex.compile(pattern)
    found = []
    for topic in topics:
        try:
            if compiled.fullmatch(topic, timeout=MATCH_SECONDS_MAX) is not None:
                found.append(topic)
        except TimeoutError as error:
            raise BadRequest("The topic pattern takes too long to match; make it simpler.") from error
    return [topic for topic in sorted(found) if not topic.startswith("__") or topic in pattern]
