"""Replaces the marked sections of a documentation page with text generated from `serdes.outcome.Reason`.

A section starts with `<!-- poison-reasons: NAME -->` and ends with `<!-- end of poison-reasons -->`. NAME is a key of
`SECTIONS`.
"""

import re
from collections.abc import Callable
from typing import Final

from headgate.serdes.outcome import Reason

_SECTION: Final = re.compile(
    r"(?P<start><!-- poison-reasons: (?P<name>[a-z]+) -->\n).*?(?P<end><!-- end of poison-reasons -->\n)", re.DOTALL
)


def table() -> str:
    rows = [f"| `{reason.name}` | {reason.value} | {reason.condition} | {reason.advice} |" for reason in Reason]
    return "\n".join(["| reason | number | condition | what to do |", "|---|---|---|---|", *rows, ""])


def names() -> str:
    return "\n".join([*(f"- `{reason.name}`: {reason.message}" for reason in Reason), ""])


SECTIONS: Final[dict[str, Callable[[], str]]] = {"table": table, "names": names}


def rendered(page: str) -> str:
    """The page with all sections up to date."""
    return _SECTION.sub(lambda match: f"{match['start']}{SECTIONS[match['name']]()}{match['end']}", page)
