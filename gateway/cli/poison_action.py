"""What `headgate consume` does with records that cannot be decoded."""

from enum import StrEnum


class PoisonAction(StrEnum):
    REPORT = "report"
    SKIP = "skip"
    FAIL = "fail"
    DEAD_LETTER = "dead-letter"
