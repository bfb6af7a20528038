"""One incompatible difference: kind, path, message and advice."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A difference that prevents `reader` from reading data of `writer`."""

    kind: str
    """The common name, for example READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    """The position in the schema, for example /fields/3/type/1."""
    message: str
    """One sentence that describes the difference."""
    reader: str = ""
    """The reader's fragment at that position, shortened."""
    writer: str = ""
    """The writer's fragment at that position, shortened."""
    advice: str = ""
    """How to make the schema compatible."""
    detail: str = ""
    """The additional detail of Java's checker: a name, or the missing symbols."""


class Policy(StrEnum):
    """How strictly schemas are compared (Confluent's compatibilityPolicy)."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    """JSON Schema content models are compared less strictly."""
    LOGICAL = "LOGICAL"
    """Same as STRICT. Confluent also checks Flink and Iceberg tables; Headgate does not."""
