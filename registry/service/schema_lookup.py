"""Finds the version of a subject that has a given schema, with or without inherited metadata and rules."""

from dataclasses import replace

from headgate.registry.model import CONFLUENT_VERSION, Config, Content, Metadata, merged_metadata, merged_rule_sets
from headgate.registry.service.scopes import config_in_scope
from headgate.registry.service.submitted_schema import (
    Environment,
    ParsedSubmission,
    SubmittedSchema,
    parse_submitted,
    stored_schema,
)
from headgate.registry.storage.base import StoredVersion, StoreReader
from headgate.registry.subjects import Subject


def find(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    deleted: bool = False,
) -> StoredVersion | None:
    """The newest version of `subject` that has this schema, if necessary with inherited metadata and rules."""
    if not submitted.text.strip():
        return None
    config = config_in_scope(store, environment.settings, subject)
    return find_configured(environment, store, subject, submitted, config, normalize=normalize, deleted=deleted)


def find_configured(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    config: Config,
    *,
    normalize: bool,
    deleted: bool = False,
) -> StoredVersion | None:
    normalize = normalize or bool(config.normalize)
    found = find_as_is(environment, store, subject, submitted, normalize=normalize, deleted=deleted)
    if found is not None:
        return found
    latest = store.latest(subject)
    if latest is None:
        return None
    inherited = with_inherited(config, submitted, latest.content, None)
    if (inherited.metadata, inherited.rule_set) == (submitted.metadata, submitted.rule_set):
        return None
    return find_as_is(environment, store, subject, inherited, normalize=normalize, deleted=deleted)


def find_as_is(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    *,
    normalize: bool,
    deleted: bool,
    latest_only: bool = False,
) -> StoredVersion | None:
    submission = parse_submitted(environment, store, subject, submitted, normalize=normalize, strict=False)
    content = submission.content
    if latest_only:
        latest = store.latest(subject)
        return latest if latest is not None and _same(environment, store, submission, latest) else None
    contents = [content]
    if content.text != submitted.text:
        # An imported schema keeps its original text.
        contents.append(replace(content, text=submitted.text))
    for each in contents:
        fingerprint = fingerprint_in(store, subject.context, each)
        for key in store.versions_with_content(subject, fingerprint, content.type):
            if deleted or not key.deleted:
                return store.version(subject, key.version)
    # The same schema has another fingerprint if it contains references or has its version in the metadata.
    for key in store.lookalikes(subject, content.text):
        if key.deleted and not deleted:
            continue
        version = store.version(subject, key.version)
        if version is not None and _same(environment, store, submission, version):
            return version
    return None


def fingerprint_in(store: StoreReader, context: str, content: Content) -> bytes:
    """The fingerprint of the content in a context: the unambiguous one if another content has the usual one."""
    fingerprint = content.fingerprint()
    id = store.id_of_content(context, fingerprint, content.type)
    known = None if id is None else store.schema(context, id)
    return fingerprint if known is None or known.content == content else content.unambiguous_fingerprint()


def _same(environment: Environment, store: StoreReader, submission: ParsedSubmission, stored: StoredVersion) -> bool:
    """Whether a stored version has the same schema, ignoring the version in its metadata and how references are
    written.
    """
    ours, theirs = submission.content, stored.content
    if ours.type is not theirs.type or ours.rule_set != theirs.rule_set:
        return False
    if not _same_metadata(ours.metadata, theirs.metadata, stored.version):
        return False
    if ours.text == theirs.text and ours.references == theirs.references:
        return True
    if ours.references or not theirs.references:
        return False
    # Compare normalized texts, with sorted properties.
    parsed = environment.languages.parse(ours.type, ours.text, strict=False)
    resolved = environment.languages.resolved(parsed)
    return resolved is not None and resolved == environment.languages.resolved(
        stored_schema(environment, store, stored)
    )


def _same_metadata(ours: Metadata | None, theirs: Metadata | None, version: int) -> bool:
    ours, theirs = ours or Metadata(), theirs or Metadata()
    requested, has = ours.properties.get(CONFLUENT_VERSION), theirs.properties.get(CONFLUENT_VERSION)
    if requested is not None and requested != (has if has is not None else str(version)):
        return False
    return ours.without_version() == theirs.without_version()


def with_inherited(
    config: Config, submitted: SubmittedSchema, latest: Content | None, next_version: int | None
) -> SubmittedSchema:
    metadata, rule_set = submitted.metadata, submitted.rule_set
    if metadata is None and latest is not None:
        metadata = latest.metadata
    if rule_set is None and latest is not None:
        rule_set = latest.rule_set
    metadata = merged_metadata(merged_metadata(config.default_metadata, metadata), config.override_metadata)
    rule_set = merged_rule_sets(merged_rule_sets(config.default_rule_set, rule_set), config.override_rule_set)
    if next_version is not None and (
        submitted.version != 0 or (metadata is not None and CONFLUENT_VERSION in metadata.properties)
    ):
        metadata = (metadata or Metadata()).with_version(next_version)
    return replace(submitted, metadata=metadata, rule_set=rule_set)
