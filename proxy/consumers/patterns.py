"""Topic patterns of subscriptions. They match whole names, as in Java's consumers, and have a time limit.

Clients send the patterns, and matching a pattern can take exponential time. The `re` module has no timeout.
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
        raise BadRequest(f"A topic pattern can have at most {PATTERN_CHARS_MAX} characters.")
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise BadRequest(f"The topic pattern is not a valid regular expression: {error}") from error


def matching(pattern: str, topics: Iterable[str]) -> list[str]:
    """Returns the matching topics. Internal topics match only by their full name. Raises BadRequest after a timeout."""
    compiled = regex.compile(pattern)
    found = []
    for topic in topics:
        try:
            if compiled.fullmatch(topic, timeout=MATCH_SECONDS_MAX) is not None:
                found.append(topic)
        except TimeoutError as error:
            raise BadRequest("The topic pattern takes too long to match. Use a simpler one.") from error
    return [topic for topic in sorted(found) if not topic.startswith("__") or topic in pattern]
