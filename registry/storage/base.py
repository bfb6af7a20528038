"""What the registry asks of its store: the seam between decisions and durability.

A store keeps contexts, subjects, their versions, the content behind each id, configuration and modes, and a log of
changes. It decides nothing: which id, which version, whether a delete is allowed is `registry.service`. The same
contract tests run over every store.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

from headgate.registry.associations import Association
from headgate.registry.encryption_keys import Algorithm, Dek, Kek
from headgate.registry.errors import RegistryError
from headgate.registry.model import Config, Content, Mode, SchemaType, guid_of
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class VersionKey:
    """A version of a subject, without its content."""

    version: int
    id: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class StoredVersion:
    subject: Subject
    version: int
    id: int
    content: Content
    fingerprint: bytes
    created_ms: int
    deleted: bool = False

    @property
    def guid(self) -> str:
        return guid_of(self.fingerprint)


@dataclass(frozen=True, slots=True)
class Use:
    """Where an id is used."""

    subject: Subject
    version: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class Referrer:
    """A schema that refers to a version."""

    context: str
    id: int
    live: bool
    """False when every version that uses it is soft-deleted."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened, for those who follow along."""

    sequence: int
    at_ms: int
    kind: str
    subject: str
    version: int | None
    id: int | None


class Deleted(Enum):
    """Which versions and subjects a listing shows."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which subjects: of one context or (None) of all, by the start of their name."""

    context: str | None
    prefix: str = ""

    @classmethod
    def parse(cls, text: str) -> "Selection":
        if text.startswith(":*:"):
            return cls(None, text[3:])
        subject = Subject.parse(text)
        return cls(subject.context, subject.name)


class KeyReader(Protocol):
    """Encryption keys. Soft-deleted ones are included everywhere."""

    def kek(self, name: str) -> Kek | None: ...
    def keks(self) -> list[Kek]:
        """Ordered by name."""
        ...

    def kek_count(self) -> int: ...
    def dek(self, kek: str, subject: str, algorithm: Algorithm, version: int) -> Dek | None: ...
    def deks(self, kek: str) -> list[Dek]:
        """Ordered by subject, algorithm and version."""
        ...

    def has_deks(self, kek: str, *, deleted: bool) -> bool:
        """Whether the KEK has a live DEK, or (`deleted`) any."""
        ...

    def deks_of_subject(self, kek: str, subject: str, algorithm: Algorithm) -> list[Dek]:
        """Ordered by version."""
        ...

    def all_deks(self) -> list[Dek]:
        """Ordered by KEK, subject, algorithm and version."""
        ...

    def dek_count(self) -> int: ...


class KeyWriter(KeyReader, Protocol):
    def put_kek(self, kek: Kek) -> None: ...
    def remove_kek(self, name: str) -> None: ...
    def put_dek(self, dek: Dek) -> None: ...
    def remove_dek(self, dek: Dek) -> None: ...


class AssociationReader(Protocol):
    """Associations, ordered by `Association.order`."""

    def of_subject(self, subject: Subject) -> list[Association]: ...
    def of_resource(self, resource_id: str, resource_type: str) -> list[Association]: ...
    def of_resource_name(self, name: str, namespace: str | None, resource_type: str) -> list[Association]:
        """Of one namespace, or of all of them (None)."""
        ...

    def walk(self) -> Iterator[Association]: ...
    def count(self) -> int: ...


class AssociationWriter(AssociationReader, Protocol):
    def put(self, association: Association) -> None:
        """Add an association, or replace that of the same resource id, resource type and association type."""
        ...

    def remove(self, association: Association) -> None: ...


class StoreReader(Protocol):
    """One consistent view of what is committed."""

    @property
    def keys(self) -> KeyReader: ...
    @property
    def associations(self) -> AssociationReader: ...
    def version(self, subject: Subject, version: int) -> StoredVersion | None: ...
    def latest(self, subject: Subject) -> StoredVersion | None:
        """The highest version that is not soft-deleted."""
        ...

    def versions(self, subject: Subject) -> list[VersionKey]:
        """All of them, soft-deleted ones too, ascending."""
        ...

    def last_version(self, subject: Subject) -> int:
        """The highest number in use, by a soft-deleted version too; 0 without any."""
        ...

    def lookalikes(self, subject: Subject, text: str) -> list[VersionKey]:
        """Versions with exactly this text, whatever their metadata, and those with references. Highest first."""
        ...

    def has_subject(self, subject: Subject, *, deleted: bool) -> bool:
        """Whether it has a live version, or (`deleted`) any."""
        ...

    def versions_with_content(self, subject: Subject, fingerprint: bytes, type: SchemaType) -> list[VersionKey]:
        """Highest first."""
        ...

    def schema(self, context: str, id: int) -> StoredVersion | None:
        """The content of an id, with a version that uses it: a live one if there is."""
        ...

    def uses(self, context: str, id: int) -> list[Use]:
        """By subject and version."""
        ...

    def id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None: ...
    def retired_id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        """The id that content had before it was permanently deleted."""
        ...

    def ids_of_fingerprint(self, fingerprint: bytes) -> list[tuple[str, int]]:
        """Context and id, the default context first."""
        ...

    def max_id(self, context: str) -> int: ...
    def subjects(self, selection: Selection, deleted: Deleted, offset: int, limit: int) -> list[Subject]:
        """By their qualified names."""
        ...

    def walk(
        self, selection: Selection, deleted: Deleted, *, latest_only: bool = False, skip: int = 0
    ) -> Iterator[StoredVersion]:
        """Subject by subject, versions ascending, without the first `skip` of them."""
        ...

    def containing(self, text: str) -> Iterator[StoredVersion]:
        """Live versions whose schema text holds `text`, whatever its case."""
        ...

    def referrers(self, subject: Subject, version: int) -> list[Referrer]: ...
    def spent_ids(self) -> list[tuple[str, int]]:
        """The contexts whose highest ids no schema has any more, each with the next id that it will give out."""
        ...

    def contexts(self) -> list[str]:
        """The default one first, the others by name."""
        ...

    def context_is_empty(self, context: str) -> bool: ...
    def config(self, scope: Subject) -> Config | None: ...
    def configs(self, selection: Selection) -> list[tuple[Subject, Config]]: ...
    def mode(self, scope: Subject) -> Mode | None: ...
    def modes(self, selection: Selection) -> list[tuple[Subject, Mode]]: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def last_change(self) -> int: ...
    def counts(self) -> dict[str, int]:
        """How many of each thing are stored."""
        ...


class StoreWriter(StoreReader, Protocol):
    """A view that also sees, and makes, changes not yet committed."""

    @property
    def keys(self) -> KeyWriter: ...
    @property
    def associations(self) -> AssociationWriter: ...
    def allocate_id(self, context: str) -> int:
        """An id that was never given out in this context."""
        ...

    def spend_ids(self, context: str, next_id: int) -> None:
        """Ids below `next_id` are not to be given out. The context comes to be with it."""
        ...

    def put_version(self, version: StoredVersion) -> None:
        """Add a version, or replace the one that has its number. Its context comes to be with it."""
        ...

    def mark_deleted(self, subject: Subject, version: int) -> None: ...
    def remove_version(self, subject: Subject, version: int) -> None:
        """And the content of its id, when nothing else uses it."""
        ...

    def remove_context(self, context: str) -> None:
        """With its configuration and modes."""
        ...

    def put_config(self, scope: Subject, config: Config) -> None: ...
    def remove_config(self, scope: Subject) -> None: ...
    def put_mode(self, scope: Subject, mode: Mode) -> None: ...
    def remove_mode(self, scope: Subject) -> None: ...
    def remove_modes_of_context(self, context: str) -> None: ...


Operation: TypeAlias = Callable[[StoreWriter], Any]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a batch of operations changed: answers about it that were kept are stale."""

    subjects: frozenset[str] = frozenset()
    """Names, without their contexts."""
    ids: frozenset[int] = frozenset()
    settings: bool = False
    """Configuration, modes or contexts."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    results: tuple[Any | RegistryError, ...]
    """Of each operation: what it returned, or the error that undid it."""
    touched: Touched


class Staged(Protocol):
    """Operations that were run and wait to be made durable. Nothing else is written meanwhile."""

    def commit(self) -> BatchOutcome:
        """In any thread. Returns when all is on disk; raises `StoreFailed` when nothing is kept."""
        ...


class RegistryStore(Protocol):
    def reading(self) -> AbstractContextManager[StoreReader]:
        """A view for one question. Not to be held while waiting for anything."""
        ...

    def snapshot(self, *, skip_damaged: bool = False) -> AbstractContextManager[StoreReader]:
        """A view of its own, for a long read in any threads, one at a time.

        With `skip_damaged`, listings leave damaged entries out and log them instead of failing.
        """
        ...

    def stage(self, operations: Sequence[Operation]) -> Staged:
        """Run the operations in order, each fully or not at all; to be committed together.

        Raises `StoreFailed` when nothing of the batch is kept.
        """
        ...

    def apply(self, operations: Sequence[Operation]) -> BatchOutcome:
        """Stage and commit."""
        ...

    def check(self) -> None:
        """Raise `StoreFailed` unless the store can be read and written right now."""
        ...

    def close(self) -> None: ...
