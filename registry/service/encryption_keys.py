"""The DEK registry: creates, reads, changes, deletes and undeletes KEKs and DEKs.

Follows Confluent's DEK registry. The registry has no KMS drivers: clients encrypt and decrypt DEKs. A request that
needs a KMS (a shared KEK) raises `DekGenerationFailed`. Modes do not apply to keys, with one exception: IMPORT mode
allows a DEK with key material below a shared KEK.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from headgate.registry import limits
from headgate.registry.encryption_keys import DEFAULT_ALGORITHM, Algorithm, Dek, Kek, merged_props
from headgate.registry.errors import (
    DekGenerationFailed,
    InvalidKey,
    InvalidVersion,
    KeyExists,
    KeyInUse,
    KeyNotFound,
    KeyNotSoftDeleted,
    KeySoftDeleted,
    TooManyKeys,
)
from headgate.registry.model import Mode
from headgate.registry.service.schema_queries import LATEST
from headgate.registry.service.scopes import mode_in_scope, unaliased_for_deks
from headgate.registry.storage.base import KeyReader, KeyWriter, StoreReader, StoreWriter
from headgate.registry.subjects import Subject

FIRST_VERSION: Final = 1
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TEST_SUBJECT: Final = "__TEST"
_KMS_TYPES: Final = {"aws": "aws-kms", "azure": "azure-kms", "gcp": "gcp-kms"}
"""Canonical names by the prefix of the name in the request."""


@dataclass(frozen=True, slots=True)
class NewDek:
    """A DEK in a request."""

    subject: str
    algorithm: Algorithm
    version: int
    encrypted_key_material: str | None
    deleted: bool


def algorithm_named(text: str | None) -> Algorithm:
    if not text:
        return DEFAULT_ALGORITHM
    try:
        return Algorithm(text)
    except ValueError:
        raise InvalidKey("algorithm") from None


def checked_name(name: str | None) -> str:
    """Letters, digits, `_` and `-`, starting with a letter or `_`."""
    if not name or len(name) > limits.KEY_NAME_CHARS_MAX or not (_is_letter(name[0]) or name[0] == "_"):
        raise InvalidKey("name")
    if not all(_is_letter(char) or unicodedata.category(char) == "Nd" or char in "_-" for char in name):
        raise InvalidKey("name")
    return name


def _is_letter(char: str) -> bool:
    return unicodedata.category(char).startswith("L")


def checked_subject(text: str | None) -> str:
    """The qualified name: `:.:orders` and `orders` are the same subject."""
    if not text or _CONTROL.search(text) or len(text) > limits.SUBJECT_CHARS_MAX:
        raise InvalidKey("subject")
    return Subject.parse(text).qualified


def dek_subject(store: StoreReader, text: str) -> str:
    """The qualified name of the subject that has the DEKs: the subject itself, or its configured `aliasForDeks`."""
    return unaliased_for_deks(store, Subject.parse(checked_subject(text))).qualified


def checked_version(version: int) -> int:
    if not FIRST_VERSION <= version <= limits.VERSION_MAX:
        raise InvalidVersion(str(version))
    return version


def list_keks(keys: KeyReader, prefixes: Sequence[str], *, deleted: bool) -> list[str]:
    """Names of all KEKs, or of KEKs with a DEK whose subject has one of the prefixes."""
    if not prefixes:
        return [kek.name for kek in keys.keks() if deleted or not kek.deleted]
    starts = tuple(prefix.removeprefix(":.:") for prefix in prefixes)
    found = (dek.kek for dek in keys.all_deks() if (deleted or not dek.deleted) and dek.subject.startswith(starts))
    return sorted(set(found))


def get_kek(keys: KeyReader, name: str, *, deleted: bool) -> Kek:
    kek = keys.kek(checked_name(name))
    if kek is None or (kek.deleted and not deleted):
        raise KeyNotFound(name)
    return kek


def create_kek(keys: KeyWriter, kek: Kek, *, test_sharing: bool) -> Kek:
    """Create a KEK. If the same KEK is soft-deleted, undelete it."""
    kek = replace(kek, kms_type=_canonical_kms_type(kek.kms_type), kms_props=merged_props(kek.kms_props, {}))
    check_kek(kek)
    if test_sharing:
        verify_sharing(kek)
    stored = keys.kek(kek.name)
    if stored is None:
        check_kek_count(keys)
    elif kek.deleted == stored.deleted or not stored.same_key(kek):
        raise KeyExists(kek.name)
    keys.put_kek(kek)
    return kek


def _canonical_kms_type(kms_type: str) -> str:
    lower = kms_type.lower()
    return next((name for start, name in _KMS_TYPES.items() if lower.startswith(start)), kms_type)


def check_kek_count(keys: KeyReader) -> None:
    if keys.kek_count() >= limits.KEKS_MAX:
        raise TooManyKeys(limits.KEKS_MAX)


def check_dek_count(keys: KeyReader) -> None:
    if keys.dek_count() >= limits.DEKS_MAX:
        raise TooManyKeys(limits.DEKS_MAX)


def check_kek(kek: Kek) -> None:
    checked_name(kek.name)
    if not kek.kms_key_id:
        raise InvalidKey("kmsKeyId")
    if not kek.kms_type:
        raise InvalidKey("kmsType")
    props = sum(len(name) + len(value) for name, value in kek.kms_props.items())
    sizes = {
        "kmsType": len(kek.kms_type),
        "kmsKeyId": len(kek.kms_key_id),
        "kmsProps": props,
        "doc": len(kek.doc or ""),
    }
    if sum(sizes.values()) > limits.KEK_CHARS_MAX:
        raise InvalidKey(max(sizes, key=lambda name: sizes[name]))


def verify_sharing(kek: Kek) -> None:
    """Confluent tests encryption with the KMS here. Only shared KEKs can be tested."""
    if not kek.shared:
        raise InvalidKey("shared")
    raise _no_kms(kek, "encrypted", _TEST_SUBJECT)


def _no_kms(kek: Kek, form: str, subject: str) -> DekGenerationFailed:
    return DekGenerationFailed(
        f"Could not generate {form} dek for {subject}: no KMS driver found for key URL: "
        f"{kek.kms_type}://{kek.kms_key_id}. This registry has no access to a KMS: set shared to false and let clients "
        "encrypt the key material"
    )


def change_kek(keys: KeyWriter, name: str, changes: Mapping[str, Any], now_ms: int, *, test_sharing: bool) -> Kek:
    """Change a KEK. `changes` maps fields of `Kek` to new values."""
    stored = get_kek(keys, name, deleted=False)
    if "kms_props" in changes:
        changes = {**changes, "kms_props": merged_props(changes["kms_props"], stored.kms_props)}
    kek = replace(stored, **changes)
    check_kek(kek)
    if test_sharing:
        verify_sharing(kek)
    if kek == stored:
        return stored
    kek = replace(kek, changed_ms=now_ms)
    keys.put_kek(kek)
    return kek


def delete_kek(keys: KeyWriter, name: str, now_ms: int, *, permanent: bool) -> None:
    kek = get_kek(keys, name, deleted=True)
    if keys.has_deks(name, deleted=permanent):
        raise KeyInUse(name)
    if permanent:
        if not kek.deleted:
            raise KeyNotSoftDeleted(name)
        keys.remove_kek(name)
    elif not kek.deleted:
        keys.put_kek(replace(kek, deleted=True, changed_ms=now_ms))


def undelete_kek(keys: KeyWriter, name: str, now_ms: int) -> None:
    kek = get_kek(keys, name, deleted=True)
    if kek.deleted:
        keys.put_kek(replace(kek, deleted=False, changed_ms=now_ms))


def list_dek_subjects(keys: KeyReader, name: str, *, deleted: bool) -> list[str]:
    get_kek(keys, name, deleted=deleted)
    return sorted({dek.subject for dek in keys.deks(name) if deleted or not dek.deleted})


def list_dek_versions(keys: KeyReader, name: str, subject: str, algorithm: Algorithm, *, deleted: bool) -> list[int]:
    subject = checked_subject(subject)
    get_kek(keys, name, deleted=deleted)
    found = keys.deks_of_subject(name, subject, algorithm)
    return [dek.version for dek in found if deleted or not dek.deleted]


def get_dek(keys: KeyReader, name: str, subject: str, algorithm: Algorithm, version: int, *, deleted: bool) -> Dek:
    kek = get_kek(keys, name, deleted=deleted)
    dek = _find_dek(keys, name, subject, algorithm, version, deleted=deleted)
    if kek.shared:
        raise _no_kms(kek, "raw", dek.subject)
    return dek


def _find_dek(keys: KeyReader, name: str, subject: str, algorithm: Algorithm, version: int, *, deleted: bool) -> Dek:
    qualified = checked_subject(subject)
    if version == LATEST:
        found = [dek for dek in keys.deks_of_subject(name, qualified, algorithm) if deleted or not dek.deleted]
        dek = found[-1] if found else None
    else:
        dek = keys.dek(name, qualified, algorithm, version)
    if dek is None or (dek.deleted and not deleted):
        raise KeyNotFound(subject)
    return dek


def create_dek(store: StoreWriter, name: str, new: NewDek, now_ms: int, *, rewrap: bool) -> Dek:
    """Create a DEK. If the same DEK is soft-deleted, undelete it. `rewrap` replaces the key material."""
    keys = store.keys
    checked_name(name)
    subject = dek_subject(store, new.subject)
    version = checked_version(new.version)
    kek = get_kek(keys, name, deleted=new.deleted)
    material = new.encrypted_key_material or ""
    if len(material) > limits.KEY_MATERIAL_CHARS_MAX:
        raise InvalidKey("encryptedKeyMaterial")
    dek = Dek(name, subject, version, new.algorithm, material, now_ms, new.deleted)
    stored = keys.dek(name, subject, new.algorithm, version)
    if stored is not None:
        unchanged = dek.deleted == stored.deleted or not stored.same_key(dek)
        if (not rewrap and unchanged) or (kek.shared and material):
            raise KeyExists(new.subject)
    if not material:
        if kek.shared:
            raise _no_kms(kek, "encrypted", subject)
        raise InvalidKey("encryptedKeyMaterial")
    if kek.shared and mode_in_scope(store, Subject.parse(subject)) is not Mode.IMPORT:
        raise _no_kms(kek, "raw", subject)
    if stored is None:
        check_dek_count(keys)
    keys.put_dek(dek)
    return dek


def delete_deks(
    keys: KeyWriter, name: str, subject: str, algorithm: Algorithm, now_ms: int, *, permanent: bool
) -> None:
    """Delete all versions. A permanent delete requires that all of them are soft-deleted."""
    deks = _deks(keys, name, subject, algorithm)
    if permanent and any(not dek.deleted for dek in deks):
        raise KeyNotSoftDeleted(subject)
    for dek in deks:
        _delete(keys, dek, now_ms, permanent=permanent)


def delete_dek(
    keys: KeyWriter, name: str, subject: str, algorithm: Algorithm, version: int, now_ms: int, *, permanent: bool
) -> None:
    get_kek(keys, name, deleted=True)
    dek = _find_dek(keys, name, subject, algorithm, version, deleted=True)
    if permanent and not dek.deleted:
        raise KeyNotSoftDeleted(subject)
    _delete(keys, dek, now_ms, permanent=permanent)


def _deks(keys: KeyReader, name: str, subject: str, algorithm: Algorithm) -> list[Dek]:
    """All versions, at least one. Raises `KeyNotFound`."""
    qualified = checked_subject(subject)
    get_kek(keys, name, deleted=True)
    deks = keys.deks_of_subject(name, qualified, algorithm)
    if not deks:
        raise KeyNotFound(subject)
    return deks


def _delete(keys: KeyWriter, dek: Dek, now_ms: int, *, permanent: bool) -> None:
    if permanent:
        keys.remove_dek(dek)
    elif not dek.deleted:
        keys.put_dek(replace(dek, deleted=True, changed_ms=now_ms))


def undelete_deks(keys: KeyWriter, name: str, subject: str, algorithm: Algorithm, now_ms: int) -> None:
    deks = _deks(keys, name, subject, algorithm)
    _check_live(keys, name)
    for dek in deks:
        _undelete(keys, dek, now_ms)


def undelete_dek(keys: KeyWriter, name: str, subject: str, algorithm: Algorithm, version: int, now_ms: int) -> None:
    get_kek(keys, name, deleted=True)
    dek = _find_dek(keys, name, subject, algorithm, version, deleted=True)
    _check_live(keys, name)
    _undelete(keys, dek, now_ms)


def _check_live(keys: KeyReader, name: str) -> None:
    if get_kek(keys, name, deleted=True).deleted:
        raise KeySoftDeleted(name)


def _undelete(keys: KeyWriter, dek: Dek, now_ms: int) -> None:
    if dek.deleted:
        keys.put_dek(replace(dek, deleted=False, changed_ms=now_ms))
