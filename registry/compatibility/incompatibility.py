"""One difference that breaks readers: what it is, where it stands, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """Found while asking whether `reader` can read what `writer` wrote."""

    kind: str
    """The name people know, e.g. READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    """Where it stands in the schema, e.g. /fields/3/type/1."""
    message: str
    """One sentence that says what differs."""
    reader: str = ""
    """The reader's fragment at that place, shortened."""
    writer: str = ""
    """The writer's fragment at that place, shortened."""
    advice: str = ""
    """What to change to make it compatible, in plain words."""
    detail: str = ""
    """What a checker of Java's Avro reports besides the kind and the path: a name, the missing symbols."""


class Policy(StrEnum):
    """How strictly schemas are compared (Confluent's compatibilityPolicy)."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    """JSON Schema content models are compared less strictly."""
    LOGICAL = "LOGICAL"
    """As STRICT. Confluent also checks that Flink and Iceberg tables can follow the change; Headgate does not."""
