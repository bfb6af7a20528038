"""Reads the SQLite store: one method per query of `registry.storage.base.StoreReader`, each with an index.

Each row is verified against its checksum before use.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar, cast

import msgspec

from headgate.registry.errors import DamagedRow
from headgate.registry.model import Config, Content, Mode, SchemaType
from headgate.registry.storage.base import (
    Change,
    Deleted,
    Referrer,
    Selection,
    StoredVersion,
    Use,
    VersionKey,
)
from headgate.registry.storage.sqlite.associations import SqliteAssociationReader
from headgate.registry.storage.sqlite.keys import SqliteKeyReader
from headgate.registry.storage.sqlite.rows import verified
from headgate.registry.subjects import DEFAULT_CONTEXT, Subject
from headgate.registry.wire import (
    WireConfig,
    WireMetadata,
    WireReference,
    WireRuleSet,
    config_changes,
    metadata_of,
    references_of,
    rule_set_of,
)

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)

_REFERENCES_DECODER: Final = msgspec.json.Decoder(list[WireReference])
_METADATA_DECODER: Final = msgspec.json.Decoder(WireMetadata)
_RULE_SET_DECODER: Final = msgspec.json.Decoder(WireRuleSet)
_CONFIG_DECODER: Final = msgspec.json.Decoder(WireConfig)

_PREFIX_END: Final = "\U0010ffff"
_BATCH_ROWS: Final = 500
_KEY: Final = "v.version, s.id, v.deleted, v.has_refs, v.created_ms, v.checksum"
_SCHEMA: Final = (
    "s.context, s.id, s.type, s.fingerprint, s.body_hash, s.body, s.refs, s.metadata, s.rule_set, s.checksum"
)
_COLUMNS: Final = f"u.context, u.name, {_KEY}, {_SCHEMA}"
_VERSION_COLUMNS: Final = 8
"""Positions in `_COLUMNS`, with the checksum. The columns of the schema follow."""
_JOINED: Final = "subjects u JOIN versions v ON v.subject = u.key JOIN schemas s ON s.key = v.schema"
CHANGES: Final = "SELECT sequence, at_ms, kind, subject, version, id, checksum FROM changes"
_OF_SUBJECT: Final = "(SELECT key FROM subjects WHERE context = ? AND name = ?)"
_LIVE: Final = "EXISTS (SELECT 1 FROM versions v WHERE v.subject = u.key AND v.deleted = 0)"
_HAS_ANY: Final = "EXISTS (SELECT 1 FROM versions v WHERE v.subject = u.key)"
_SHOWN: Final = {Deleted.HIDDEN: _LIVE, Deleted.SHOWN: _HAS_ANY, Deleted.ONLY: f"{_HAS_ANY} AND NOT {_LIVE}"}
_SHOWN_VERSIONS: Final = {Deleted.HIDDEN: "v.deleted = 0", Deleted.SHOWN: "1", Deleted.ONLY: "v.deleted = 1"}


class SqliteReader:
    """A view through one connection. The store begins and ends its transaction."""

    def __init__(self, connection: sqlite3.Connection, *, skip_damaged: bool = False) -> None:
        self._execute = connection.execute
        self._skip_damaged = skip_damaged
        """Omit damaged rows from lists and log them, instead of an error."""

    @property
    def keys(self) -> SqliteKeyReader:
        return SqliteKeyReader(self._execute)

    @property
    def associations(self) -> SqliteAssociationReader:
        return SqliteAssociationReader(self._execute)

    def version(self, subject: Subject, version: int) -> StoredVersion | None:
        row = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE u.context = ? AND u.name = ? AND v.version = ?",
            (subject.context, subject.name, version),
        ).fetchone()
        return None if row is None else _stored(row)

    def latest(self, subject: Subject) -> StoredVersion | None:
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE u.context = ? AND u.name = ? ORDER BY v.version DESC",
            (subject.context, subject.name),
        )
        # Verify each row: a damaged `deleted` must not make an older version the latest.
        return next((found for found in map(_stored, rows) if not found.deleted), None)

    def versions(self, subject: Subject) -> list[VersionKey]:
        rows = self._execute(
            f"SELECT {_KEY} FROM versions v JOIN schemas s ON s.key = v.schema "
            f"WHERE v.subject = {_OF_SUBJECT} ORDER BY v.version",
            (subject.context, subject.name),
        )
        return [_key(subject, row) for row in rows]

    def last_version(self, subject: Subject) -> int:
        row = self._execute(
            f"SELECT {_KEY} FROM versions v JOIN schemas s ON s.key = v.schema WHERE v.subject = {_OF_SUBJECT} "
            "ORDER BY v.version DESC LIMIT 1",
            (subject.context, subject.name),
        ).fetchone()
        return 0 if row is None else _key(subject, row).version

    def lookalikes(self, subject: Subject, text: str) -> list[VersionKey]:
        rows = self._execute(
            f"SELECT {_KEY} FROM schemas s JOIN versions v ON v.schema = s.key "
            f"WHERE s.body_hash = ? AND s.context = ? AND v.subject = {_OF_SUBJECT} UNION "
            f"SELECT {_KEY} FROM versions v JOIN schemas s ON s.key = v.schema "
            f"WHERE v.subject = {_OF_SUBJECT} AND v.has_refs = 1 ORDER BY 1 DESC",
            (body_hash(text), subject.context, *(subject.context, subject.name) * 2),
        )
        return [_key(subject, row) for row in rows]

    def has_subject(self, subject: Subject, *, deleted: bool) -> bool:
        return any(deleted or not key.deleted for key in self.versions(subject))

    def versions_with_content(self, subject: Subject, fingerprint: bytes, type: SchemaType) -> list[VersionKey]:
        rows = self._execute(
            f"SELECT {_KEY} FROM schemas s JOIN versions v ON v.schema = s.key "
            f"WHERE s.fingerprint = ? AND s.context = ? AND s.type = ? AND v.subject = {_OF_SUBJECT} "
            "ORDER BY v.version DESC",
            (fingerprint, subject.context, type.value, subject.context, subject.name),
        )
        return [_key(subject, row) for row in rows]

    def schema(self, context: str, id: int) -> StoredVersion | None:
        row = self._execute(
            f"SELECT {_COLUMNS} FROM schemas s JOIN versions v ON v.schema = s.key "
            "JOIN subjects u ON u.key = v.subject WHERE s.context = ? AND s.id = ? "
            "ORDER BY v.deleted, u.key, v.version LIMIT 1",
            (context, id),
        ).fetchone()
        return None if row is None else _stored(row)

    def uses(self, context: str, id: int) -> list[Use]:
        rows = self._execute(
            f"SELECT u.context, u.name, {_KEY} FROM schemas s JOIN versions v ON v.schema = s.key "
            "JOIN subjects u ON u.key = v.subject WHERE s.context = ? AND s.id = ? ORDER BY u.name, v.version",
            (context, id),
        )
        found = (verified("versions", row) for row in rows)
        return [Use(Subject(where, name), version, bool(deleted)) for where, name, version, _, deleted, *_ in found]

    def id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        row = self._execute(
            # Without the hint, the query planner scans the ids in order.
            "SELECT min(id) FROM schemas INDEXED BY schemas_by_fingerprint "
            "WHERE fingerprint = ? AND context = ? AND type = ?",
            (fingerprint, context, type.value),
        ).fetchone()
        return None if row[0] is None else int(row[0])

    def retired_id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        row = self._execute(
            "SELECT context, fingerprint, type, id, checksum FROM retired "
            "WHERE context = ? AND fingerprint = ? AND type = ?",
            (context, fingerprint, type.value),
        ).fetchone()
        return None if row is None else int(verified("retired", row)[3])

    def ids_of_fingerprint(self, fingerprint: bytes) -> list[tuple[str, int]]:
        rows = self._execute(
            f"SELECT {_SCHEMA} FROM schemas s WHERE fingerprint = ? ORDER BY context <> '.', context, id",
            (fingerprint,),
        )
        return [(context, id) for context, id, *_ in (verified("schemas", row) for row in rows)]

    def max_id(self, context: str) -> int:
        row = self._execute("SELECT max(id) FROM schemas WHERE context = ?", (context,)).fetchone()
        return int(row[0] or 0)

    def _narrowed(self, selection: Selection) -> Selection:
        """If only the default context exists, it represents all contexts: an index returns its subjects in order."""
        if selection.context is None and self._execute("SELECT count(*) FROM contexts").fetchone() == (1,):
            return Selection(DEFAULT_CONTEXT, selection.prefix)
        return selection

    def subjects(self, selection: Selection, deleted: Deleted, offset: int, limit: int) -> list[Subject]:
        where, parameters, order = _selected(self._narrowed(selection))
        rows = self._execute(
            f"SELECT u.context, u.name, u.checksum FROM subjects u WHERE {where} AND {_SHOWN[deleted]} "
            f"ORDER BY {order} LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
        )
        return list(self._sound(rows, lambda row: Subject(*verified("subjects", row))))

    def walk(
        self, selection: Selection, deleted: Deleted, *, latest_only: bool = False, skip: int = 0
    ) -> Iterator[StoredVersion]:
        where, parameters, order = _selected(self._narrowed(selection))
        latest = ""
        if latest_only:
            shown = _SHOWN_VERSIONS[deleted].replace("v.", "w.")
            latest = f"AND v.version = (SELECT max(w.version) FROM versions w WHERE w.subject = u.key AND {shown})"
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE {where} AND {_SHOWN_VERSIONS[deleted]} {latest} "
            f"ORDER BY {order}, v.version LIMIT -1 OFFSET ?",
            (*parameters, skip),
        )
        yield from self._sound(rows, _stored)

    def containing(self, text: str) -> Iterator[StoredVersion]:
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE v.deleted = 0 AND instr(lower(s.body), lower(?)) > 0 "
            "ORDER BY u.context, u.name, v.version",
            (text,),
        )
        yield from self._sound(rows, _stored)

    def _sound(self, rows: sqlite3.Cursor, made: Callable[[tuple[Any, ...]], T]) -> Iterator[T]:
        while batch := rows.fetchmany(_BATCH_ROWS):
            for row in batch:
                try:
                    yield made(row)
                except DamagedRow as error:
                    if not self._skip_damaged:
                        raise
                    _LOG.error("Left out: %s", error)

    def referrers(self, subject: Subject, version: int) -> list[Referrer]:
        rows = self._execute(
            "SELECT EXISTS (SELECT 1 FROM versions v WHERE v.schema = e.schema AND v.deleted = 0), "
            "s.context, s.id, e.context, e.name, e.version, e.checksum "
            "FROM edges e LEFT JOIN schemas s ON s.key = e.schema "
            "WHERE e.context = ? AND e.name = ? AND e.version = ? ORDER BY s.id",
            (subject.context, subject.name, version),
        )
        found: dict[Referrer, None] = {}
        for live, *row in rows:
            context, id, *_ = verified("edges", row)
            found[Referrer(context, id, bool(live))] = None
        return list(found)

    def spent_ids(self) -> list[tuple[str, int]]:
        rows = self._execute(
            "SELECT name, next_id, checksum FROM contexts c "
            "WHERE next_id > 1 + coalesce((SELECT max(id) FROM schemas s WHERE s.context = c.name), 0) ORDER BY name"
        )
        return list(self._sound(rows, lambda row: cast(tuple[str, int], verified("contexts", row))))

    def contexts(self) -> list[str]:
        rows = self._execute("SELECT name, next_id, checksum FROM contexts ORDER BY name <> '.', name")
        return list(self._sound(rows, lambda row: str(verified("contexts", row)[0])))

    def context_is_empty(self, context: str) -> bool:
        return not self._execute(
            f"SELECT EXISTS (SELECT 1 FROM subjects u WHERE u.context = ? AND {_HAS_ANY})", (context,)
        ).fetchone()[0]

    def config(self, scope: Subject) -> Config | None:
        row = self._execute(
            "SELECT context, name, body, checksum FROM configs WHERE context = ? AND name = ?",
            (scope.context, scope.name),
        ).fetchone()
        return None if row is None else _config_of(row)[1]

    def configs(self, selection: Selection) -> list[tuple[Subject, Config]]:
        where, parameters, order = _selected(selection)
        rows = self._execute(
            f"SELECT context, name, body, checksum FROM configs u WHERE {where} ORDER BY {order}", parameters
        )
        return list(self._sound(rows, _config_of))

    def mode(self, scope: Subject) -> Mode | None:
        row = self._execute(
            "SELECT context, name, mode, checksum FROM modes WHERE context = ? AND name = ?",
            (scope.context, scope.name),
        ).fetchone()
        return None if row is None else _mode_of(row)[1]

    def modes(self, selection: Selection) -> list[tuple[Subject, Mode]]:
        where, parameters, order = _selected(selection)
        rows = self._execute(
            f"SELECT context, name, mode, checksum FROM modes u WHERE {where} ORDER BY {order}", parameters
        )
        return list(self._sound(rows, _mode_of))

    def changes(self, after: int, limit: int) -> list[Change]:
        rows = self._execute(f"{CHANGES} WHERE sequence > ? ORDER BY sequence", (after,))
        return list(islice(_sound_changes(rows), limit))

    def last_change(self) -> int:
        rows = self._execute(f"{CHANGES} ORDER BY sequence DESC")
        return next((change.sequence for change in _sound_changes(rows)), 0)

    def counts(self) -> dict[str, int]:
        return {
            name: int(self._execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            for name in ("contexts", "subjects", "versions", "schemas")
        }


def body_hash(text: str) -> bytes:
    """Eight bytes are enough for the index. Callers compare the texts."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _selected(selection: Selection) -> tuple[str, tuple[Any, ...], str]:
    """WHERE and ORDER BY of a selection, for a table `u` with context and name."""
    prefix = selection.prefix
    if selection.context is None:
        # Qualified names in other contexts start with ":", which sorts among the names of the default context.
        qualified = "CASE u.context WHEN '.' THEN u.name ELSE ':' || u.context || ':' || u.name END"
        if not prefix:
            return "1", (), qualified
        return "u.name >= ? AND u.name < ?", (prefix, prefix + _PREFIX_END), qualified
    if not prefix:
        return "u.context = ?", (selection.context,), "u.name"
    return "u.context = ? AND u.name >= ? AND u.name < ?", (selection.context, prefix, prefix + _PREFIX_END), "u.name"


def _key(subject: Subject, row: tuple[Any, ...]) -> VersionKey:
    _, _, version, id, deleted, *_ = verified("versions", (subject.context, subject.name, *row))
    return VersionKey(version, id, bool(deleted))


def _stored(row: tuple[Any, ...]) -> StoredVersion:
    context, name, version, id, deleted, _, created_ms = verified("versions", row[:_VERSION_COLUMNS])
    _, _, type, fingerprint, _, body, refs, metadata, rule_set = verified("schemas", row[_VERSION_COLUMNS:])
    return StoredVersion(
        subject=Subject(context, name),
        version=version,
        id=id,
        content=Content(
            type=SchemaType(type),
            text=body,
            references=references_of(_REFERENCES_DECODER.decode(refs)) if refs else (),
            metadata=metadata_of(_METADATA_DECODER.decode(metadata), merged=True) if metadata else None,
            rule_set=rule_set_of(_RULE_SET_DECODER.decode(rule_set), merged=True) if rule_set else None,
        ),
        fingerprint=fingerprint,
        created_ms=created_ms,
        deleted=bool(deleted),
    )


def _sound_changes(rows: Iterable[tuple[Any, ...]]) -> Iterator[Change]:
    """Skip damaged changes, so that the stream of later changes continues. Their numbers are missing."""
    for row in rows:
        try:
            yield Change(*verified("changes", row))
        except DamagedRow as error:
            _LOG.error("Left out: %s", error)


def _config_of(row: tuple[Any, ...]) -> tuple[Subject, Config]:
    context, name, body = verified("configs", row)
    return Subject(context, name), Config(**config_changes(_CONFIG_DECODER.decode(body)))


def _mode_of(row: tuple[Any, ...]) -> tuple[Subject, Mode]:
    context, name, mode = verified("modes", row)
    return Subject(context, name), Mode(mode)
