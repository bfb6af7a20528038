"""The reader schema of a query and the writer schemas known when it starts. Sent to the executors with the plan."""

from dataclasses import dataclass, replace
from typing import Literal

from headgate.serdes import avro_schema, json_schema, protobuf_schema
from headgate.serdes.client import RegistryClient
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.rules import rule_on_migration, rule_on_read
from headgate.serdes.schemas import RegisteredSchema

Language = Literal["AVRO", "JSON", "PROTOBUF"]

_CONSTRUCTORS = {"AVRO": avro_schema, "JSON": json_schema, "PROTOBUF": protobuf_schema}

SUBJECTS_MAX = 50
"""Subjects of one query. Each is a column, which is null in the rows of the others."""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The text of a schema and of all schemas it references, by name, dependencies first."""

    language: Language
    text: str
    references: tuple[tuple[str, str], ...] = ()
    read_rule: str | None = None
    """A rule that applies when payloads of this schema are read. Rules are not executed."""
    migration_rule: str | None = None
    """A rule that applies when payloads are read as another version."""

    @classmethod
    def fetch(cls, client: RegistryClient, registered: RegisteredSchema) -> "SchemaText":
        """Fetch the referenced schemas as well. Raises a `RegistryClientError`."""
        definition, rules = registered.definition, registered.rules or ()
        on_read, on_migration = rule_on_read(rules), rule_on_migration(rules)
        return cls(
            definition.type.value,
            definition.text,
            tuple(client.reference_texts(definition).items()),
            None if on_read is None else str(on_read),
            None if on_migration is None else str(on_migration),
        )

    def whole(self) -> WholeSchema:
        return WholeSchema(_CONSTRUCTORS[self.language](self.text), dict(self.references))


@dataclass(frozen=True, slots=True)
class Reader:
    """Picklable and hashable. `schema_id`, `subject` and `version` are None if the choice does not determine them."""

    schema: SchemaText
    fields: tuple[str, ...] | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    writers: tuple[tuple[int, SchemaText], ...] = ()
    """Writer schemas known at the start, by schema id."""
    newest_version: int | None = None
    """The latest version of the subject at the start. Higher versions are new."""

    @property
    def language(self) -> Language:
        return self.schema.language

    @property
    def readers(self) -> "tuple[Reader, ...]":
        return (self,)


@dataclass(frozen=True, slots=True)
class TypedReader:
    """The readers of several subjects, for topics with several record types and for several topics.

    A payload is decoded by the reader of the subject that its schema belongs to. Picklable and hashable.
    """

    readers: tuple[Reader, ...]
    preferred: tuple[str, ...] = ()
    """Subjects that take precedence if a schema belongs to several: those of the topic."""

    def for_topic(self, topic: str) -> "TypedReader":
        """Prefer the subjects of the topic, by the TopicName and TopicRecordName strategies."""
        own = tuple(subject for subject in self.subjects if subject.startswith(f"{topic}-"))
        # `orders-eu-value` starts with the topic name `orders`, too.
        exact = (f"{topic}-key", f"{topic}-value")
        return replace(self, preferred=tuple(sorted(own, key=lambda subject: subject not in exact)))

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(reader.subject or "" for reader in self.readers)


AnyReader = Reader | TypedReader
