"""Choose the reader schema on the driver, before the job starts.

The choice is the latest version of a subject, a specific version, a schema id, or a schema text. `fields` selects some
of the columns. Resolving the choice also fetches the known versions of the subject, so that executors ask the registry
only for schemas that are registered later.
"""

from dataclasses import dataclass, field

from headgate.serdes import InvalidSchema, SchemaDefinition, avro_schema
from headgate.serdes.client import RegistryClient, RegistryClientError, RegistryUnavailable, UnknownSchema
from headgate.serdes.schemas import RegisteredSchema
from headgate.spark_udfs.spec.reader import SUBJECTS_MAX, Reader, SchemaText, TypedReader
from headgate.spark_udfs.spec.registry_options import RegistryOptions

WRITERS_MAX = 200
"""Versions of the subject that travel with the plan, newest first. Each is one registry request. Executors fetch older
versions when they meet them."""


class ReaderError(ValueError):
    """The reader schema is not available. The message contains advice."""


class RegistryNotReady(ReaderError):
    """The registry did not respond when the job started."""


@dataclass(frozen=True, slots=True)
class ReaderChoice:
    """At most one of `version`, `schema_id` and `schema`. None of them selects the latest version of `subject`."""

    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None
    schema: str | SchemaDefinition | None = field(default=None)
    """An explicit schema. A plain string is Avro."""
    fields: tuple[str, ...] | None = None
    """Paths of the selected fields (`serdes.columnar.decode.projection`); None selects all. Avro only."""

    def __post_init__(self) -> None:
        chosen = [
            name
            for name, given in (("version", self.version), ("schema_id", self.schema_id), ("schema", self.schema))
            if given is not None
        ]
        if len(chosen) > 1:
            raise ReaderError(f"{' and '.join(chosen)} are mutually exclusive")
        if self.subject is None and (not chosen or self.version is not None):
            raise ReaderError("a subject is required, such as subject='orders-value'")
        if self.fields is not None and not self.fields:
            raise ReaderError("fields must contain at least one field name")

    def resolve(self, client: RegistryClient) -> Reader:
        """Fetch the schemas from the registry. Raises `ReaderError`."""
        try:
            return self._resolve(client)
        except RegistryUnavailable as error:
            raise RegistryNotReady(unavailable_message(client, error)) from error
        except UnknownSchema as error:
            raise ReaderError(f"{self._description()} is not in the registry ({error}). {_HINT_UNKNOWN}") from error
        except RegistryClientError as error:
            raise ReaderError(f"{self._description()}: {error}") from error
        except InvalidSchema as error:
            raise ReaderError(f"{self._description()} is not a readable schema: {error}") from error

    def _description(self) -> str:
        if self.schema_id is not None:
            return f"schema id {self.schema_id}"
        if self.schema is not None:
            return "the given schema"
        return f"{'the latest version' if self.version is None else f'version {self.version}'} of {self.subject}"

    def _resolve(self, client: RegistryClient) -> Reader:
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
            SchemaText.fetch(client, found),
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
            # An explicit schema for a subject that does not exist yet.
            return 0

    def _writers(
        self, client: RegistryClient, found: RegisteredSchema, newest: int
    ) -> tuple[tuple[int, SchemaText], ...]:
        writers: dict[int, SchemaText] = {}
        if found.id is not None:
            writers[found.id] = SchemaText.fetch(client, found)
        for version in range(newest, max(newest - WRITERS_MAX, 0), -1):
            assert self.subject is not None
            try:
                known = client.version(self.subject, version)
                if known.id is not None:
                    writers[known.id] = SchemaText.fetch(client, known)
            except UnknownSchema:
                # Permanently deleted, or one of its references is. Its payloads have no schema any more.
                continue
        return tuple(sorted(writers.items()))


@dataclass(frozen=True, slots=True)
class TypedChoice:
    """The latest versions of several subjects."""

    subjects: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [subject.lower() for subject in self.subjects]
        twice = [subject for subject in self.subjects if names.count(subject.lower()) > 1]
        if twice:
            raise ReaderError(f"the subjects become columns and must differ, also in lower case: {', '.join(twice)}")
        if not 2 <= len(self.subjects) <= SUBJECTS_MAX:
            raise ReaderError(f"2 to {SUBJECTS_MAX} subjects can be read together, not {len(self.subjects)}")

    def resolve(self, client: RegistryClient) -> TypedReader:
        """Fetch the schemas from the registry. Raises `ReaderError`."""
        return TypedReader(tuple(ReaderChoice(subject).resolve(client) for subject in self.subjects))


AnyChoice = ReaderChoice | TypedChoice

_HINT_UNKNOWN = (
    "Check the spelling of the subject (by default the topic name and -value), the address of the registry, and that "
    "a schema is registered; or pass the schema text with schema=."
)


def _check(reader: Reader) -> None:
    """Fail on the driver if every row would fail."""
    if reader.language != "AVRO":
        if reader.fields is not None:
            raise ReaderError("fields is supported for Avro only; select the columns after decoding")
        return
    from headgate.serdes.avro import parse

    parse(reader.schema.text, dict(reader.schema.references))


def unavailable_message(client: RegistryClient, error: Exception) -> str:
    """The error message for a registry that does not respond when the job starts."""
    tried = RegistryOptions(client.settings.urls).addresses
    return (
        f"The schema registry at {tried} does not respond: {error}. The job was not started. Check that the registry "
        "is running and reachable from the driver and the executors. Set its address with registry='http://…', "
        "spark.headgate.registry.url or HEADGATE_REGISTRY_URL. If it requires authentication, set "
        "registry.basic.auth.user.info or registry.bearer.auth.token."
    )
