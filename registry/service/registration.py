"""Registering a schema, and finding one that is registered.

Follows Confluent's registry: content decides the id (one per context), a subject numbers its versions, metadata and
rules are inherited from the latest version and merged with the configured ones, what is known is answered in any mode.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from registry import limits, references
from registry.compatibility import levels
from registry.compatibility.incompatibility import Policy
from registry.compatibility.levels import Earlier, Verdict
from registry.errors import IncompatibleSchema, InvalidSchema, OperationNotPermitted, SchemaTooLarge, TakesLonger
from registry.formats.base import ParsedSchema
from registry.languages import Languages
from registry.model import (
    CONFLUENT_VERSION,
    RESERVED_FIELDS,
    Config,
    Content,
    Level,
    Metadata,
    Mode,
    Reference,
    RuleSet,
    SchemaType,
    merged_metadata,
    merged_rule_sets,
)
from registry.service import tagging
from registry.service.scopes import config_in_scope, mode_in_scope
from registry.service.tagging import TagChange
from registry.settings import RegistrySettings
from registry.storage.base import StoredVersion, StoreReader, StoreWriter, VersionKey
from registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class Candidate:
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


@dataclass(frozen=True, slots=True)
class Understood:
    """A candidate, parsed, in the form in which it is stored and compared."""

    parsed: ParsedSchema
    content: Content


def understand(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    candidate: Candidate,
    *,
    normalize: bool,
    strict: bool,
) -> Understood:
    """Parse a candidate that has a text. A `strict` one is new: its references must be live."""
    if len(candidate.text) > limits.schema_chars_max:
        raise SchemaTooLarge(len(candidate.text), limits.schema_chars_max)
    named = references.pinned(store, subject, candidate.references)
    try:
        texts = references.resolve(store, subject, named, deleted=not strict)
        parsed = environment.languages.parse(candidate.type, candidate.text, texts, strict=strict)
        text = parsed.canonical
        if normalize:
            text = parsed.normalized()
            named = tuple(sorted(set(named), key=lambda r: (r.name, r.subject, r.version)))
    except InvalidSchema as error:
        place = f" (at {error.path})" if error.path else ""
        reason = f"Invalid schema of type {candidate.type}, details: {error.reason}{place}"
        raise InvalidSchema(reason) from None
    content = Content(candidate.type, text, named, _nothing_if_empty(candidate.metadata), candidate.rule_set)
    return Understood(parsed, content)


def _nothing_if_empty(metadata: Metadata | None) -> Metadata | None:
    return None if metadata is None or metadata.empty else metadata


def stored_schema(environment: Environment, store: StoreReader, version: StoredVersion) -> ParsedSchema:
    """A stored version, parsed. It was accepted once, so it is taken as it is."""
    texts = references.resolve(store, version.subject, version.content.references, deleted=True)
    return environment.languages.parse(version.content.type, version.content.text, texts, strict=False)


def find(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    candidate: Candidate,
    *,
    normalize: bool,
    deleted: bool = False,
) -> StoredVersion | None:
    """The version of `subject` that is this schema, the latest first; with inherited metadata and rules if need be."""
    if not candidate.text.strip():
        return None
    config = config_in_scope(store, environment.settings, subject)
    return _find(environment, store, subject, candidate, config, normalize=normalize, deleted=deleted)


def _find(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    candidate: Candidate,
    config: Config,
    *,
    normalize: bool,
    deleted: bool = False,
) -> StoredVersion | None:
    normalize = normalize or bool(config.normalize)
    found = _find_as_is(environment, store, subject, candidate, normalize=normalize, deleted=deleted)
    if found is not None:
        return found
    latest = store.latest(subject)
    if latest is None:
        return None
    inherited = _with_inherited(config, candidate, latest.content, None)
    if (inherited.metadata, inherited.rule_set) == (candidate.metadata, candidate.rule_set):
        return None
    return _find_as_is(environment, store, subject, inherited, normalize=normalize, deleted=deleted)


def _find_as_is(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    candidate: Candidate,
    *,
    normalize: bool,
    deleted: bool,
    latest_only: bool = False,
) -> StoredVersion | None:
    understood = understand(environment, store, subject, candidate, normalize=normalize, strict=False)
    content = understood.content
    if latest_only:
        latest = store.latest(subject)
        return latest if latest is not None and _same(environment, store, understood, latest) else None
    for key in store.versions_with_content(subject, content.fingerprint(), content.type):
        if deleted or not key.deleted:
            return store.version(subject, key.version)
    # The same schema has another fingerprint when it is written with references or names its version in metadata.
    for key in store.lookalikes(subject, content.text):
        if key.deleted and not deleted:
            continue
        version = store.version(subject, key.version)
        if version is not None and _same(environment, store, understood, version):
            return version
    return None


def _same(environment: Environment, store: StoreReader, understood: Understood, stored: StoredVersion) -> bool:
    """Whether a stored version is the schema but for the version in its metadata, or written with references."""
    ours, theirs = understood.content, stored.content
    if ours.type is not theirs.type or ours.rule_set != theirs.rule_set:
        return False
    if not _same_metadata(ours.metadata, theirs.metadata, stored.version):
        return False
    if ours.text == theirs.text and ours.references == theirs.references:
        return True
    if ours.references or not theirs.references:
        return False
    resolved = environment.languages.resolved(understood.parsed)
    return resolved is not None and resolved == environment.languages.resolved(
        stored_schema(environment, store, stored)
    )


def _same_metadata(ours: Metadata | None, theirs: Metadata | None, version: int) -> bool:
    ours, theirs = ours or Metadata(), theirs or Metadata()
    asked, has = ours.properties.get(CONFLUENT_VERSION), theirs.properties.get(CONFLUENT_VERSION)
    if asked is not None and asked != (has if has is not None else str(version)):
        return False
    return ours.without_version() == theirs.without_version()


def register(
    environment: Environment,
    store: StoreWriter,
    subject: Subject,
    candidate: Candidate,
    *,
    normalize: bool,
    now_ms: int,
    compared_max: int | None = None,
) -> StoredVersion:
    """The version of `subject` that is this schema, added if it is new. Raises the error that says why not.

    `TakesLonger` says that the schema must be compared with more than `compared_max` versions.
    """
    config = config_in_scope(store, environment.settings, subject)
    normalize = normalize or bool(config.normalize)
    candidate = _tagged(environment, store, subject, candidate)
    known = _known(environment, store, subject, candidate, config, normalize)
    if known is not None:
        return known

    mode = mode_in_scope(store, subject)
    _check_mode(subject, mode, candidate)
    importing = mode.takes_explicit_ids
    next_version = store.last_version(subject) + 1
    latest = store.latest(subject)
    if not importing:
        candidate = _populated(environment, store, config, candidate, latest, next_version)
    elif not candidate.text.strip():
        raise InvalidSchema("Empty schema")
    strict = candidate.id is None and bool(config.validate_names)
    understood = understand(environment, store, subject, candidate, normalize=normalize, strict=strict)
    content = understood.content
    fingerprint = content.fingerprint()

    id = candidate.id
    known_id = store.id_of_content(subject.context, fingerprint, content.type)
    same = [] if known_id is None else store.versions_with_content(subject, fingerprint, content.type)
    if known_id is not None and id in (None, known_id):
        id = known_id
        live = [key for key in same if not key.deleted]
        if candidate.version == 0 and live:
            version = store.version(subject, live[0].version)
            assert version is not None
            return version

    if not importing:
        level = config.compatibility_level or environment.settings.compatibility_level
        if compared_max is not None and level.transitive and next_version > compared_max:
            raise TakesLonger(f"There are {next_version - 1} versions to compare with")
        verdict = judge(environment, store, config, understood, latest)
        if not verdict.compatible:
            raise IncompatibleSchema(subject.qualified, verdict.messages)
    return _add(store, subject, candidate, content, fingerprint, id, same, next_version, importing, now_ms)


def _known(
    environment: Environment,
    store: StoreWriter,
    subject: Subject,
    candidate: Candidate,
    config: Config,
    normalize: bool,
) -> StoredVersion | None:
    """The version that is this schema already; asked before the mode is, so that producers of known schemas go on."""
    if candidate.version > 0 or config.merges_content or candidate.propagate_tags or not candidate.text.strip():
        return None
    if not store.last_version(subject):
        return None
    if candidate.version == -1:
        found = _find_as_is(
            environment, store, subject, candidate, normalize=normalize, deleted=False, latest_only=True
        )
    else:
        found = _find(environment, store, subject, candidate, config, normalize=normalize)
    return found if found is not None and candidate.id in (None, found.id) else None


def _tagged(environment: Environment, store: StoreReader, subject: Subject, candidate: Candidate) -> Candidate:
    if not (candidate.tags_to_add or candidate.tags_to_remove):
        return candidate
    understood = understand(environment, store, subject, candidate, normalize=False, strict=False)
    text = tagging.retagged(candidate.type, understood.content.text, candidate.tags_to_add, candidate.tags_to_remove)
    # Without a version asked for, it is the next one: the metadata must say which.
    return replace(candidate, text=text, version=candidate.version or -1, tags_to_add=(), tags_to_remove=())


def _check_mode(subject: Subject, mode: Mode, candidate: Candidate) -> None:
    place = f"Subject {subject.qualified} in context {subject.qualified_context}"
    if mode.read_only:
        raise OperationNotPermitted(f"{place} is in read-only mode")
    if candidate.id is not None:
        if not mode.takes_explicit_ids:
            raise OperationNotPermitted(f"{place} is not in import mode")
        if not 0 <= candidate.id <= limits.id_max:
            raise OperationNotPermitted(f"The id {candidate.id} is not between 0 and {limits.id_max}")
    elif mode is not Mode.READWRITE:
        raise OperationNotPermitted(f"{place} is not in read-write mode")


def _populated(
    environment: Environment,
    store: StoreReader,
    config: Config,
    candidate: Candidate,
    latest: StoredVersion | None,
    next_version: int,
) -> Candidate:
    """With what it leaves to the latest version and to the configuration."""
    if not candidate.text.strip():
        if latest is None:
            raise InvalidSchema("Empty schema")
        content = latest.content
        candidate = replace(candidate, type=content.type, text=content.text, references=content.references)
    if candidate.propagate_tags and latest is not None:
        tags = tagging.tags_of(latest.content.type, latest.content.text)
        if tags:
            text = environment.languages.parse(
                candidate.type,
                candidate.text,
                references.resolve(store, latest.subject, candidate.references, deleted=False),
            ).canonical
            candidate = replace(candidate, text=tagging.retagged(candidate.type, text, tags, ()))
    return _with_inherited(config, candidate, None if latest is None else latest.content, next_version)


def _with_inherited(
    config: Config, candidate: Candidate, latest: Content | None, next_version: int | None
) -> Candidate:
    metadata, rule_set = candidate.metadata, candidate.rule_set
    if metadata is None and latest is not None:
        metadata = latest.metadata
    if rule_set is None and latest is not None:
        rule_set = latest.rule_set
    metadata = merged_metadata(merged_metadata(config.default_metadata, metadata), config.override_metadata)
    rule_set = merged_rule_sets(merged_rule_sets(config.default_rule_set, rule_set), config.override_rule_set)
    if next_version is not None and (
        candidate.version != 0 or (metadata is not None and CONFLUENT_VERSION in metadata.properties)
    ):
        metadata = (metadata or Metadata()).with_version(next_version)
    return replace(candidate, metadata=metadata, rule_set=rule_set)


def judge(
    environment: Environment, store: StoreReader, config: Config, understood: Understood, latest: StoredVersion | None
) -> Verdict:
    """What the configured level has against the schema after `latest`, and after what came before it."""
    level = config.compatibility_level or environment.settings.compatibility_level
    messages = _reserved_messages(environment, config, understood, latest)
    found: tuple[levels.Found, ...] = ()
    if level is not Level.NONE and latest is not None:
        verdict = levels.judge(
            environment.languages,
            level,
            Policy(config.compatibility_policy or Policy.STRICT),
            understood.parsed,
            _earlier(environment, store, config, level, understood.content, latest),
        )
        messages += verdict.messages
        found = verdict.found
    return _verdict(messages, found, config, level)


def _verdict(messages: list[str], found: tuple[levels.Found, ...], config: Config, level: Level) -> Verdict:
    if not messages:
        return levels.COMPATIBLE
    validates = "true" if config.validate_fields else "false"
    return Verdict((*messages, f"{{validateFields: '{validates}', compatibility: '{level}'}}"), found)


def _earlier(
    environment: Environment,
    store: StoreReader,
    config: Config,
    level: Level,
    content: Content,
    latest: StoredVersion,
) -> Iterator[Earlier]:
    """The versions that the level looks at, newest first: of the schema's group, if there are groups."""
    group = config.compatibility_group
    if group is None and not level.transitive:
        yield Earlier(latest.version, stored_schema(environment, store, latest))
        return
    for key in reversed(store.versions(latest.subject)):
        stored = None if key.deleted else store.version(latest.subject, key.version)
        if stored is None or (
            group is not None and _group(stored.content.metadata, group) != _group(content.metadata, group)
        ):
            continue
        yield Earlier(stored.version, stored_schema(environment, store, stored))
        if not level.transitive:
            return


def _group(metadata: Metadata | None, key: str) -> str | None:
    return None if metadata is None else metadata.properties.get(key)


def _reserved(content: Content) -> list[str]:
    listed = (content.metadata or Metadata()).properties.get(RESERVED_FIELDS, "")
    return [name.strip() for name in listed.split(",") if name.strip()]


def _reserved_messages(
    environment: Environment, config: Config, understood: Understood, latest: StoredVersion | None
) -> list[str]:
    if not config.validate_fields:
        return []
    ours = _reserved(understood.content)
    theirs = [] if latest is None else _reserved(latest.content)
    messages = [
        f"The new schema has reserved field {name} removed from its metadata "
        "which is present in the old schema's metadata."
        for name in theirs
        if name not in ours
    ]
    if ours:
        used = environment.languages.top_level_fields(understood.parsed)
        messages += [
            f"The new schema has field that conflicts with the reserved field {name}." for name in ours if name in used
        ]
    return messages


def _add(
    store: StoreWriter,
    subject: Subject,
    candidate: Candidate,
    content: Content,
    fingerprint: bytes,
    id: int | None,
    same: list[VersionKey],
    next_version: int,
    importing: bool,
    now_ms: int,
) -> StoredVersion:
    version = candidate.version if candidate.version > 0 else next_version
    if version != next_version and not importing:
        raise InvalidSchema("Version is not one more than previous version")
    if version > limits.version_max:
        raise OperationNotPermitted(f"Versions end at {limits.version_max}")
    if id is None:
        id = store.retired_id_of_content(subject.context, fingerprint, content.type)
    if id is None:
        id = store.allocate_id(subject.context)
    else:
        existing = store.schema(subject.context, id)
        if existing is not None and existing.content != content:
            raise OperationNotPermitted(
                f"Overwrite new schema with id {id} in context {subject.qualified_context} is not permitted."
            )
    for key in same:
        if key.deleted and key.id == id and key.version < version:
            store.remove_version(subject, key.version)
    added = StoredVersion(subject, version, id, content, fingerprint, now_ms)
    store.put_version(added)
    return added
