"""Errors of commands and their exit codes.

An error says what happened, why, and what to try next. Commands raise it, `gateway.cli.app` prints it to stderr. All
commands use the same exit codes, so scripts can distinguish a negative result, a failure and an unreachable server.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    ANSWER_IS_NO = 3
    UNREACHABLE = 4
    CHANGED = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """The command failed."""

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step


class UsageError(CommandError):
    """Arguments are invalid or cannot be combined."""

    exit_code = ExitCode.USAGE


class AnswerIsNo(CommandError):
    """The command ran and the result is negative: not found, not compatible, not confirmed."""

    exit_code = ExitCode.ANSWER_IS_NO


class Unreachable(CommandError):
    """No server responded."""

    exit_code = ExitCode.UNREACHABLE
