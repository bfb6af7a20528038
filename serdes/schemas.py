"""A schema as a program gives it, and as a registry knows it."""

from dataclasses import dataclass
from uuid import UUID

from headgate.registry.model import Reference, SchemaType
from headgate.serdes.rules import Rules


@dataclass(frozen=True, slots=True)
class SchemaDefinition:
    """A schema's text in its language, with the registered schemas it refers to by name."""

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
    """What the registry said about a schema. `id` is None where it was asked for by guid."""

    definition: SchemaDefinition
    id: int | None
    guid: UUID | None = None
    subject: str | None = None
    version: int | None = None
    rules: Rules | None = None
    """Its enabled rules; None where the registry's response did not contain the schema itself."""
