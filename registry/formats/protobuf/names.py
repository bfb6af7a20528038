"""Full names: how they are joined, and how long they may be."""

from typing import Final

from headgate.registry.errors import InvalidSchema

FULL_NAME_CHARACTERS_MAX: Final = 1024
"""Every field has its full name in memory, which repeats those of the messages around it: without a bound on it, a
schema of 1 MB could need gigabytes. As long as a subject may be."""


def join(scope: str, name: str) -> str:
    """The full name of `name` inside `scope`. Raises InvalidSchema when it gets too long."""
    if len(scope) + len(name) > FULL_NAME_CHARACTERS_MAX:
        raise InvalidSchema(
            f"A full name has more than {FULL_NAME_CHARACTERS_MAX} characters", f"{shortened(scope)}.{shortened(name)}"
        )
    return f"{scope}.{name}" if scope else name


def shortened(text: str) -> str:
    """For messages: enough of a name to find it."""
    return text if len(text) <= 80 else text[:77] + "..."
