"""Request bodies of the DEK registry. As in Confluent's, unknown fields are ignored."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from headgate.registry.api.requests import decoded
from headgate.registry.encryption_keys import Kek
from headgate.registry.errors import InvalidKey
from headgate.registry.service.encryption_keys import FIRST_VERSION, NewDek, algorithm_named, checked_subject
from headgate.registry.subjects import Subject

Props = dict[str, str | None]


class CreateKek(msgspec.Struct):
    name: str | None = None
    kmsType: str | None = None
    kmsKeyId: str | None = None
    kmsProps: Props | None = None
    doc: str | None = None
    shared: bool | None = None
    deleted: bool | None = None


class UpdateKek(msgspec.Struct):
    kmsProps: Props | UnsetType | None = UNSET
    doc: str | UnsetType | None = UNSET
    shared: bool | UnsetType | None = UNSET


class CreateDek(msgspec.Struct):
    subject: str | None = None
    version: int | None = None
    algorithm: str | None = None
    encryptedKeyMaterial: str | None = None
    deleted: bool | None = None


_create_kek: Final = msgspec.json.Decoder(CreateKek, strict=False)
_update_kek: Final = msgspec.json.Decoder(UpdateKek, strict=False)
_create_dek: Final = msgspec.json.Decoder(CreateDek, strict=False)


def kek_of(body: bytes, now_ms: int) -> Kek:
    wire = decoded(_create_kek, body)
    return Kek(
        wire.name or "",
        wire.kmsType or "",
        wire.kmsKeyId or "",
        _props(wire.kmsProps),
        bool(wire.shared),
        now_ms,
        wire.doc,
        bool(wire.deleted),
    )


def kek_changes_of(body: bytes) -> dict[str, Any]:
    """Absent fields do not change. null clears a field."""
    wire = decoded(_update_kek, body)
    changes: dict[str, Any] = {}
    if wire.kmsProps is not UNSET:
        changes["kms_props"] = _props(wire.kmsProps)
    if wire.doc is not UNSET:
        changes["doc"] = wire.doc
    if wire.shared is not UNSET:
        changes["shared"] = bool(wire.shared)
    return changes


def _props(wire: Props | None) -> dict[str, str]:
    return {name: value for name, value in (wire or {}).items() if value is not None}


def dek_of(body: bytes, path_subject: str | None) -> NewDek:
    """`path_subject` is the subject in the path, if the path has one. The subject in the body must match it."""
    wire = decoded(_create_dek, body)
    subject = checked_subject(path_subject if path_subject is not None else wire.subject)
    if wire.subject is not None and Subject.parse(subject).sibling(wire.subject).qualified != subject:
        raise InvalidKey("subject")
    return NewDek(
        subject,
        algorithm_named(wire.algorithm),
        FIRST_VERSION if wire.version is None else wire.version,
        wire.encryptedKeyMaterial,
        bool(wire.deleted),
    )
