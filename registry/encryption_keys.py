"""Key encryption keys (KEKs) and data encryption keys (DEKs) of client-side field-level encryption.

A KEK names a key in a key management service (KMS). A DEK belongs to a KEK and a subject. Clients encrypt DEKs with the
KEK and fields with the DEK; the registry stores the encrypted DEKs. Field names follow Confluent's DEK registry.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec.structs import replace


class Algorithm(StrEnum):
    """The cipher of a DEK."""

    AES128_GCM = "AES128_GCM"
    AES256_GCM = "AES256_GCM"
    AES256_SIV = "AES256_SIV"


DEFAULT_ALGORITHM: Final = Algorithm.AES256_GCM

SECRET_PROPERTIES: Final = frozenset(
    {
        "token.id",  # Vault
        "approle.secret.id",  # Vault
        "ssl.keystore.password",  # Vault
        "secret.access.key",  # AWS
        "client.secret",  # Azure
        "private.key",  # Google Cloud
        "secret",  # local KMS
    }
)
"""KMS properties with credentials. They are stored, but never returned to readers of a KEK."""
HIDDEN: Final = "[hidden]"
"""The placeholder that some clients show and send back instead of a secret property."""


class Kek(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    kms_type: str = msgspec.field(name="kmsType")
    kms_key_id: str = msgspec.field(name="kmsKeyId")
    kms_props: Mapping[str, str] = msgspec.field(name="kmsProps")
    shared: bool
    changed_ms: int = msgspec.field(name="ts")
    doc: str | None = None
    deleted: bool = False

    def same_key(self, other: "Kek") -> bool:
        """Whether both describe the same key, regardless of timestamps and soft deletes."""
        return replace(self, deleted=False, changed_ms=0) == replace(other, deleted=False, changed_ms=0)

    def to_json(self) -> Any:
        """The KEK without credentials."""
        props = {name: self.kms_props[name] for name in sorted(self.kms_props) if name not in SECRET_PROPERTIES}
        return msgspec.to_builtins(replace(self, kms_props=props))


class Dek(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    kek: str = msgspec.field(name="kekName")
    subject: str
    """The qualified name."""
    version: int
    algorithm: Algorithm
    encrypted_key_material: str = msgspec.field(name="encryptedKeyMaterial")
    changed_ms: int = msgspec.field(name="ts")
    deleted: bool = False

    def same_key(self, other: "Dek") -> bool:
        return replace(self, deleted=False, changed_ms=0) == replace(other, deleted=False, changed_ms=0)

    def to_json(self) -> Any:
        return msgspec.to_builtins(self)


def merged_props(requested: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """The requested properties, with stored secrets where the request omits or hides them.

    Responses omit secrets. Therefore a client that sends back a response must not erase them.
    """
    merged = dict(requested)
    for name in SECRET_PROPERTIES:
        if merged.get(name, HIDDEN) == HIDDEN:
            merged.pop(name, None)
            if name in stored:
                merged[name] = stored[name]
    return merged
