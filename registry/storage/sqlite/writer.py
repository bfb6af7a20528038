"""Writes the SQLite store: one method per change of `registry.storage.base.StoreWriter`.

Each row that affects responses has a checksum (`rows`), which the reader verifies.
"""

import sqlite3
from collections.abc import Callable
from typing import Final

import orjson

from headgate.registry import limits
from headgate.registry.errors import OperationNotPermitted
from headgate.registry.model import Config, Mode
from headgate.registry.storage.base import StoredVersion, Touched
from headgate.registry.storage.sqlite.associations import SqliteAssociationWriter
from headgate.registry.storage.sqlite.edges import put_edges
from headgate.registry.storage.sqlite.keys import SqliteKeyWriter
from headgate.registry.storage.sqlite.reader import SqliteReader, body_hash
from headgate.registry.storage.sqlite.rows import checksum, verified
from headgate.registry.subjects import DEFAULT_CONTEXT, Subject
from headgate.registry.wire import config_json, metadata_json, references_json, rule_set_json

_PRUNE_EVERY: Final = 1000


class SqliteWriter(SqliteReader):
    """A `registry.storage.base.StoreWriter` in the open transaction of the store."""

    def __init__(self, connection: sqlite3.Connection, now_ms: Callable[[], int]) -> None:
        super().__init__(connection)
        self._now_ms = now_ms
        self._touched_subjects: set[str] = set()
        self._touched_ids: set[int] = set()
        self._touched_settings = False

    @property
    def keys(self) -> SqliteKeyWriter:
        return SqliteKeyWriter(self._execute)

    @property
    def associations(self) -> SqliteAssociationWriter:
        return SqliteAssociationWriter(self._execute)

    def touched(self) -> Touched:
        return Touched(frozenset(self._touched_subjects), frozenset(self._touched_ids), self._touched_settings)

    def _log(self, kind: str, subject: str, version: int | None = None, id: int | None = None) -> None:
        values = (self._now_ms(), kind, subject, version, id)
        cursor = self._execute("INSERT INTO changes (at_ms, kind, subject, version, id) VALUES (?, ?, ?, ?, ?)", values)
        sequence = cursor.lastrowid or 0
        self._execute("UPDATE changes SET checksum = ? WHERE sequence = ?", (checksum((sequence, *values)), sequence))
        if sequence % _PRUNE_EVERY == 0:
            self._execute("DELETE FROM changes WHERE sequence <= ?", (sequence - limits.CHANGES_KEPT_MAX,))

    def allocate_id(self, context: str) -> int:
        id = self._next_id(context)
        if id > limits.ID_MAX:
            raise OperationNotPermitted(f"The context {context} has used all ids up to {limits.ID_MAX}")
        self._put_next_id(context, id + 1)
        return id

    def _next_id(self, context: str) -> int:
        """The next id; 1 for a new context. Raises DamagedRow: a wrong number would assign an id twice."""
        row = self._execute("SELECT name, next_id, checksum FROM contexts WHERE name = ?", (context,)).fetchone()
        return 1 if row is None else int(verified("contexts", row)[1])

    def _put_next_id(self, context: str, next_id: int) -> None:
        self._execute(
            "INSERT OR REPLACE INTO contexts (name, next_id, checksum) VALUES (?, ?, ?)",
            (context, next_id, checksum((context, next_id))),
        )

    def spend_ids(self, context: str, next_id: int) -> None:
        self._put_next_id(context, max(next_id, self._next_id(context)))

    def put_version(self, version: StoredVersion) -> None:
        subject = version.subject
        subject_key = self._subject_key(subject)
        schema_key = self._schema_key(version)
        replaced = self._execute(
            "SELECT schema FROM versions WHERE subject = ? AND version = ?", (subject_key, version.version)
        ).fetchone()
        self._execute(
            "INSERT OR REPLACE INTO versions (subject, version, schema, deleted, has_refs, created_ms, checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                subject_key,
                version.version,
                schema_key,
                int(version.deleted),
                int(bool(version.content.references)),
                version.created_ms,
                checksum(
                    (
                        subject.context,
                        subject.name,
                        version.version,
                        version.id,
                        int(version.deleted),
                        int(bool(version.content.references)),
                        version.created_ms,
                    )
                ),
            ),
        )
        if replaced is not None and replaced[0] != schema_key:
            self._drop_unused(replaced[0])
        self._log("version-registered", subject.qualified, version.version, version.id)
        self._touched_subjects.add(subject.name)
        self._touched_ids.add(version.id)

    def _subject_key(self, subject: Subject) -> int:
        row = self._execute(
            "SELECT key FROM subjects WHERE context = ? AND name = ?", (subject.context, subject.name)
        ).fetchone()
        if row is not None:
            return int(row[0])
        self._execute(
            "INSERT INTO contexts (name, next_id, checksum) VALUES (?, 1, ?) ON CONFLICT DO NOTHING",
            (subject.context, checksum((subject.context, 1))),
        )
        named = (subject.context, subject.name)
        cursor = self._execute(
            "INSERT INTO subjects (context, name, checksum) VALUES (?, ?, ?)", (*named, checksum(named))
        )
        return cursor.lastrowid or 0

    def _schema_key(self, version: StoredVersion) -> int:
        context, content = version.subject.context, version.content
        row = self._execute("SELECT key FROM schemas WHERE context = ? AND id = ?", (context, version.id)).fetchone()
        if row is not None:
            return int(row[0])
        values = (
            context,
            version.id,
            content.type.value,
            version.fingerprint,
            body_hash(content.text),
            content.text,
            _json(references_json(content.references)) if content.references else None,
            None if content.metadata is None else _json(metadata_json(content.metadata)),
            None if content.rule_set is None else _json(rule_set_json(content.rule_set)),
        )
        cursor = self._execute(
            "INSERT INTO schemas (context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set, checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, checksum(values)),
        )
        key = cursor.lastrowid or 0
        put_edges(self._execute, key, context, version.id, content.references)
        self._execute("DELETE FROM retired WHERE context = ? AND id = ?", (context, version.id))
        self.spend_ids(context, version.id + 1)
        return key

    def _drop_unused(self, schema_key: int) -> None:
        if self._execute("SELECT 1 FROM versions WHERE schema = ? LIMIT 1", (schema_key,)).fetchone():
            return
        self._execute(
            "INSERT OR REPLACE INTO retired (context, fingerprint, type, id, checksum) "
            "SELECT context, fingerprint, type, id, row_checksum(context, fingerprint, type, id) "
            "FROM schemas WHERE key = ?",
            (schema_key,),
        )
        self._execute("DELETE FROM schemas WHERE key = ?", (schema_key,))

    def _row_of(self, subject: Subject, version: int) -> tuple[int, int, int] | None:
        """The keys of the subject and the schema, and the id of a version."""
        row: tuple[int, int, int] | None = self._execute(
            "SELECT v.subject, v.schema, s.id FROM versions v JOIN schemas s ON s.key = v.schema "
            "WHERE v.subject = (SELECT key FROM subjects WHERE context = ? AND name = ?) AND v.version = ?",
            (subject.context, subject.name, version),
        ).fetchone()
        return row

    def mark_deleted(self, subject: Subject, version: int) -> None:
        row = self._row_of(subject, version)
        if row is None:
            return
        subject_key, _, id = row
        self._execute(
            "UPDATE versions SET deleted = 1, checksum = row_checksum(?, ?, version, ?, 1, has_refs, created_ms) "
            "WHERE subject = ? AND version = ?",
            (subject.context, subject.name, id, subject_key, version),
        )
        self._log("version-deleted", subject.qualified, version, id)
        self._touched_subjects.add(subject.name)
        self._touched_ids.add(id)

    def remove_version(self, subject: Subject, version: int) -> None:
        row = self._row_of(subject, version)
        if row is None:
            return
        subject_key, schema_key, id = row
        self._execute("DELETE FROM versions WHERE subject = ? AND version = ?", (subject_key, version))
        self._drop_unused(schema_key)
        if not self._execute("SELECT 1 FROM versions WHERE subject = ? LIMIT 1", (subject_key,)).fetchone():
            self._execute("DELETE FROM subjects WHERE key = ?", (subject_key,))
        self._log("version-removed", subject.qualified, version, id)
        self._touched_subjects.add(subject.name)
        self._touched_ids.add(id)

    def remove_context(self, context: str) -> None:
        if context != DEFAULT_CONTEXT:
            self._execute("DELETE FROM contexts WHERE name = ?", (context,))
        self._execute("DELETE FROM configs WHERE context = ?", (context,))
        self._execute("DELETE FROM modes WHERE context = ?", (context,))
        self._execute("DELETE FROM retired WHERE context = ?", (context,))
        self._log("context-removed", f":{context}:")
        self._touched_settings = True

    def put_config(self, scope: Subject, config: Config) -> None:
        values = (scope.context, scope.name, _json(config_json(config)))
        self._execute(
            "INSERT OR REPLACE INTO configs (context, name, body, checksum) VALUES (?, ?, ?, ?)",
            (*values, checksum(values)),
        )
        self._settings_changed("config-changed", scope)

    def remove_config(self, scope: Subject) -> None:
        self._execute("DELETE FROM configs WHERE context = ? AND name = ?", (scope.context, scope.name))
        self._settings_changed("config-removed", scope)

    def put_mode(self, scope: Subject, mode: Mode) -> None:
        values = (scope.context, scope.name, mode.value)
        self._execute(
            "INSERT OR REPLACE INTO modes (context, name, mode, checksum) VALUES (?, ?, ?, ?)",
            (*values, checksum(values)),
        )
        self._settings_changed("mode-changed", scope)

    def remove_mode(self, scope: Subject) -> None:
        self._execute("DELETE FROM modes WHERE context = ? AND name = ?", (scope.context, scope.name))
        self._settings_changed("mode-removed", scope)

    def remove_modes_of_context(self, context: str) -> None:
        self._execute("DELETE FROM modes WHERE context = ?", (context,))
        self._settings_changed("mode-removed", Subject(context, ""))

    def _settings_changed(self, kind: str, scope: Subject) -> None:
        self._log(kind, scope.qualified)
        self._touched_settings = True


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
