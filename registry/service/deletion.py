"""Deletes versions and subjects: first a soft delete, then a permanent delete.

Readers of old data still find a soft-deleted schema. References prevent a delete:

- A reference from a live version prevents a soft delete.
- A reference from a soft-deleted version prevents a permanent delete.
- References between versions of one subject do not prevent the delete of that subject.

The delete of the last version also deletes the configuration and mode of the subject.
"""

from headgate.registry.errors import (
    NoActiveVersion,
    ReferenceExists,
    SubjectAssociated,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from headgate.registry.service.schema_queries import LATEST
from headgate.registry.service.scopes import check_writable
from headgate.registry.storage.base import Referrer, StoreReader, StoreWriter
from headgate.registry.subjects import Subject


def delete_version(store: StoreWriter, subject: Subject, version: int, *, permanent: bool) -> int:
    """Delete the version and return its number."""
    found = store.latest(subject) if version == LATEST else store.version(subject, version)
    if found is None:
        if not store.has_subject(subject, deleted=True):
            raise SubjectNotFound(subject.qualified)
        raise VersionNotFound(version)
    check_writable(store, subject)
    _check_associated_version(store, subject, found.version, permanent=permanent)
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
    """Delete the subject and return the numbers of the deleted versions."""
    if not store.has_subject(subject, deleted=True):
        raise SubjectNotFound(subject.qualified)
    if not permanent and not store.has_subject(subject, deleted=False):
        raise SubjectSoftDeleted(subject.qualified)
    check_writable(store, subject)
    if store.associations.of_subject(subject):
        raise SubjectAssociated(subject.qualified)
    keys = store.versions(subject)
    if permanent and any(not key.deleted for key in keys):
        raise SubjectNotSoftDeleted(subject.qualified)
    numbers = [key.version for key in keys if permanent or not key.deleted]
    for number in numbers:
        if any(_used_outside(store, subject, one, permanent=permanent) for one in store.referrers(subject, number)):
            raise ReferenceExists(subject.qualified, number)
    for number in numbers:
        _delete(store, subject, number, permanent=permanent)
    if permanent:
        _forget_if_gone(store, subject)
    return numbers


def _check_associated_version(store: StoreReader, subject: Subject, version: int, *, permanent: bool) -> None:
    """Check that an associated subject keeps a live version. Permanent deletes are not allowed."""
    if not store.associations.of_subject(subject):
        return
    if permanent:
        raise SubjectAssociated(subject.qualified)
    if not any(key.version != version and not key.deleted for key in store.versions(subject)):
        raise NoActiveVersion(subject.qualified)


def _check_unreferenced(store: StoreReader, subject: Subject, version: int, *, permanent: bool) -> None:
    if any(referrer.live or permanent for referrer in store.referrers(subject, version)):
        raise ReferenceExists(subject.qualified, version)


def _used_outside(store: StoreReader, subject: Subject, referrer: Referrer, *, permanent: bool) -> bool:
    """Whether the referring schema remains after the delete of the whole subject."""
    if not (referrer.live or permanent):
        return False
    uses = store.uses(referrer.context, referrer.id)
    return any(use.subject != subject and (permanent or not use.deleted) for use in uses)


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
