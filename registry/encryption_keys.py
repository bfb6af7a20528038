"""Key encryption keys (KEKs) and data encryption keys (DEKs) of client-side field-level encryption.

A KEK names a key in a key management service (KMS). A DEK belongs to a KEK and a subject. Clients encrypt DEKs with the
KEK and fields with the DEK; the registry stores the encrypted DEKs. Field names follow Confluent's DEK registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


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


@dataclass(frozen=True, slots=True)
class Kek:
    name: str
    kms_type: str
    kms_key_id: str
    kms_props: Mapping[str, str]
    doc: str | None
    shared: bool
    deleted: bool
    changed_ms: int

    def same_key(self, other: "Kek") -> bool:
        """Whether both describe the same key, regardless of timestamps and soft deletes."""
        return replace(self, deleted=False, changed_ms=0) == replace(other, deleted=False, changed_ms=0)

    @property
    def public_props(self) -> dict[str, str]:
        return {name: self.kms_props[name] for name in sorted(self.kms_props) if name not in SECRET_PROPERTIES}


@dataclass(frozen=True, slots=True)
class Dek:
    kek: str
    subject: str
    """The qualified name."""
    algorithm: Algorithm
    version: int
    encrypted_key_material: str
    deleted: bool
    changed_ms: int

    def same_key(self, other: "Dek") -> bool:
        return replace(self, deleted=False, changed_ms=0) == replace(other, deleted=False, changed_ms=0)


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
