"""The registry's nouns: schemas, references, metadata and rules, as frozen values.

Pure data: parsing is `registry.formats`, decisions are `registry.service`, HTTP is `registry.api`.
"""

from dataclasses import dataclass
from enum import StrEnum


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A name used inside a schema, and the registered version that defines it."""

    name: str
    subject: str
    version: int
