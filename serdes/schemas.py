"""A schema in a program, and a registered schema."""

from dataclasses import dataclass
from uuid import UUID

from headgate.registry.model import Reference, SchemaType
from headgate.serdes.rules import Rules


@dataclass(frozen=True, slots=True)
class SchemaDefinition:
    """The text and language of a schema, with references to registered schemas."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


def avro_schema(text: str, references: tuple[Reference, ...] = ()) -> SchemaDefinition:
    return SchemaDefinition(SchemaType.AVRO, text, references)


def json_schema(text: str, references: tuple[Reference, ...] = ()) -> SchemaDefinition:
    return SchemaDefinition(SchemaType.JSON, text, references)


def protobuf_schema(text: str, references: tuple[Reference, ...] = ()) -> SchemaDefinition:
    return SchemaDefinition(SchemaType.PROTOBUF, text, references)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A registered schema. `id` is None after a lookup by guid."""

    definition: SchemaDefinition
    id: int | None
    guid: UUID | None = None
    subject: str | None = None
    version: int | None = None
    rules: Rules | None = None
    """The enabled rules. None if the response did not contain the schema itself."""
