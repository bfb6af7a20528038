"""Resolves references between schemas to the referenced texts.

A reference maps a name inside a schema to a subject and version. Referenced schemas may have references, too. A subject
without a context belongs to the context of the referring schema.
"""

from dataclasses import replace

from headgate.registry import limits
from headgate.registry.errors import InvalidSchema
from headgate.registry.model import Reference
from headgate.registry.storage.base import StoredVersion, StoreReader
from headgate.registry.subjects import Subject


def pinned(store: StoreReader, referrer: Subject, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """The references with "latest" (version -1) replaced by the number of the latest version."""
    if all(reference.version != -1 for reference in references):
        return references
    return tuple(
        replace(reference, version=_target(store, referrer, reference, deleted=False).version)
        if reference.version == -1
        else reference
        for reference in references
    )


def resolve(
    store: StoreReader, referrer: Subject, references: tuple[Reference, ...], *, deleted: bool
) -> dict[str, str]:
    """The referenced texts by name, dependencies first.

    A new schema may refer to live versions only. A stored schema may also refer to soft-deleted versions (`deleted`).
    """
    if not references:
        return {}
    texts: dict[str, str] = {}
    _follow(store, referrer, references, deleted, texts, ())
    return texts


def _follow(
    store: StoreReader,
    referrer: Subject,
    references: tuple[Reference, ...],
    deleted: bool,
    texts: dict[str, str],
    chain: tuple[tuple[Subject, int], ...],
) -> None:
    if len(chain) > limits.REFERENCE_DEPTH_MAX:
        raise InvalidSchema(f"The chain of references is longer than {limits.REFERENCE_DEPTH_MAX} schemas")
    for reference in references:
        if reference.name in texts:
            continue
        target = _target(store, referrer, reference, deleted=deleted)
        place = (target.subject, target.version)
        if place in chain:
            name = f'subject "{target.subject.qualified}" and version {target.version}'
            raise InvalidSchema(f"The reference to {name} is circular")
        _follow(store, target.subject, target.content.references, True, texts, (*chain, place))
        if len(texts) >= limits.REFERENCES_MAX:
            raise InvalidSchema(f"The schema refers to more than {limits.REFERENCES_MAX} schemas")
        texts[reference.name] = target.content.text


def _target(store: StoreReader, referrer: Subject, reference: Reference, *, deleted: bool) -> StoredVersion:
    subject = referrer.sibling(reference.subject)
    found = store.latest(subject) if reference.version == -1 else store.version(subject, reference.version)
    if found is None or (found.deleted and not deleted):
        raise InvalidSchema(
            f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
        )
    return found
