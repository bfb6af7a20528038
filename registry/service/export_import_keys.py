"""Encryption keys and associations in an export.

KMS credentials are not exported, because every reader of the registry may export it.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from headgate.registry import limits
from headgate.registry.associations import Association, AssociationType, Lifecycle
from headgate.registry.encryption_keys import Algorithm, Dek, Kek, merged_props
from headgate.registry.errors import InvalidAssociation, InvalidKey, NoActiveVersion, OperationNotPermitted
from headgate.registry.service import associations, encryption_keys
from headgate.registry.storage.base import Selection, StoreReader, StoreWriter
from headgate.registry.subjects import Subject, checked


class KekLine(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kmsType: str
    kmsKeyId: str
    kmsProps: dict[str, str]
    shared: bool
    ts: int
    doc: str | None = None
    deleted: bool = False


class DekLine(msgspec.Struct, forbid_unknown_fields=True):
    kekName: str
    subject: str
    version: int
    algorithm: Algorithm
    encryptedKeyMaterial: str
    ts: int
    deleted: bool = False


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


Line: TypeAlias = KekLine | DekLine | AssociationLine
COUNTS: Final[dict[type[Line], str]] = {KekLine: "keks", DekLine: "deks", AssociationLine: "associations"}
"""The field that counts each kind of line in the response to an import."""


def exported(store: StoreReader, selection: Selection, *, deleted: bool) -> Iterator[dict[str, Any]]:
    """Yield KEKs, DEKs and associations of the selected subjects. Only a full export contains KEKs without a DEK."""
    deks = [dek for dek in store.keys.all_deks() if _selects(selection, Subject.parse(dek.subject))]
    used = {dek.kek for dek in deks}
    everything = selection == Selection(None)
    for kek in store.keys.keks():
        if (everything or kek.name in used) and (deleted or not kek.deleted):
            yield {"kind": "kek", "kek": msgspec.to_builtins(_kek_line(kek))}
    for dek in deks:
        if deleted or not dek.deleted:
            yield {"kind": "dek", "dek": msgspec.to_builtins(_dek_line(dek))}
    for association in store.associations.walk():
        if _selects(selection, association.subject):
            yield {"kind": "association", "association": msgspec.to_builtins(_association_line(association))}


def _selects(selection: Selection, subject: Subject) -> bool:
    return selection.context in (None, subject.context) and subject.name.startswith(selection.prefix)


def _kek_line(kek: Kek) -> KekLine:
    return KekLine(
        kek.name, kek.kms_type, kek.kms_key_id, kek.public_props, kek.shared, kek.changed_ms, kek.doc, kek.deleted
    )


def _dek_line(dek: Dek) -> DekLine:
    material = dek.encrypted_key_material
    return DekLine(dek.kek, dek.subject, dek.version, dek.algorithm, material, dek.changed_ms, dek.deleted)


def _association_line(association: Association) -> AssociationLine:
    return AssociationLine(
        association.subject.qualified,
        association.guid,
        association.resource_name,
        association.resource_namespace,
        association.resource_id,
        association.resource_type,
        association.type,
        association.lifecycle,
        association.frozen,
        association.created_ms,
        association.updated_ms,
    )


def put(store: StoreWriter, line: Line) -> None:
    """Store the line. Raises if the key or association is already stored with other content."""
    if isinstance(line, KekLine):
        _put_kek(store, line)
    elif isinstance(line, DekLine):
        _put_dek(store, line)
    else:
        _put_association(store, line)


def _put_kek(store: StoreWriter, line: KekLine) -> None:
    stored = store.keys.kek(encryption_keys.checked_name(line.name))
    props = merged_props(line.kmsProps, {} if stored is None else stored.kms_props)
    kek = Kek(line.name, line.kmsType, line.kmsKeyId, props, line.doc, line.shared, line.deleted, line.ts)
    encryption_keys.check_kek(kek)
    if stored is not None and not stored.same_key(kek):
        raise OperationNotPermitted(f"The key {line.name} is stored with other content")
    if stored is None:
        encryption_keys.check_kek_count(store.keys)
    store.keys.put_kek(kek)


def _put_dek(store: StoreWriter, line: DekLine) -> None:
    subject = encryption_keys.checked_subject(line.subject)
    version = encryption_keys.checked_version(line.version)
    if not 0 < len(line.encryptedKeyMaterial) <= limits.KEY_MATERIAL_CHARS_MAX:
        raise InvalidKey("encryptedKeyMaterial")
    name = encryption_keys.checked_name(line.kekName)
    dek = Dek(name, subject, line.algorithm, version, line.encryptedKeyMaterial, line.deleted, line.ts)
    stored = store.keys.dek(name, subject, line.algorithm, version)
    if stored is not None and not stored.same_key(dek):
        raise OperationNotPermitted(f"The key {name}/{subject} has a version {version} with other content")
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
    if isinstance(line, DekLine):
        encryption_keys.get_kek(store.keys, line.kekName, deleted=True)
    elif isinstance(line, AssociationLine):
        subject = Subject.parse(line.subject)
        if store.latest(subject) is None:
            raise NoActiveVersion(subject.qualified)
        associations.check_exclusive(store, subject)
