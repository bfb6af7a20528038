"""What becomes of a payload: `Decoded`, or `Poison` with the reason.

One enumeration of reasons serves HTTP, Spark, dead letters, metrics and the console. The numbers are written into
columns and must not change; 0 is kept for "decoded".
"""

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID


class Reason(IntEnum):
    NULL = 1
    """No payload where one is due."""
    TOO_SHORT = 2
    """Fewer bytes than the frame needs."""
    BAD_MAGIC = 3
    """The first byte is not 0."""
    UNKNOWN_SCHEMA = 4
    """The registry does not know the id."""
    TRUNCATED = 5
    """The body ends before the schema does."""
    CORRUPT = 6
    """Bytes no encoder writes: a bad varint, branch, boolean, length or UTF-8."""
    TRAILING_BYTES = 7
    """The schema is satisfied and bytes are left over."""
    UNRESOLVABLE = 8
    """The reader's schema cannot read what this writer's schema wrote."""
    INVALID_VALUE = 9
    """Well-formed, but it breaks a rule: an enum symbol, a decimal's precision, a constraint."""
    REGISTRY_UNAVAILABLE = 10
    """The schema could not be asked for; the payload itself may be fine."""
    TOO_DEEP = 11
    """Nested beyond the limit."""
    RULES_NOT_EXECUTED = 12
    """The schema has rules that must run on read, such as ENCRYPT, and they are not executed here."""


@dataclass(frozen=True, slots=True)
class Decoded:
    value: object
    schema_id: int | None
    """None where a record header named the schema by its guid."""
    schema_guid: UUID | None = None


@dataclass(frozen=True, slots=True)
class Poison:
    reason: Reason
    detail: str
    raw: bytes | None
    schema_id: int | None = None
    schema_guid: UUID | None = None
