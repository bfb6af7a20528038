"""Reading the SQLite store: one method per question of `registry.storage.base.StoreReader`, each by an index."""

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from registry.model import Config, Content, Mode, SchemaType
from registry.storage.base import (
    Change,
    Deleted,
    Referrer,
    Selection,
    StoredVersion,
    Use,
    VersionKey,
)
from registry.subjects import DEFAULT_CONTEXT, Subject
from registry.wire import (
    WireConfig,
    WireMetadata,
    WireReference,
    WireRuleSet,
    config_changes,
    metadata_of,
    references_of,
    rule_set_of,
)

_references: Final = msgspec.json.Decoder(list[WireReference])
_metadata: Final = msgspec.json.Decoder(WireMetadata)
_rule_set: Final = msgspec.json.Decoder(WireRuleSet)
_config: Final = msgspec.json.Decoder(WireConfig)

_PREFIX_END: Final = "\U0010ffff"
_BATCH_ROWS: Final = 500
_COLUMNS: Final = (
    "u.context, u.name, v.version, s.id, s.type, s.body, s.refs, s.metadata, s.rule_set, "
    "s.fingerprint, v.created_ms, v.deleted"
)
_JOINED: Final = "subjects u JOIN versions v ON v.subject = u.key JOIN schemas s ON s.key = v.schema"
_OF_SUBJECT: Final = "(SELECT key FROM subjects WHERE context = ? AND name = ?)"
_LIVE: Final = "EXISTS (SELECT 1 FROM versions v WHERE v.subject = u.key AND v.deleted = 0)"
_HAS_ANY: Final = "EXISTS (SELECT 1 FROM versions v WHERE v.subject = u.key)"
_SHOWN: Final = {Deleted.HIDDEN: _LIVE, Deleted.SHOWN: _HAS_ANY, Deleted.ONLY: f"{_HAS_ANY} AND NOT {_LIVE}"}
_SHOWN_VERSIONS: Final = {Deleted.HIDDEN: "v.deleted = 0", Deleted.SHOWN: "1", Deleted.ONLY: "v.deleted = 1"}


class SqliteReader:
    """A view through one connection. Its transaction is opened and ended by the store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def version(self, subject: Subject, version: int) -> StoredVersion | None:
        row = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE u.context = ? AND u.name = ? AND v.version = ?",
            (subject.context, subject.name, version),
        ).fetchone()
        return None if row is None else _stored(row)

    def latest(self, subject: Subject) -> StoredVersion | None:
        row = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE u.context = ? AND u.name = ? AND v.deleted = 0 "
            "ORDER BY v.version DESC LIMIT 1",
            (subject.context, subject.name),
        ).fetchone()
        return None if row is None else _stored(row)

    def versions(self, subject: Subject) -> list[VersionKey]:
        rows = self._execute(
            "SELECT v.version, s.id, v.deleted FROM versions v JOIN schemas s ON s.key = v.schema "
            f"WHERE v.subject = {_OF_SUBJECT} ORDER BY v.version",
            (subject.context, subject.name),
        )
        return [VersionKey(version, id, bool(deleted)) for version, id, deleted in rows]

    def last_version(self, subject: Subject) -> int:
        row = self._execute(
            f"SELECT max(version) FROM versions WHERE subject = {_OF_SUBJECT}", (subject.context, subject.name)
        ).fetchone()
        return int(row[0] or 0)

    def lookalikes(self, subject: Subject, text: str) -> list[VersionKey]:
        rows = self._execute(
            "SELECT v.version, s.id, v.deleted FROM schemas s JOIN versions v ON v.schema = s.key "
            f"WHERE s.body_hash = ? AND s.context = ? AND v.subject = {_OF_SUBJECT} UNION "
            "SELECT v.version, s.id, v.deleted FROM versions v JOIN schemas s ON s.key = v.schema "
            f"WHERE v.subject = {_OF_SUBJECT} AND v.has_refs = 1 ORDER BY 1 DESC",
            (body_hash(text), subject.context, *(subject.context, subject.name) * 2),
        )
        return [VersionKey(version, id, bool(deleted)) for version, id, deleted in rows]

    def has_subject(self, subject: Subject, *, deleted: bool) -> bool:
        live = "" if deleted else "AND deleted = 0"
        return bool(
            self._execute(
                f"SELECT EXISTS (SELECT 1 FROM versions WHERE subject = {_OF_SUBJECT} {live})",
                (subject.context, subject.name),
            ).fetchone()[0]
        )

    def versions_with_content(self, subject: Subject, fingerprint: bytes, type: SchemaType) -> list[VersionKey]:
        rows = self._execute(
            "SELECT v.version, s.id, v.deleted FROM schemas s JOIN versions v ON v.schema = s.key "
            f"WHERE s.fingerprint = ? AND s.context = ? AND s.type = ? AND v.subject = {_OF_SUBJECT} "
            "ORDER BY v.version DESC",
            (fingerprint, subject.context, type.value, subject.context, subject.name),
        )
        return [VersionKey(version, id, bool(deleted)) for version, id, deleted in rows]

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
            "SELECT u.context, u.name, v.version, v.deleted FROM schemas s JOIN versions v ON v.schema = s.key "
            "JOIN subjects u ON u.key = v.subject WHERE s.context = ? AND s.id = ? ORDER BY u.name, v.version",
            (context, id),
        )
        return [Use(Subject(where, name), version, bool(deleted)) for where, name, version, deleted in rows]

    def id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        row = self._execute(
            # The planner would rather walk the ids in order.
            "SELECT min(id) FROM schemas INDEXED BY schemas_by_fingerprint "
            "WHERE fingerprint = ? AND context = ? AND type = ?",
            (fingerprint, context, type.value),
        ).fetchone()
        return None if row[0] is None else int(row[0])

    def retired_id_of_content(self, context: str, fingerprint: bytes, type: SchemaType) -> int | None:
        row = self._execute(
            "SELECT id FROM retired WHERE context = ? AND fingerprint = ? AND type = ?",
            (context, fingerprint, type.value),
        ).fetchone()
        return None if row is None else int(row[0])

    def ids_of_fingerprint(self, fingerprint: bytes) -> list[tuple[str, int]]:
        return self._execute(
            "SELECT context, id FROM schemas WHERE fingerprint = ? ORDER BY context <> '.', context, id",
            (fingerprint,),
        ).fetchall()

    def max_id(self, context: str) -> int:
        row = self._execute("SELECT max(id) FROM schemas WHERE context = ?", (context,)).fetchone()
        return int(row[0] or 0)

    def _narrowed(self, selection: Selection) -> Selection:
        """All contexts are one where there is only the default one: its subjects come in order from an index."""
        if selection.context is None and self._execute("SELECT count(*) FROM contexts").fetchone() == (1,):
            return Selection(DEFAULT_CONTEXT, selection.prefix)
        return selection

    def subjects(self, selection: Selection, deleted: Deleted, offset: int, limit: int) -> list[Subject]:
        where, parameters, order = _selected(self._narrowed(selection))
        rows = self._execute(
            f"SELECT u.context, u.name FROM subjects u WHERE {where} AND {_SHOWN[deleted]} "
            f"ORDER BY {order} LIMIT ? OFFSET ?",
            (*parameters, limit, offset),
        )
        return [Subject(context, name) for context, name in rows]

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
        yield from _each(rows)

    def containing(self, text: str) -> Iterator[StoredVersion]:
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {_JOINED} WHERE v.deleted = 0 AND instr(lower(s.body), lower(?)) > 0 "
            "ORDER BY u.context, u.name, v.version",
            (text,),
        )
        yield from _each(rows)

    def referrers(self, subject: Subject, version: int) -> list[Referrer]:
        rows = self._execute(
            "SELECT s.context, s.id, EXISTS (SELECT 1 FROM versions v WHERE v.schema = s.key AND v.deleted = 0) "
            "FROM edges e JOIN schemas s ON s.key = e.schema WHERE e.context = ? AND e.name = ? AND e.version = ? "
            "GROUP BY s.key ORDER BY s.id",
            (subject.context, subject.name, version),
        )
        return [Referrer(context, id, bool(live)) for context, id, live in rows]

    def spent_ids(self) -> list[tuple[str, int]]:
        return self._execute(
            "SELECT name, next_id FROM contexts c "
            "WHERE next_id > 1 + coalesce((SELECT max(id) FROM schemas s WHERE s.context = c.name), 0) ORDER BY name"
        ).fetchall()

    def contexts(self) -> list[str]:
        return [name for (name,) in self._execute("SELECT name FROM contexts ORDER BY name <> '.', name")]

    def context_is_empty(self, context: str) -> bool:
        return not self._execute(
            f"SELECT EXISTS (SELECT 1 FROM subjects u WHERE u.context = ? AND {_HAS_ANY})", (context,)
        ).fetchone()[0]

    def config(self, scope: Subject) -> Config | None:
        row = self._execute(
            "SELECT body FROM configs WHERE context = ? AND name = ?", (scope.context, scope.name)
        ).fetchone()
        return None if row is None else _config_of(row[0])

    def configs(self, selection: Selection) -> list[tuple[Subject, Config]]:
        where, parameters, order = _selected(selection)
        rows = self._execute(f"SELECT context, name, body FROM configs u WHERE {where} ORDER BY {order}", parameters)
        return [(Subject(context, name), _config_of(body)) for context, name, body in rows]

    def mode(self, scope: Subject) -> Mode | None:
        row = self._execute(
            "SELECT mode FROM modes WHERE context = ? AND name = ?", (scope.context, scope.name)
        ).fetchone()
        return None if row is None else Mode(row[0])

    def modes(self, selection: Selection) -> list[tuple[Subject, Mode]]:
        where, parameters, order = _selected(selection)
        rows = self._execute(f"SELECT context, name, mode FROM modes u WHERE {where} ORDER BY {order}", parameters)
        return [(Subject(context, name), Mode(mode)) for context, name, mode in rows]

    def changes(self, after: int, limit: int) -> list[Change]:
        rows = self._execute(
            "SELECT sequence, at_ms, kind, subject, version, id FROM changes WHERE sequence > ? "
            "ORDER BY sequence LIMIT ?",
            (after, limit),
        )
        return [Change(*row) for row in rows]

    def last_change(self) -> int:
        row = self._execute("SELECT max(sequence) FROM changes").fetchone()
        return int(row[0] or 0)

    def counts(self) -> dict[str, int]:
        return {
            name: int(self._execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            for name in ("contexts", "subjects", "versions", "schemas")
        }


def body_hash(text: str) -> bytes:
    """Eight bytes are enough to find a text by; who must be sure compares the texts."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _selected(selection: Selection) -> tuple[str, tuple[Any, ...], str]:
    """The WHERE and ORDER BY of a selection over a table `u` with context and name."""
    prefix = selection.prefix
    if selection.context is None:
        # Qualified names of other contexts start with ":", which sorts among the names of the default one.
        qualified = "CASE u.context WHEN '.' THEN u.name ELSE ':' || u.context || ':' || u.name END"
        if not prefix:
            return "1", (), qualified
        return "u.name >= ? AND u.name < ?", (prefix, prefix + _PREFIX_END), qualified
    if not prefix:
        return "u.context = ?", (selection.context,), "u.name"
    return "u.context = ? AND u.name >= ? AND u.name < ?", (selection.context, prefix, prefix + _PREFIX_END), "u.name"


def _each(rows: sqlite3.Cursor) -> Iterator[StoredVersion]:
    while batch := rows.fetchmany(_BATCH_ROWS):
        for row in batch:
            yield _stored(row)


def _stored(row: tuple[Any, ...]) -> StoredVersion:
    context, name, version, id, type, body, refs, metadata, rule_set, fingerprint, created_ms, deleted = row
    return StoredVersion(
        subject=Subject(context, name),
        version=version,
        id=id,
        content=Content(
            type=SchemaType(type),
            text=body,
            references=references_of(_references.decode(refs)) if refs else (),
            metadata=metadata_of(_metadata.decode(metadata), merged=True) if metadata else None,
            rule_set=rule_set_of(_rule_set.decode(rule_set), merged=True) if rule_set else None,
        ),
        fingerprint=fingerprint,
        created_ms=created_ms,
        deleted=bool(deleted),
    )


def _config_of(body: str) -> Config:
    return Config(**config_changes(_config.decode(body)))
