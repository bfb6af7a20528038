"""Deleting: first softly, so that readers of old data still find the schema, then permanently.

A version that others refer to stays: live referrers keep it from being soft-deleted, soft-deleted ones still keep it
from being removed. The configuration and mode of a subject go with its last version.
"""

from registry.errors import (
    OperationNotPermitted,
    ReferenceExists,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from registry.service.reading import LATEST
from registry.service.scopes import mode_in_scope
from registry.storage.base import StoreReader, StoreWriter
from registry.subjects import Subject


def delete_version(store: StoreWriter, subject: Subject, version: int, *, permanent: bool) -> int:
    """The number of the version that was deleted."""
    found = store.latest(subject) if version == LATEST else store.version(subject, version)
    if found is None:
        if not store.has_subject(subject, deleted=True):
            raise SubjectNotFound(subject.qualified)
        raise VersionNotFound(version)
    _check_writable(store, subject)
    if permanent:
        if not found.deleted:
            raise VersionNotSoftDeleted(subject.qualified, found.version)
    elif found.deleted:
        raise VersionSoftDeleted(subject.qualified, found.version)
    _check_unreferenced(store, subject, found.version, permanent=permanent)
    _delete(store, subject, found.version, permanent=permanent)
    if permanent:
        _forget_if_gone(store, subject)
    return found.version


def delete_subject(store: StoreWriter, subject: Subject, *, permanent: bool) -> list[int]:
    """The numbers of the versions that were deleted."""
    if not store.has_subject(subject, deleted=True):
        raise SubjectNotFound(subject.qualified)
    if not permanent and not store.has_subject(subject, deleted=False):
        raise SubjectSoftDeleted(subject.qualified)
    _check_writable(store, subject)
    keys = store.versions(subject)
    if permanent and any(not key.deleted for key in keys):
        raise SubjectNotSoftDeleted(subject.qualified)
    numbers = [key.version for key in keys if permanent or not key.deleted]
    for number in numbers:
        _check_unreferenced(store, subject, number, permanent=permanent)
    for number in numbers:
        _delete(store, subject, number, permanent=permanent)
    if permanent:
        _forget_if_gone(store, subject)
    return numbers


def _check_writable(store: StoreReader, subject: Subject) -> None:
    if mode_in_scope(store, subject).read_only:
        raise OperationNotPermitted(
            f"Subject {subject.qualified} in context {subject.qualified_context} is in read-only mode"
        )


def _check_unreferenced(store: StoreReader, subject: Subject, version: int, *, permanent: bool) -> None:
    if any(referrer.live or permanent for referrer in store.referrers(subject, version)):
        raise ReferenceExists(subject.qualified, version)


def _delete(store: StoreWriter, subject: Subject, version: int, *, permanent: bool) -> None:
    if permanent:
        store.remove_version(subject, version)
    else:
        store.mark_deleted(subject, version)


def _forget_if_gone(store: StoreWriter, subject: Subject) -> None:
    if store.has_subject(subject, deleted=True):
        return
    if store.config(subject) is not None:
        store.remove_config(subject)
    if store.mode(subject) is not None:
        store.remove_mode(subject)
