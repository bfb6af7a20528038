"""Full names: how to join them, and their maximum length."""

from typing import Final

from headgate.registry.errors import InvalidSchema

FULL_NAME_CHARACTERS_MAX: Final = 1024
"""Each field stores its full name, which contains the names of all enclosing messages. Without a limit, a schema of 1
MB could need gigabytes. Equal to the limit of subjects."""


def join(scope: str, name: str) -> str:
    """The full name of `name` inside `scope`. Raises InvalidSchema if it is too long."""
    if len(scope) + len(name) > FULL_NAME_CHARACTERS_MAX:
        raise InvalidSchema(
            f"A full name has more than {FULL_NAME_CHARACTERS_MAX} characters", f"{shortened(scope)}.{shortened(name)}"
        )
    return f"{scope}.{name}" if scope else name


def shortened(text: str) -> str:
    """The start of a name, for error messages."""
    return text if len(text) <= 80 else text[:77] + "..."
