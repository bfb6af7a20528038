"""A schema as a client sends it, and what it is once submission: parsed, canonical, its references followed."""

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
    """A schema as a client sent it. An empty text stands for that of the latest version."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int = 0
    """0: any; -1: the next, if it is not the latest already; else exactly this one."""
    id: int | None = None
    tags_to_add: tuple[TagChange, ...] = ()
    tags_to_remove: tuple[TagChange, ...] = ()
    propagate_tags: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """What every use case needs besides the store."""

    languages: Languages
    settings: RegistrySettings

    def remembering(self) -> "Environment":
        """For one request that goes through the same work twice."""
        return Environment(self.languages.remembering(), self.settings)


@dataclass(frozen=True, slots=True)
class ParsedSubmission:
    """A submitted, parsed, in the form in which it is stored and compared."""

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
    """Parse a submitted that has a text. A `strict` one is new: its references must be live.

    A `verbatim` one keeps its text as it came.
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
    """A stored version, parsed. It was accepted once, so it is taken as it is."""
    texts = references.resolve(store, version.subject, version.content.references, deleted=True)
    return environment.languages.parse(version.content.type, version.content.text, texts, strict=False)
