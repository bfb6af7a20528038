"""Asks before something is destroyed."""

import sys

from headgate.gateway.cli.errors import UsageError


def confirm(question: str, *, yes: bool) -> bool:
    """The answer of the person at the terminal; without one, `--yes` must have been given. Raises UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is nobody to ask", next_step="give --yes if you mean it")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
