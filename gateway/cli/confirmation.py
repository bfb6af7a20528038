"""Confirmation prompts of destructive commands."""

import sys

from headgate.gateway.cli.errors import UsageError


def confirm(question: str, *, yes: bool) -> bool:
    """Ask on the terminal, unless `--yes` is set. Without a terminal, `--yes` is required. Raises UsageError."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Standard input is not a terminal", next_step="add --yes to confirm")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
