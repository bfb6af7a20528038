"""Which schema the columns shall have: chosen on the driver, before the job begins, and sent along with the plan.

A choice is the latest version of a subject, one of its versions, a schema by its id, or a text in hand; `fields` keeps
only some of the columns. Resolving it also fetches the versions of the subject that are known by then, so that
executors need the registry only for what is registered later.
"""

from dataclasses import dataclass, field
from typing import Literal

from headgate.serdes import InvalidSchema, SchemaDefinition, avro_schema, json_schema, protobuf_schema
from headgate.serdes.client import RegistryClient, RegistryClientError, RegistryUnavailable, UnknownSchema
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.rules import rule_on_migration, rule_on_read
from headgate.serdes.schemas import RegisteredSchema
from headgate.spark_udfs.registry_options import RegistryOptions

Language = Literal["AVRO", "JSON", "PROTOBUF"]

WRITERS_MAX = 200
"""Versions of the subject that travel with the plan, the newest first: each is one request to the registry. Others are
fetched by the executors that meet them."""

_MAKERS = {"AVRO": avro_schema, "JSON": json_schema, "PROTOBUF": protobuf_schema}


class ReaderError(ValueError):
    """The reader's schema cannot be had; the text says what to do about it."""


class RegistryNotReady(ReaderError):
    """The registry does not answer at the start, where waiting would only hide it."""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema's text, and the texts of everything it refers to, by name, dependencies first."""

    language: Language
    text: str
    references: tuple[tuple[str, str], ...] = ()
    read_rule: str | None = None
    """A rule that would have to run when payloads of this schema are read. Rules are not executed."""
    migration_rule: str | None = None
    """A rule that would have to run when payloads are read as another version."""

    def whole(self) -> WholeSchema:
        return WholeSchema(_MAKERS[self.language](self.text), dict(self.references))


@dataclass(frozen=True, slots=True)
class Reader:
    """Picklable and hashable. `schema_id`, `subject` and `version` are None where the choice does not say."""

    schema: SchemaText
    fields: tuple[str, ...] | None = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    writers: tuple[tuple[int, SchemaText], ...] = ()
    """Writers' schemas known at the start, by id."""
    newest_version: int | None = None
    """Of the subject, at the start: what is above it is new."""

    @property
    def language(self) -> Language:
        return self.schema.language


@dataclass(frozen=True, slots=True)
class ReaderChoice:
    """At most one of `version`, `schema_id` and `schema`; the latest version of `subject` if none is given."""

    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    schema: str | SchemaDefinition | None = field(default=None)
    """A schema in hand; a plain text is Avro."""
    fields: tuple[str, ...] | None = None
    """Paths of the fields to keep (`serdes.columnar.projection`); all of them if None. Avro only."""

    def __post_init__(self) -> None:
        chosen = [
            name
            for name, given in (("version", self.version), ("schema_id", self.schema_id), ("schema", self.schema))
            if given is not None
        ]
        if len(chosen) > 1:
            raise ReaderError(f"{' and '.join(chosen)} exclude one another")
        if self.subject is None and (not chosen or self.version is not None):
            raise ReaderError("name the subject whose schema the columns shall have, such as subject='orders-value'")
        if self.fields is not None and not self.fields:
            raise ReaderError("fields is a list of one or more field names")

    def resolve(self, client: RegistryClient) -> Reader:
        """Ask the registry, on the driver. Raises `ReaderError`, with advice."""
        try:
            return self._resolved(client)
        except RegistryUnavailable as error:
            raise RegistryNotReady(advice(client, error)) from error
        except UnknownSchema as error:
            raise ReaderError(f"{self._wanted()} is not in the registry ({error}). {_HINT_UNKNOWN}") from error
        except RegistryClientError as error:
            raise ReaderError(f"{self._wanted()}: {error}") from error
        except InvalidSchema as error:
            raise ReaderError(f"{self._wanted()} is not a schema that can be read: {error}") from error

    def _wanted(self) -> str:
        if self.schema_id is not None:
            return f"schema id {self.schema_id}"
        if self.schema is not None:
            return "the schema given"
        return f"{'the latest version' if self.version is None else f'version {self.version}'} of {self.subject}"

    def _resolved(self, client: RegistryClient) -> Reader:
        if self.schema is not None:
            given = avro_schema(self.schema) if isinstance(self.schema, str) else self.schema
            found = RegisteredSchema(given, None, subject=self.subject)
        elif self.schema_id is not None:
            found = client.schema_by_id(self.schema_id)
        else:
            assert self.subject is not None
            found = client.latest(self.subject) if self.version is None else client.version(self.subject, self.version)
        newest = self._newest_version(client)
        reader = Reader(
            schema_text(client, found),
            self.fields,
            self.subject,
            found.version if self.schema is None else None,
            found.id,
            self._writers(client, found, newest or 0),
            newest,
        )
        _check(reader)
        return reader

    def _newest_version(self, client: RegistryClient) -> int | None:
        if self.subject is None:
            return None
        try:
            return client.latest(self.subject).version
        except UnknownSchema:
            # A schema in hand for a subject that is yet to come.
            return 0

    def _writers(
        self, client: RegistryClient, found: RegisteredSchema, newest: int
    ) -> tuple[tuple[int, SchemaText], ...]:
        writers: dict[int, SchemaText] = {}
        if found.id is not None:
            writers[found.id] = schema_text(client, found)
        for version in range(newest, max(newest - WRITERS_MAX, 0), -1):
            assert self.subject is not None
            try:
                known = client.version(self.subject, version)
                if known.id is not None:
                    writers[known.id] = schema_text(client, known)
            except UnknownSchema:
                # Deleted for good, it or what it refers to; payloads of it have no schema any more.
                continue
        return tuple(sorted(writers.items()))


_HINT_UNKNOWN = (
    "Check the spelling of the subject (for a topic's values it is usually the topic's name and -value), the "
    "registry's address, and that a schema was registered; or give schema= with the schema in hand."
)


def schema_text(client: RegistryClient, registered: RegisteredSchema) -> SchemaText:
    """With everything it refers to. Raises a `RegistryClientError`."""
    definition, rules = registered.definition, registered.rules or ()
    on_read, on_migration = rule_on_read(rules), rule_on_migration(rules)
    return SchemaText(
        definition.type.value,
        definition.text,
        tuple(client.reference_texts(definition).items()),
        None if on_read is None else str(on_read),
        None if on_migration is None else str(on_migration),
    )


def _check(reader: Reader) -> None:
    """Fail on the driver where every row would fail otherwise."""
    if reader.language != "AVRO":
        if reader.fields is not None:
            raise ReaderError("fields are chosen for Avro; select the columns after decoding instead")
        return
    from headgate.serdes.avro import parse

    parse(reader.schema.text, dict(reader.schema.references))


def advice(client: RegistryClient, error: Exception) -> str:
    """What to do about a registry that does not answer at the start."""
    tried = RegistryOptions(client.settings.urls).addresses
    return (
        f"the schema registry does not answer at {tried}: {error}. The job was not started. Check that the registry "
        "runs and can be reached from the driver and the executors; name it with registry='http://…', with "
        "spark.headgate.registry.url in Spark's configuration or with HEADGATE_REGISTRY_URL; and check "
        "registry.basic.auth.user.info or registry.bearer.auth.token where it asks who you are."
    )
