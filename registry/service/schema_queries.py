"""Queries for registered schemas: by id, guid, subject and version, and lists.

If the default context does not have a subject, the query searches the other contexts, as Confluent's registry does.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from headgate.registry import limits
from headgate.registry.errors import InvalidVersion, SchemaNotFound, SubjectNotFound, VersionNotFound
from headgate.registry.model import Content
from headgate.registry.service import schema_tags
from headgate.registry.service.schema_lookup import find
from headgate.registry.service.schema_tags import TagChange
from headgate.registry.service.scopes import unaliased
from headgate.registry.service.submitted_schema import Environment, SubmittedSchema, stored_schema
from headgate.registry.storage.base import Deleted, Selection, StoredVersion, StoreReader, Use
from headgate.registry.subjects import Subject

LATEST: Final = -1


def version_number(text: str) -> int:
    """Parse 1 to 2^31-1, or return `LATEST` for "latest" and -1."""
    stripped = text.strip()
    if stripped.lower() == "latest" or stripped == "-1":
        return LATEST
    if not (stripped.isascii() and stripped.isdigit()) or not 1 <= int(stripped[:20]) <= limits.VERSION_MAX:
        raise InvalidVersion(text)
    return int(stripped)


def _get(store: StoreReader, subject: Subject, version: int, *, deleted: bool) -> StoredVersion | None:
    if version == LATEST:
        return store.latest(subject)
    found = store.version(subject, version)
    return None if found is None or (found.deleted and not deleted) else found


def _namesakes(store: StoreReader, subject: Subject) -> Iterator[Subject]:
    """Subjects with the same name in other contexts, if the name has no context."""
    if subject.in_default_context and subject.name:
        for context in store.contexts()[1:]:
            yield subject.moved_to(context)


def get_version(store: StoreReader, subject: Subject, version: int, *, deleted: bool = False) -> StoredVersion:
    found = _get(store, subject, version, deleted=deleted)
    if found is not None:
        return found
    for other in _namesakes(store, subject):
        found = _get(store, other, version, deleted=deleted)
        if found is not None:
            return found
    if not store.has_subject(subject, deleted=deleted):
        raise SubjectNotFound(subject.qualified)
    raise VersionNotFound(version)


def list_versions(store: StoreReader, subject: Subject, deleted: Deleted, *, as_negative: bool = False) -> list[int]:
    """The versions, ascending. With `as_negative`, the numbers of soft-deleted versions are negative."""
    if not store.has_subject(subject, deleted=deleted is not Deleted.HIDDEN or as_negative):
        raise SubjectNotFound(subject.qualified)
    keys = store.versions(subject)
    if as_negative:
        return [-key.version if key.deleted else key.version for key in keys]
    shown = {Deleted.HIDDEN: (False,), Deleted.SHOWN: (False, True), Deleted.ONLY: (True,)}[deleted]
    return [key.version for key in keys if key.deleted in shown]


def by_id(store: StoreReader, id: int, subject: Subject | None) -> StoredVersion:
    """The schema of an id in the context of the subject, preferably the version of that subject."""
    wanted = subject or Subject.parse("")
    found = _by_id(store, id, wanted)
    if found is None:
        raise SchemaNotFound(id)
    return found


def _by_id(store: StoreReader, id: int, subject: Subject) -> StoredVersion | None:
    if not subject.name:
        return store.schema(subject.context, id)
    for place in (subject, *_namesakes(store, subject)):
        uses = [use for use in store.uses(place.context, id) if use.subject == place]
        if uses:
            best = min(uses, key=lambda use: (use.deleted, -use.version))
            return store.version(place, best.version)
    return store.schema(subject.context, id)


def uses_of_id(store: StoreReader, id: int, subject: Subject | None, *, deleted: bool) -> list[Use]:
    found = _by_id(store, id, subject or Subject.parse(""))
    if found is None:
        raise SchemaNotFound
    return [use for use in store.uses(found.subject.context, id) if deleted or not use.deleted]


def _fingerprint(guid: str) -> bytes | None:
    try:
        return uuid.UUID(guid).bytes
    except ValueError:
        return None


def by_guid(store: StoreReader, guid: str) -> StoredVersion:
    fingerprint = _fingerprint(guid)
    for context, id in [] if fingerprint is None else store.ids_of_fingerprint(fingerprint):
        found = store.schema(context, id)
        if found is not None:
            return found
    raise SchemaNotFound(guid)


def ids_of_guid(store: StoreReader, guid: str) -> list[tuple[str, int]]:
    fingerprint = _fingerprint(guid)
    ids = [] if fingerprint is None else store.ids_of_fingerprint(fingerprint)
    if not ids:
        raise SchemaNotFound(guid)
    return ids


def look_up(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    deleted: bool,
) -> StoredVersion:
    """The version of the subject that has this schema."""
    for place in (subject, *_namesakes(store, subject)):
        if not store.has_subject(place, deleted=True):
            continue
        found = find(environment, store, place, submitted, normalize=normalize, deleted=deleted)
        if found is not None:
            return found
    if not store.has_subject(subject, deleted=deleted):
        raise SubjectNotFound(subject.qualified)
    raise SchemaNotFound


def latest_with_metadata(
    store: StoreReader, subject: Subject, wanted: dict[str, str], *, deleted: bool
) -> StoredVersion:
    for key in reversed(store.versions(subject)):
        if key.deleted and not deleted:
            continue
        version = store.version(subject, key.version)
        if version is None or version.content.metadata is None:
            continue
        if wanted.items() <= version.content.metadata.properties.items():
            return version
    if not store.has_subject(subject, deleted=deleted):
        raise SubjectNotFound(subject.qualified)
    raise SchemaNotFound


def referenced_by(store: StoreReader, subject: Subject, version: int, *, deleted: bool) -> list[int]:
    """The ids of schemas that refer to the version. `deleted` includes soft-deleted versions."""
    target = get_version(store, subject, version, deleted=True)
    return sorted({r.id for r in store.referrers(target.subject, target.version) if r.live or deleted})


@dataclass(frozen=True, slots=True)
class Listed:
    version: StoredVersion
    aliases: tuple[str, ...] = ()


def list_schemas(
    store: StoreReader,
    selection: Selection,
    deleted: Deleted,
    *,
    latest_only: bool,
    aliases: bool,
    rule_type: str,
    offset: int,
    limit: int,
) -> list[Listed]:
    """A page of versions, by subject. `aliases` includes the subjects of matching aliases."""
    if not aliases and not rule_type:
        page = islice(store.walk(selection, deleted, latest_only=latest_only, skip=offset), limit)
        return [Listed(version) for version in page]
    names: dict[Subject, list[str]] = {}
    walks = [store.walk(selection, deleted, latest_only=latest_only)]
    if aliases:
        for scope, config in store.configs(selection):
            if config.alias and scope.name:
                names.setdefault(scope.sibling(config.alias), []).append(scope.qualified)
        for target in names:
            if not _selects(selection, target):
                exact = Selection(target.context, target.name)
                walks.append(v for v in store.walk(exact, deleted, latest_only=latest_only) if v.subject == target)
    listed: list[Listed] = []
    skipped = 0
    for walk in walks:
        for version in walk:
            if rule_type and not _has_rule_type(version.content, rule_type):
                continue
            if skipped < offset and len(walks) == 1:
                skipped += 1
                continue
            listed.append(Listed(version, tuple(names.get(version.subject, ()))))
            if len(walks) == 1 and len(listed) >= limit:
                return listed
    if len(walks) > 1:
        listed.sort(key=lambda one: (one.version.subject.qualified, one.version.version))
        return listed[offset : offset + limit]
    return listed


def _selects(selection: Selection, subject: Subject) -> bool:
    return selection.context in (None, subject.context) and subject.name.startswith(selection.prefix)


def _has_rule_type(content: Content, rule_type: str) -> bool:
    return content.rule_set is not None and any(rule.type == rule_type for rule in content.rule_set)


def formatted(environment: Environment, store: StoreReader, version: StoredVersion, form: str) -> str:
    """The text of a version in the requested format."""
    if not form.strip():
        return version.content.text
    return environment.languages.formatted(stored_schema(environment, store, version), form.strip().lower())


def qualified_references(version: StoredVersion) -> StoredVersion:
    """The version with contexts in all its references."""
    references = tuple(
        replace(reference, subject=version.subject.sibling(reference.subject).qualified)
        for reference in version.content.references
    )
    return replace(version, content=replace(version.content, references=references))


def tags_found(version: StoredVersion, wanted: Sequence[str]) -> tuple[TagChange, ...]:
    tags = schema_tags.tags_of(version.content.type, version.content.text)
    return tags if "*" in wanted else tuple(one for one in tags if set(one.tags) & set(wanted))


def subject_of(store: StoreReader, text: str) -> Subject:
    """The subject of a path, with its alias resolved."""
    return unaliased(store, Subject.parse(text))
