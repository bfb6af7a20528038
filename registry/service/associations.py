"""Creates, changes and deletes associations between resources and subjects.

Follows Confluent's registry:

- A STRONG association is the only association of its subject. WEAK associations may share a subject.
- A frozen association is STRONG, is created with its schema in an empty subject, and cannot be changed. All
  associations of a resource are frozen, or none is.
- Without a subject, an association uses `:.namespace:name-type`. Only STRONG associations may use that subject.
- Creating an existing association with the same content changes nothing.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headgate.registry import limits
from headgate.registry.associations import ANY_NAMESPACE, TOPIC, Association, AssociationType, Lifecycle, Resource
from headgate.registry.errors import (
    AssociationFrozen,
    AssociationNotFound,
    InvalidAssociation,
    NoActiveVersion,
    ResourceAssociated,
    SubjectAssociated,
    SubjectStronglyAssociated,
    TooManyAssociations,
)
from headgate.registry.model import Mode
from headgate.registry.service import deletion
from headgate.registry.service.registration import examine, register
from headgate.registry.service.schema_lookup import find
from headgate.registry.service.scopes import check_writable, mode_in_scope, unaliased
from headgate.registry.service.submitted_schema import Environment, SubmittedSchema
from headgate.registry.storage.base import StoredVersion, StoreReader, StoreWriter
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class Draft:
    """An association in a request. None means the stored value, or the default."""

    type: AssociationType
    subject: str | None = None
    lifecycle: Lifecycle | None = None
    frozen: bool | None = None
    submitted: SubmittedSchema | None = None
    normalize: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A checked draft, and the stored association that it changes."""

    draft: Draft
    subject: Subject
    lifecycle: Lifecycle
    stored: Association | None
    changed: bool


@dataclass(frozen=True, slots=True)
class Selected:
    """A filter for the associations of a resource or subject. No types means all types."""

    resource_type: str = TOPIC
    types: tuple[str, ...] = ()
    lifecycle: Lifecycle | None = None

    def of(self, associations: Sequence[Association]) -> list[Association]:
        return [
            one
            for one in associations
            if one.resource_type == self.resource_type
            and (not self.types or one.type in self.types)
            and self.lifecycle in (None, one.lifecycle)
        ]


def checked_resource(
    name: str | None, namespace: str | None, id: str | None, type: str | None, *, dry_run: bool
) -> Resource:
    name, namespace = _checked_name(name, "resourceName"), _checked_name(namespace, "resourceNamespace")
    if not id and not dry_run:
        raise InvalidAssociation("resourceId", "cannot be null or empty")
    if id and len(id) > limits.RESOURCE_ID_CHARS_MAX:
        raise InvalidAssociation("resourceId", f"exceeds max length of {limits.RESOURCE_ID_CHARS_MAX}")
    if type and type != TOPIC:
        raise InvalidAssociation("resourceType", f"must be '{TOPIC}'")
    return Resource(name, namespace, id or None)


def _checked_name(name: str | None, field: str) -> str:
    if not name:
        raise InvalidAssociation(field, "cannot be null or empty")
    if len(name) > limits.RESOURCE_CHARS_MAX:
        raise InvalidAssociation(field, f"exceeds max length of {limits.RESOURCE_CHARS_MAX}")
    for char in name:
        category = unicodedata.category(char)
        if not (category.startswith("L") or category == "Nd" or char in "_-."):
            raise InvalidAssociation(field, f"illegal character '{char}'")
    return name


def type_named(text: str | None) -> AssociationType:
    if not text:
        return AssociationType.VALUE
    try:
        return AssociationType(text)
    except ValueError:
        raise InvalidAssociation("associationType", "must be either 'key' or 'value'") from None


def checked_draft(resource: Resource, draft: Draft, *, create_only: bool) -> Draft:
    """The draft with the defaults of the request. Raises InvalidAssociation for a combination that cannot be stored."""
    if draft.subject is not None and (not draft.subject or any(unicodedata.category(c) == "Cc" for c in draft.subject)):
        raise InvalidAssociation("subject", "must not be empty")
    if draft.subject is not None and len(draft.subject) > limits.SUBJECT_CHARS_MAX:
        raise InvalidAssociation("subject", f"exceeds max length of {limits.SUBJECT_CHARS_MAX}")
    lifecycle, frozen = draft.lifecycle, draft.frozen
    if draft.submitted is not None and lifecycle is Lifecycle.WEAK:
        purpose = " for create" if create_only else ""
        raise InvalidAssociation("lifecycle", f"cannot be WEAK when schema is provided{purpose}")
    if create_only:
        if draft.submitted is not None:
            if frozen is False:
                raise InvalidAssociation("frozen", "cannot be false when schema is provided for create")
            lifecycle, frozen = Lifecycle.STRONG, True
        elif lifecycle is None:
            lifecycle = Lifecycle.WEAK
    if lifecycle is Lifecycle.WEAK and frozen:
        raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
    default = resource.default_subject(draft.type).qualified
    subject = default if draft.subject is None else draft.subject
    if frozen and subject != default:
        raise InvalidAssociation("subject", f"frozen associations must use subject '{default}'")
    return replace(draft, subject=subject, lifecycle=lifecycle, frozen=frozen)


def check_consistency(drafts: Sequence[Draft]) -> None:
    if len({draft.frozen for draft in drafts if draft.frozen is not None}) > 1:
        raise _mixed_frozen()


def check_distinct_types(drafts: Sequence[Draft]) -> None:
    seen: set[AssociationType] = set()
    for draft in drafts:
        if draft.type in seen:
            raise InvalidAssociation("associationType", f"Duplicate association type: {draft.type}")
        seen.add(draft.type)


def _mixed_frozen() -> InvalidAssociation:
    return InvalidAssociation("frozen", "all associations for a resource must be consistently frozen or non-frozen")


def plan(
    environment: Environment,
    store: StoreReader,
    scope: Subject,
    resource: Resource,
    drafts: Sequence[Draft],
    *,
    create_only: bool,
) -> list[Planned]:
    """Check all drafts and return the changes for `apply`.

    Subjects without a context belong to the context of `scope`.
    """
    stored = [] if resource.id is None else store.associations.of_resource(resource.id, resource.type)
    for one in stored:
        if (one.resource_name, one.resource_namespace) != (resource.name, resource.namespace):
            raise InvalidAssociation(
                "resourceName", f"resource '{one.resource_id}' is {one.resource_namespace}/{one.resource_name}"
            )
    frozen = stored[0].frozen if stored else None
    by_type = {one.type: one for one in stored}
    planned: list[Planned] = []
    for draft in drafts:
        subject = unaliased(store, scope.sibling(draft.subject or ""))
        check_writable(store, subject)
        before = by_type.get(draft.type)
        if frozen is not None and draft.frozen not in (None, frozen):
            raise _mixed_frozen()
        change = _planned(environment, store, resource, draft, subject, before, create_only=create_only)
        _check_subject(store, change, planned)
        planned.append(change)
    for change in planned:
        draft = change.draft
        if draft.submitted is not None and mode_in_scope(store, change.subject) is not Mode.IMPORT:
            examine(environment, store, change.subject, draft.submitted, normalize=draft.normalize)
    return planned


def _planned(
    environment: Environment,
    store: StoreReader,
    resource: Resource,
    draft: Draft,
    subject: Subject,
    before: Association | None,
    *,
    create_only: bool,
) -> Planned:
    default = resource.default_subject(draft.type)
    if before is None:
        lifecycle = draft.lifecycle or (Lifecycle.WEAK if draft.submitted is None else Lifecycle.STRONG)
        _check_default_subject(subject, default, lifecycle)
        if draft.frozen:
            if draft.submitted is None:
                raise InvalidAssociation("schema", "schema must be provided when creating a frozen association")
            if store.latest(subject) is not None:
                reason = "cannot create a frozen association when schemas already exist in the subject"
                raise InvalidAssociation("frozen", reason)
        return Planned(draft, subject, lifecycle, None, changed=True)
    _check_default_subject(subject, default, before.lifecycle)
    lifecycle = draft.lifecycle or before.lifecycle
    if subject == before.subject and lifecycle is before.lifecycle and draft.frozen in (None, before.frozen):
        if create_only and draft.submitted is not None:
            known = find(environment, store, subject, draft.submitted, normalize=draft.normalize, deleted=False)
            if known is None:
                raise ResourceAssociated(before.type, before.resource_name)
        return Planned(draft, subject, lifecycle, before, changed=False)
    if create_only:
        raise ResourceAssociated(before.type, before.resource_name)
    if subject != before.subject:
        raise InvalidAssociation("subject", "subject of association cannot be changed")
    if lifecycle is Lifecycle.WEAK and subject == default:
        reason = f"cannot change to WEAK when subject matches default format '{default.qualified}'"
        raise InvalidAssociation("lifecycle", reason)
    if before.frozen:
        raise AssociationFrozen(before.type, before.subject.qualified)
    return Planned(draft, subject, lifecycle, before, changed=True)


def _check_default_subject(subject: Subject, default: Subject, lifecycle: Lifecycle) -> None:
    if subject == default and lifecycle is not Lifecycle.STRONG:
        reason = f"subject '{default.qualified}' is only allowed for strong associations"
        raise InvalidAssociation("subject", reason)


def _check_subject(store: StoreReader, planned: Planned, others: Sequence[Planned]) -> None:
    """Check that the subject has or gets a schema, and that no other association excludes this one."""
    subject = planned.subject
    if planned.draft.submitted is None and store.latest(subject) is None:
        raise NoActiveVersion(subject.qualified)
    lifecycles = [
        one.lifecycle
        for one in store.associations.of_subject(subject)
        if planned.stored is None or (one.resource_id, one.type) != (planned.stored.resource_id, planned.stored.type)
    ]
    lifecycles += [one.lifecycle for one in others if one.subject == subject]
    if planned.lifecycle is Lifecycle.STRONG and lifecycles:
        raise SubjectAssociated(subject.qualified)
    if Lifecycle.STRONG in lifecycles:
        raise SubjectStronglyAssociated(subject.qualified)


def apply(
    environment: Environment,
    store: StoreWriter,
    resource: Resource,
    planned: Sequence[Planned],
    now_ms: int,
    new_guid: Callable[[], str],
) -> list[tuple[Association, StoredVersion | None]]:
    """Register the schemas and store the associations. Returns each association with its new version, if any."""
    assert resource.id is not None
    applied = []
    for one in planned:
        draft, before, version = one.draft, one.stored, None
        if draft.submitted is not None and mode_in_scope(store, one.subject) is not Mode.IMPORT:
            version = register(
                environment, store, one.subject, draft.submitted, normalize=draft.normalize, now_ms=now_ms
            )
        if before is None:
            association = Association(
                guid=new_guid(),
                resource_name=resource.name,
                resource_namespace=resource.namespace,
                resource_id=resource.id,
                resource_type=resource.type,
                type=draft.type,
                subject=one.subject,
                lifecycle=one.lifecycle,
                frozen=bool(draft.frozen),
                created_ms=now_ms,
                updated_ms=now_ms,
            )
            _add(store, association)
        else:
            association = before
            if one.changed:
                association = replace(before, lifecycle=one.lifecycle, updated_ms=now_ms)
                store.associations.put(association)
        applied.append((association, version))
    return applied


def _add(store: StoreWriter, association: Association) -> None:
    """Store a new association. It replaces the association of a deleted resource with the same name and another id."""
    namesakes = store.associations.of_resource_name(
        association.resource_name, association.resource_namespace, association.resource_type
    )
    for one in namesakes:
        if (one.type, one.subject) == (association.type, association.subject):
            store.associations.remove(one)
    check_count(store)
    store.associations.put(association)


def check_count(store: StoreReader) -> None:
    if store.associations.count() >= limits.ASSOCIATIONS_MAX:
        raise TooManyAssociations(limits.ASSOCIATIONS_MAX)


def check_exclusive(store: StoreReader, subject: Subject) -> None:
    """Check that a STRONG association is the only association of its subject."""
    found = store.associations.of_subject(subject)
    if len(found) > 1 and any(one.lifecycle is Lifecycle.STRONG for one in found):
        raise SubjectStronglyAssociated(subject.qualified)


def of_subject(store: StoreReader, subject: Subject, selected: Selected) -> list[Association]:
    return selected.of(store.associations.of_subject(subject))


def of_resource(store: StoreReader, resource_id: str, selected: Selected) -> list[Association]:
    return selected.of(store.associations.of_resource(resource_id, selected.resource_type))


def of_resource_name(store: StoreReader, name: str, namespace: str, selected: Selected) -> list[Association]:
    where = None if namespace == ANY_NAMESPACE else namespace
    return selected.of(store.associations.of_resource_name(name, where, selected.resource_type))


def check_deletion(store: StoreReader, associations: Sequence[Association], *, cascade: bool) -> None:
    for one in associations:
        check_writable(store, one.subject)
        if one.frozen and not cascade:
            raise AssociationFrozen(one.type, one.subject.qualified)


def delete(store: StoreWriter, resource_id: str, selected: Selected, *, cascade: bool) -> list[Association]:
    """Delete and return the associations. `cascade` also deletes the subjects of STRONG associations permanently."""
    doomed = of_resource(store, resource_id, selected)
    check_deletion(store, doomed, cascade=cascade)
    for one in doomed:
        store.associations.remove(one)
        importing = mode_in_scope(store, one.subject) is Mode.IMPORT
        if cascade and one.lifecycle is Lifecycle.STRONG and not importing:
            _delete_subject(store, one.subject)
    return doomed


def _delete_subject(store: StoreWriter, subject: Subject) -> None:
    for permanent in (False, True):
        if store.has_subject(subject, deleted=permanent):
            deletion.delete_subject(store, subject, permanent=permanent)


def required(associations: list[Association], resource_id: str) -> list[Association]:
    if not associations:
        raise AssociationNotFound(resource_id)
    return associations
