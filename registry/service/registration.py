"""Registers schemas, like Confluent's registry.

- The content determines the id. An id belongs to one context.
- A subject numbers its versions.
- Metadata and rules are inherited from the latest version and merged with the configured ones.
- A schema that is already registered is returned in any mode.
"""

from dataclasses import dataclass, replace

from headgate.registry import limits, references
from headgate.registry.errors import IncompatibleSchema, InvalidSchema, OperationNotPermitted, WorkLimitExceeded
from headgate.registry.model import Config, Content, Mode
from headgate.registry.service import schema_tags
from headgate.registry.service.compatibility_check import WorkLimits, check_next_version
from headgate.registry.service.schema_lookup import find_as_is, find_configured, fingerprint_in, with_inherited
from headgate.registry.service.scopes import config_in_scope, mode_in_scope
from headgate.registry.service.submitted_schema import Environment, SubmittedSchema, parse_submitted
from headgate.registry.storage.base import StoredVersion, StoreReader, StoreWriter, VersionKey
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class Examined:
    """A checked schema, with all data for storing it."""

    submitted: SubmittedSchema
    content: Content
    fingerprint: bytes
    id: int | None
    same: tuple[VersionKey, ...]
    next_version: int
    importing: bool


def register(
    environment: Environment,
    store: StoreWriter,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    now_ms: int,
    work_limits: WorkLimits | None = None,
) -> StoredVersion:
    """Register the schema if it is new, and return its version. Raises the error that prevents it."""
    examined = examine(environment, store, subject, submitted, normalize=normalize, work_limits=work_limits)
    return examined if isinstance(examined, StoredVersion) else _add(store, subject, examined, now_ms)


def examine(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    work_limits: WorkLimits | None = None,
) -> StoredVersion | Examined:
    """Do everything except writing: return the registered version, or the data for storing it.

    With `Environment.remembering`, `register` after `examine` does not repeat the expensive work while it blocks
    writers.
    """
    config = config_in_scope(store, environment.settings, subject)
    normalize = normalize or bool(config.normalize)
    submitted = _tagged(environment, store, subject, submitted)
    known = _known(environment, store, subject, submitted, config, normalize)
    if known is not None:
        return known

    mode = mode_in_scope(store, subject)
    _check_mode(subject, mode, submitted)
    importing = mode.takes_explicit_ids
    next_version = store.last_version(subject) + 1
    latest = store.latest(subject)
    if work_limits is not None and latest is not None:
        work_limits.check(latest)
        level = config.compatibility_level or environment.settings.compatibility_level
        if level.transitive and next_version > work_limits.versions_max:
            raise WorkLimitExceeded(f"There are {next_version - 1} versions to compare with")
    if not importing:
        submitted = _populated(environment, store, config, submitted, latest, next_version)
    elif not submitted.text.strip():
        raise InvalidSchema("Empty schema")
    # A schema with an id was accepted by another registry, so its text is not changed.
    verbatim = importing and submitted.id is not None
    strict = not verbatim and config.validates(submitted.type)
    submission = parse_submitted(
        environment, store, subject, submitted, normalize=normalize, strict=strict, verbatim=verbatim
    )
    content = submission.content
    fingerprint = fingerprint_in(store, subject.context, content)

    id = submitted.id
    known_id = store.id_of_content(subject.context, fingerprint, content.type)
    same = [] if known_id is None else store.versions_with_content(subject, fingerprint, content.type)
    if known_id is not None and id in (None, known_id):
        id = known_id
        live = [key for key in same if not key.deleted]
        if submitted.version == 0 and live:
            version = store.version(subject, live[0].version)
            assert version is not None
            return version

    if not importing:
        result = check_next_version(environment, store, config, submission, latest, work_limits)
        if not result.compatible:
            raise IncompatibleSchema(subject.qualified, result.messages)
    return Examined(submitted, content, fingerprint, id, tuple(same), next_version, importing)


def _known(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    config: Config,
    normalize: bool,
) -> StoredVersion | None:
    """The version that already has this schema. It is returned in any mode, so that producers of known schemas work."""
    if submitted.version > 0 or config.merges_content or submitted.propagate_tags or not submitted.text.strip():
        return None
    if not store.last_version(subject):
        return None
    if submitted.version == -1:
        found = find_as_is(environment, store, subject, submitted, normalize=normalize, deleted=False, latest_only=True)
    else:
        found = find_configured(environment, store, subject, submitted, config, normalize=normalize)
    return found if found is not None and submitted.id in (None, found.id) else None


def _tagged(
    environment: Environment, store: StoreReader, subject: Subject, submitted: SubmittedSchema
) -> SubmittedSchema:
    if not (submitted.tags_to_add or submitted.tags_to_remove):
        return submitted
    submission = parse_submitted(environment, store, subject, submitted, normalize=False, strict=False)
    text = schema_tags.retagged(
        submitted.type, submission.content.text, submitted.tags_to_add, submitted.tags_to_remove
    )
    # Without a requested version, this is the next version, and the metadata must contain its number.
    return replace(submitted, text=text, version=submitted.version or -1, tags_to_add=(), tags_to_remove=())


def _check_mode(subject: Subject, mode: Mode, submitted: SubmittedSchema) -> None:
    place = f"Subject {subject.qualified} in context {subject.qualified_context}"
    if mode.read_only:
        raise OperationNotPermitted(f"{place} is in read-only mode")
    if submitted.id is not None:
        if not mode.takes_explicit_ids:
            raise OperationNotPermitted(f"{place} is not in import mode")
        if not 0 <= submitted.id <= limits.ID_MAX:
            raise OperationNotPermitted(f"The id {submitted.id} is not between 0 and {limits.ID_MAX}")
    elif mode is not Mode.READWRITE:
        raise OperationNotPermitted(f"{place} is not in read-write mode")


def _populated(
    environment: Environment,
    store: StoreReader,
    config: Config,
    submitted: SubmittedSchema,
    latest: StoredVersion | None,
    next_version: int,
) -> SubmittedSchema:
    """The schema with inherited and configured metadata and rules."""
    if not submitted.text.strip():
        if latest is None:
            raise InvalidSchema("Empty schema")
        content = latest.content
        submitted = replace(submitted, type=content.type, text=content.text, references=content.references)
    if submitted.propagate_tags and latest is not None:
        tags = schema_tags.tags_of(latest.content.type, latest.content.text)
        if tags:
            text = environment.languages.parse(
                submitted.type,
                submitted.text,
                references.resolve(store, latest.subject, submitted.references, deleted=False),
            ).canonical
            submitted = replace(submitted, text=schema_tags.with_tags_of(submitted.type, text, tags))
    return with_inherited(config, submitted, None if latest is None else latest.content, next_version)


def _add(store: StoreWriter, subject: Subject, examined: Examined, now_ms: int) -> StoredVersion:
    content, fingerprint, id = examined.content, examined.fingerprint, examined.id
    version = examined.submitted.version if examined.submitted.version > 0 else examined.next_version
    if version != examined.next_version and not examined.importing:
        raise InvalidSchema("Version is not one more than previous version")
    if version > limits.VERSION_MAX:
        raise OperationNotPermitted(f"The highest version is {limits.VERSION_MAX}")
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
    for key in examined.same:
        # The new version replaces soft-deleted versions with the same content, unless another schema refers to them.
        replaceable = key.deleted and key.id == id and key.version < version
        if replaceable and not store.referrers(subject, key.version):
            store.remove_version(subject, key.version)
    added = StoredVersion(subject, version, id, content, fingerprint, now_ms)
    store.put_version(added)
    return added
