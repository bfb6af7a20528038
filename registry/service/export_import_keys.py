"""Encryption keys and associations in an export.

KMS credentials are not exported, because every reader of the registry may export it.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from headgate.registry import limits
from headgate.registry.associations import Association, AssociationType, Lifecycle
from headgate.registry.encryption_keys import Dek, Kek, merged_props
from headgate.registry.errors import InvalidAssociation, InvalidKey, NoActiveVersion, OperationNotPermitted
from headgate.registry.service import associations, encryption_keys
from headgate.registry.storage.base import Selection, StoreReader, StoreWriter
from headgate.registry.subjects import Subject, checked


class AssociationLine(msgspec.Struct, forbid_unknown_fields=True):
    subject: str
    guid: str
    resourceName: str
    resourceNamespace: str
    resourceId: str
    resourceType: str
    associationType: AssociationType
    lifecycle: Lifecycle
    frozen: bool
    createTs: int
    updateTs: int


Line: TypeAlias = Kek | Dek | AssociationLine
COUNTS: Final[dict[type[Line], str]] = {Kek: "keks", Dek: "deks", AssociationLine: "associations"}
"""The field that counts each kind of line in the response to an import."""


def exported(store: StoreReader, selection: Selection, *, deleted: bool) -> Iterator[dict[str, Any]]:
    """Yield KEKs, DEKs and associations of the selected subjects. Only a full export contains KEKs without a DEK."""
    deks = [dek for dek in store.keys.all_deks() if _selects(selection, Subject.parse(dek.subject))]
    used = {dek.kek for dek in deks}
    everything = selection == Selection(None)
    for kek in store.keys.keks():
        if (everything or kek.name in used) and (deleted or not kek.deleted):
            yield {"kind": "kek", "kek": kek.to_json()}
    for dek in deks:
        if deleted or not dek.deleted:
            yield {"kind": "dek", "dek": dek.to_json()}
    for association in store.associations.walk():
        if _selects(selection, association.subject):
            yield {"kind": "association", "association": association.to_json()}


def _selects(selection: Selection, subject: Subject) -> bool:
    return selection.context in (None, subject.context) and subject.name.startswith(selection.prefix)


def put(store: StoreWriter, line: Line) -> None:
    """Store the line. Raises if the key or association is already stored with other content."""
    if isinstance(line, Kek):
        _put_kek(store, line)
    elif isinstance(line, Dek):
        _put_dek(store, line)
    else:
        _put_association(store, line)


def _put_kek(store: StoreWriter, line: Kek) -> None:
    stored = store.keys.kek(encryption_keys.checked_name(line.name))
    kek = replace(line, kms_props=merged_props(line.kms_props, {} if stored is None else stored.kms_props))
    encryption_keys.check_kek(kek)
    if stored is not None and not stored.same_key(kek):
        raise OperationNotPermitted(f"The key {line.name} is stored with other content")
    if stored is None:
        encryption_keys.check_kek_count(store.keys)
    store.keys.put_kek(kek)


def _put_dek(store: StoreWriter, line: Dek) -> None:
    dek = replace(line, subject=encryption_keys.checked_subject(line.subject))
    encryption_keys.checked_version(dek.version)
    if not 0 < len(dek.encrypted_key_material) <= limits.KEY_MATERIAL_CHARS_MAX:
        raise InvalidKey("encryptedKeyMaterial")
    stored = store.keys.dek(encryption_keys.checked_name(dek.kek), dek.subject, dek.algorithm, dek.version)
    if stored is not None and not stored.same_key(dek):
        raise OperationNotPermitted(f"The key {dek.kek}/{dek.subject} has a version {dek.version} with other content")
    if stored is None:
        encryption_keys.check_dek_count(store.keys)
    store.keys.put_dek(dek)


def _put_association(store: StoreWriter, line: AssociationLine) -> None:
    resource = associations.checked_resource(
        line.resourceName, line.resourceNamespace, line.resourceId, line.resourceType, dry_run=False
    )
    association = Association(
        guid=line.guid,
        resource_name=resource.name,
        resource_namespace=resource.namespace,
        resource_id=line.resourceId,
        resource_type=resource.type,
        type=line.associationType,
        subject=checked(line.subject),
        lifecycle=line.lifecycle,
        frozen=line.frozen,
        created_ms=line.createTs,
        updated_ms=line.updateTs,
    )
    if association.frozen and association.lifecycle is Lifecycle.WEAK:
        raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
    present = store.associations.of_resource(line.resourceId, resource.type)
    stored = next((one for one in present if one.type == line.associationType), None)
    if stored is not None and stored.guid != association.guid:
        raise OperationNotPermitted(f"The resource {line.resourceId} has another {line.associationType} association")
    if stored is None:
        associations.check_count(store)
    store.associations.put(association)


def check(store: StoreReader, line: Line) -> None:
    """After all lines: check that the objects to which the line refers exist."""
    if isinstance(line, Dek):
        encryption_keys.get_kek(store.keys, line.kek, deleted=True)
    elif isinstance(line, AssociationLine):
        subject = Subject.parse(line.subject)
        if store.latest(subject) is None:
            raise NoActiveVersion(subject.qualified)
        associations.check_exclusive(store, subject)
