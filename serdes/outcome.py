"""The result of decoding a payload: `Decoded`, or `Poison` with a `Reason`.

HTTP responses, Spark columns, dead letters, metrics and the console all use the same reasons. `Reason` is the only
place that describes them: `python -m tests.reference` writes the tables in docs/ from it.
"""

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID


class Reason(IntEnum):
    """Why a payload is poison.

    The numbers are stored in columns and must not change. 0 means "decoded". Each member has a short message for error
    texts, the condition for the documentation, and advice for the operator.
    """

    message: str
    condition: str
    advice: str

    # The defaults serve type checkers only, for the lookup `Reason(4)`.
    def __new__(cls, number: int, message: str = "", condition: str = "", advice: str = "") -> "Reason":
        member = int.__new__(cls, number)
        member._value_ = number
        member.message = message
        member.condition = condition
        member.advice = advice
        return member

    NULL = (
        1,
        "the payload is null",
        "the payload is null where a value is required",
        "treat it as a tombstone, or correct the producer",
    )
    TOO_SHORT = (
        2,
        "the payload is shorter than its frame",
        "the frame is incomplete: fewer than 5 bytes, or a header of the wrong length",
        "use a registry serializer in the producer",
    )
    BAD_MAGIC = (
        3,
        "the first byte is not the magic byte",
        "the first byte of the payload or of the header is not a known magic byte",
        "use a registry serializer in the producer",
    )
    UNKNOWN_SCHEMA = (
        4,
        "the registry does not know the schema id",
        "the registry does not know the id or guid",
        "check the registry address and context, or register the schema, then re-drive",
    )
    TRUNCATED = (
        5,
        "the body ends before the value is complete",
        "the body ends before the value is complete",
        "compare the writer schema with the serializer of the producer",
    )
    CORRUPT = (
        6,
        "the body contains bytes that no encoder writes",
        "the body contains bytes that no encoder writes: a bad varint, union branch, boolean, length or UTF-8",
        "compare the writer schema with the serializer of the producer",
    )
    TRAILING_BYTES = (
        7,
        "bytes are left over after the value",
        "the value is complete and bytes are left over",
        "compare the writer schema with the serializer of the producer",
    )
    UNRESOLVABLE = (
        8,
        "the reader schema cannot read data of this writer schema",
        "the reader schema cannot read data of this writer schema, the schema is of another language, or it is invalid",
        "use a compatible reader schema, then re-drive",
    )
    INVALID_VALUE = (
        9,
        "the value violates a rule of its type or a limit",
        "the body is well-formed, but the value violates a rule of its type or a limit",
        "correct the value in the producer",
    )
    REGISTRY_UNAVAILABLE = (
        10,
        "the registry did not return the schema; the payload may be valid",
        "the registry did not return the schema; the payload may be valid",
        "re-drive when the registry is available",
    )
    TOO_DEEP = (
        11,
        "the value is nested too deeply",
        "more than 100 records, arrays and maps are nested",
        "reduce the nesting in the producer",
    )
    RULES_NOT_EXECUTED = (
        12,
        "the schema has rules that must run on read, and rules are not executed",
        "the schema has rules that must run on read (`ENCRYPT`, CEL, migrations); Headgate does not execute rules",
        "read the record with a client that executes rules",
    )
    TOO_LARGE = (
        13,
        "the value is too large as columns",
        "the value is valid, but as columns it exceeds the limit of one row (256 MiB by default)",
        "select fewer fields, or write smaller arrays and maps",
    )


@dataclass(frozen=True, slots=True)
class Decoded:
    value: object
    schema_id: int | None
    """None if a record header contains the guid of the schema."""
    schema_guid: UUID | None = None


@dataclass(frozen=True, slots=True)
class Poison:
    reason: Reason
    detail: str
    raw: bytes | None
    schema_id: int | None = None
    schema_guid: UUID | None = None
