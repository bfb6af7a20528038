"""What ends a command early, and the exit code that says so.

An error tells what happened, why, and what to try next. `gateway.cli.app` prints it on stderr; commands raise and print
nothing. The codes are the same for every command, so that scripts can tell "no" from "failed" from "nobody there".
"""

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    ANSWER_IS_NO = 3
    UNREACHABLE = 4
    INTERRUPTED = 130


class CommandError(Exception):
    """The command could not do what was asked."""

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step


class UsageError(CommandError):
    """The arguments make no sense together, or one of them has no meaning."""

    exit_code = ExitCode.USAGE


class AnswerIsNo(CommandError):
    """The question was understood and answered: not found, not compatible, not allowed now."""

    exit_code = ExitCode.ANSWER_IS_NO


class Unreachable(CommandError):
    """No server answered."""

    exit_code = ExitCode.UNREACHABLE
