"""The interface of a registry store.

A store contains contexts, subjects, versions, the content of each id, configuration, modes, keys, associations and a
log of changes. It makes no decisions: `registry.service` chooses ids and versions and allows deletes. The same contract
tests run for every store.
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
    """A subject and version that uses an id."""

    subject: Subject
    version: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class Referrer:
    """A schema that refers to a version."""

    context: str
    id: int
    live: bool
    """False if all versions that use it are soft-deleted."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change, for subscribers of the change log."""

    sequence: int
    at_ms: int
    kind: str
    subject: str
    version: int | None
    id: int | None


class Deleted(Enum):
    """Which versions and subjects a list contains."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter for subjects: one context or all (None), and a prefix of the name."""

    context: str | None
    prefix: str = ""

    @classmethod
    def parse(cls, text: str) -> "Selection":
        if text.startswith(":*:"):
            return cls(None, text[3:])
        subject = Subject.parse(text)
        return cls(subject.context, subject.name)


class KeyReader(Protocol):
    """Reads encryption keys, including soft-deleted ones."""

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
        """Whether the KEK has a live DEK, or with `deleted` any DEK."""
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
    """Reads associations, ordered by `Association.order`."""

    def of_subject(self, subject: Subject) -> list[Association]: ...
    def of_resource(self, resource_id: str, resource_type: str) -> list[Association]: ...
    def of_resource_name(self, name: str, namespace: str | None, resource_type: str) -> list[Association]:
        """In one namespace, or in all (None)."""
        ...

    def walk(self) -> Iterator[Association]: ...
    def count(self) -> int: ...


class AssociationWriter(AssociationReader, Protocol):
    def put(self, association: Association) -> None:
        """Add an association, or replace the one with the same resource id, resource type and association type."""
        ...

    def remove(self, association: Association) -> None: ...


class StoreReader(Protocol):
    """One consistent view of committed data."""

    @property
    def keys(self) -> KeyReader: ...
    @property
    def associations(self) -> AssociationReader: ...
    def version(self, subject: Subject, version: int) -> StoredVersion | None: ...
    def latest(self, subject: Subject) -> StoredVersion | None:
        """The highest version that is not soft-deleted."""
        ...

    def versions(self, subject: Subject) -> list[VersionKey]:
        """All versions, including soft-deleted ones, ascending."""
        ...

    def last_version(self, subject: Subject) -> int:
        """The highest number in use, including soft-deleted versions. 0 if there is none."""
        ...

    def lookalikes(self, subject: Subject, text: str) -> list[VersionKey]:
        """Versions with exactly this text and any metadata, and versions with references. Highest first."""
        ...

    def has_subject(self, subject: Subject, *, deleted: bool) -> bool:
        """Whether the subject has a live version, or with `deleted` any version."""
        ...

    def versions_with_content(self, subject: Subject, fingerprint: bytes, type: SchemaType) -> list[VersionKey]:
        """Highest first."""
        ...

    def schema(self, context: str, id: int) -> StoredVersion | None:
        """The content of an id, with a version that uses it, preferably a live one."""
        ...

    def uses(self, context: str, id: int) -> list[Use]:
        """By subject and version."""
        ...

    def id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None: ...
    def retired_id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        """The id that the content had before its permanent delete."""
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
        """Versions by subject, ascending, without the first `skip`."""
        ...

    def containing(self, text: str) -> Iterator[StoredVersion]:
        """Live versions whose text contains `text`, ignoring case."""
        ...

    def referrers(self, subject: Subject, version: int) -> list[Referrer]: ...
    def spent_ids(self) -> list[tuple[str, int]]:
        """Contexts whose highest ids are no longer in use, each with its next id."""
        ...

    def contexts(self) -> list[str]:
        """The default context first, then by name."""
        ...

    def context_is_empty(self, context: str) -> bool: ...
    def config(self, scope: Subject) -> Config | None: ...
    def configs(self, selection: Selection) -> list[tuple[Subject, Config]]: ...
    def mode(self, scope: Subject) -> Mode | None: ...
    def modes(self, selection: Selection) -> list[tuple[Subject, Mode]]: ...
    def changes(self, after: int, limit: int) -> list[Change]: ...
    def last_change(self) -> int: ...
    def counts(self) -> dict[str, int]:
        """The number of stored objects by kind."""
        ...


class StoreWriter(StoreReader, Protocol):
    """A view that also sees and makes uncommitted changes."""

    @property
    def keys(self) -> KeyWriter: ...
    @property
    def associations(self) -> AssociationWriter: ...
    def allocate_id(self, context: str) -> int:
        """An id that was never used in this context."""
        ...

    def spend_ids(self, context: str, next_id: int) -> None:
        """Ensure that ids below `next_id` are never assigned. Creates the context."""
        ...

    def put_version(self, version: StoredVersion) -> None:
        """Add a version, or replace the version with the same number. Creates the context."""
        ...

    def mark_deleted(self, subject: Subject, version: int) -> None: ...
    def remove_version(self, subject: Subject, version: int) -> None:
        """Also removes the content of its id, if nothing else uses it."""
        ...

    def remove_context(self, context: str) -> None:
        """Also removes its configuration and modes."""
        ...

    def put_config(self, scope: Subject, config: Config) -> None: ...
    def remove_config(self, scope: Subject) -> None: ...
    def put_mode(self, scope: Subject, mode: Mode) -> None: ...
    def remove_mode(self, scope: Subject) -> None: ...
    def remove_modes_of_context(self, context: str) -> None: ...


Operation: TypeAlias = Callable[[StoreWriter], Any]


@dataclass(frozen=True, slots=True)
class Touched:
    """The changes of a batch. Cached responses about them are stale."""

    subjects: frozenset[str] = frozenset()
    """Subject names without contexts."""
    ids: frozenset[int] = frozenset()
    settings: bool = False
    """Configuration, modes or contexts."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    results: tuple[Any | RegistryError, ...]
    """The result of each operation, or the error that undid it."""
    touched: Touched


class Staged(Protocol):
    """A batch of executed operations that is not committed yet. Other writes wait for it."""

    def commit(self) -> BatchOutcome:
        """Commit, in any thread. Returns when the data is on disk. Raises `StoreFailed` if nothing was saved."""
        ...


class RegistryStore(Protocol):
    def reading(self) -> AbstractContextManager[StoreReader]:
        """A view for one request. Do not keep it during waits."""
        ...

    def snapshot(self, *, skip_damaged: bool = False) -> AbstractContextManager[StoreReader]:
        """A separate view for a long read, in any thread, one thread at a time.

        With `skip_damaged`, lists omit damaged entries and log them.
        """
        ...

    def stage(self, operations: Sequence[Operation]) -> Staged:
        """Run the operations in order, each atomically, for one common commit.

        Raises `StoreFailed` if nothing of the batch is saved.
        """
        ...

    def apply(self, operations: Sequence[Operation]) -> BatchOutcome:
        """Stage and commit."""
        ...

    def check(self) -> None:
        """Raise `StoreFailed` if the store cannot be read or written."""
        ...

    def close(self) -> None: ...
