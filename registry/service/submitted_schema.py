"""A schema in a request, and its parsed form with resolved references."""

from dataclasses import dataclass

from headgate.registry import limits, references
from headgate.registry.errors import InvalidSchema, SchemaTooLarge
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Content, Metadata, Reference, RuleSet, SchemaType
from headgate.registry.service.schema_tags import TagChange
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.base import StoredVersion, StoreReader
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class SubmittedSchema:
    """A schema as submitted by a client. An empty text means the text of the latest version."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int = 0
    """0: any version. -1: the next version, unless the schema is the latest version. Otherwise exactly this version."""
    id: int | None = None
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()
    propagate_tags: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """The dependencies of all use cases besides the store."""

    languages: Languages
    settings: RegistrySettings

    def remembering(self) -> "Environment":
        """A copy with a cache for one request that does the same work twice."""
        return Environment(self.languages.remembering(), self.settings)


@dataclass(frozen=True, slots=True)
class ParsedSubmission:
    """A submitted schema: parsed, and as it is stored and compared."""

    parsed: ParsedSchema
    content: Content


def parse_submitted(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    strict: bool,
    verbatim: bool = False,
) -> ParsedSubmission:
    """Parse a submitted schema that has a text.

    `strict` is for new schemas: references must be live. `verbatim` keeps the original text.
    """
    if len(submitted.text) > limits.SCHEMA_CHARS_MAX:
        raise SchemaTooLarge(len(submitted.text), limits.SCHEMA_CHARS_MAX)
    named = references.pinned(store, subject, submitted.references)
    try:
        texts = references.resolve(store, subject, named, deleted=not strict)
        parsed = environment.languages.parse(submitted.type, submitted.text, texts, strict=strict)
        text = submitted.text if verbatim else parsed.canonical
        if normalize and not verbatim:
            text = environment.languages.normalized(parsed)
            named = tuple(sorted(set(named), key=lambda r: (r.name, r.subject, r.version)))
    except InvalidSchema as error:
        place = f" (at {error.path})" if error.path else ""
        reason = f"Invalid schema of type {submitted.type}, details: {error.reason}{place}"
        raise InvalidSchema(reason) from None
    content = Content(submitted.type, text, named, _nothing_if_empty(submitted.metadata), submitted.rule_set)
    return ParsedSubmission(parsed, content)


def _nothing_if_empty(metadata: Metadata | None) -> Metadata | None:
    return None if metadata is None or metadata.empty else metadata


def stored_schema(environment: Environment, store: StoreReader, version: StoredVersion) -> ParsedSchema:
    """Parse a stored version, without the checks for new schemas."""
    texts = references.resolve(store, version.subject, version.content.references, deleted=True)
    return environment.languages.parse(version.content.type, version.content.text, texts, strict=False)
