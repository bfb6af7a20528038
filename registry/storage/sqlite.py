"""The registry's store on one SQLite file: write-ahead log, one writer, many readers, acknowledged means on disk.

`synchronous=FULL` makes every commit of the log reach the disk; operations that arrive together share one commit. Each
reading thread has a connection of its own, and sees what was committed when its transaction began.

sqlite-utils makes and changes the tables (`sqlite_schema`); the statements of every request go straight to sqlite3.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson

from registry import limits
from registry.errors import OperationNotPermitted, RegistryError, StoreFailed
from registry.model import Config, Mode
from registry.storage.base import BatchOutcome, Operation, StoredVersion, StoreReader, Touched
from registry.storage.sqlite_reader import SqliteReader, body_hash
from registry.storage.sqlite_schema import migrate
from registry.subjects import DEFAULT_CONTEXT, Subject
from registry.wire import config_json, metadata_json, references_json, rule_set_json

_BUSY_SECONDS: Final = 10.0
_WRITER_CACHE_KIB: Final = 32 * 1024
"""Pages kept by the writer: the index of fingerprints is read at random places."""
_READER_CACHE_KIB: Final = 8 * 1024
_PRUNE_EVERY: Final = 1000


class SqliteStore:
    """`registry.storage.base.RegistryStore` on the file at `path`. `now_ms` stamps the log of changes."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._now_ms = now_ms
        self._lock_file = _locked(path)
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_guard = threading.Lock()
        self._writing = threading.Lock()
        try:
            self._writer = self._open(_WRITER_CACHE_KIB)
            try:
                migrate(self._writer)
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.Error as error:
            self._lock_file.close()
            raise StoreFailed(f"The registry's file {path.name} cannot be opened: {error}") from error
        except StoreFailed:
            self._lock_file.close()
            raise

    def _open(self, cache_kib: int = _READER_CACHE_KIB) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open()
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
            with self._readers_guard:
                self._readers.append(connection)
        return connection

    @contextmanager
    def reading(self) -> Iterator[StoreReader]:
        try:
            connection = self._reader()
            if connection.in_transaction:
                yield SqliteReader(connection)
                return
            connection.execute("BEGIN")
            try:
                yield SqliteReader(connection)
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreFailed(f"The store could not be read: {error}") from error

    @contextmanager
    def snapshot(self) -> Iterator[StoreReader]:
        try:
            connection = self._open()
            try:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("BEGIN")
                yield SqliteReader(connection)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise StoreFailed(f"The store could not be read: {error}") from error

    def stage(self, operations: Sequence[Operation]) -> "SqliteStaged":
        self._writing.acquire()
        try:
            writer = SqliteWriter(self._writer, self._now_ms)
            results: list[Any | RegistryError] = []
            self._writer.execute("BEGIN IMMEDIATE")
            for operation in operations:
                self._writer.execute("SAVEPOINT operation")
                try:
                    result = operation(writer)
                except RegistryError as error:
                    self._writer.execute("ROLLBACK TO operation")
                    result = error
                self._writer.execute("RELEASE operation")
                results.append(result)
        except sqlite3.Error as error:
            self._rollback()
            self._writing.release()
            raise StoreFailed(f"The store did not take the change: {error}") from error
        except BaseException:
            self._rollback()
            self._writing.release()
            raise
        return SqliteStaged(self._commit, BatchOutcome(tuple(results), writer.touched()))

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise StoreFailed(f"The store did not take the change: {error}") from error
        finally:
            self._writing.release()

    def apply(self, operations: Sequence[Operation]) -> BatchOutcome:
        return self.stage(operations).commit()

    def _rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def check(self) -> None:
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.execute("PRAGMA schema_version").fetchone()
                self._writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                self._rollback()
                raise StoreFailed(f"The store is not available: {error}") from error

    def close(self) -> None:
        with self._writing:
            with self._readers_guard:
                for connection in self._readers:
                    connection.close()
                self._readers.clear()
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._writer.close()
            self._lock_file.close()


class SqliteStaged:
    """`registry.storage.base.Staged`: an open transaction."""

    def __init__(self, commit: Callable[[], None], outcome: BatchOutcome) -> None:
        self._commit = commit
        self._outcome = outcome

    def commit(self) -> BatchOutcome:
        self._commit()
        return self._outcome


class SqliteWriter(SqliteReader):
    """`registry.storage.base.StoreWriter` inside the store's one open transaction."""

    def __init__(self, connection: sqlite3.Connection, now_ms: Callable[[], int]) -> None:
        super().__init__(connection)
        self._now_ms = now_ms
        self._touched_subjects: set[str] = set()
        self._touched_ids: set[int] = set()
        self._touched_settings = False

    def touched(self) -> Touched:
        return Touched(frozenset(self._touched_subjects), frozenset(self._touched_ids), self._touched_settings)

    def _log(self, kind: str, subject: str, version: int | None = None, id: int | None = None) -> None:
        cursor = self._execute(
            "INSERT INTO changes (at_ms, kind, subject, version, id) VALUES (?, ?, ?, ?, ?)",
            (self._now_ms(), kind, subject, version, id),
        )
        sequence = cursor.lastrowid or 0
        if sequence % _PRUNE_EVERY == 0:
            self._execute("DELETE FROM changes WHERE sequence <= ?", (sequence - limits.changes_kept_max,))

    def allocate_id(self, context: str) -> int:
        self._execute("INSERT INTO contexts (name) VALUES (?) ON CONFLICT DO NOTHING", (context,))
        row = self._execute("SELECT next_id FROM contexts WHERE name = ?", (context,)).fetchone()
        id = int(row[0])
        if id > limits.id_max:
            raise OperationNotPermitted(f"The context {context} has given out every id up to {limits.id_max}")
        self._execute("UPDATE contexts SET next_id = ? WHERE name = ?", (id + 1, context))
        return id

    def spend_ids(self, context: str, next_id: int) -> None:
        self._execute(
            "INSERT INTO contexts (name, next_id) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET next_id = max(next_id, excluded.next_id)",
            (context, next_id),
        )

    def put_version(self, version: StoredVersion) -> None:
        subject = version.subject
        subject_key = self._subject_key(subject)
        schema_key = self._schema_key(version)
        replaced = self._execute(
            "SELECT schema FROM versions WHERE subject = ? AND version = ?", (subject_key, version.version)
        ).fetchone()
        self._execute(
            "INSERT INTO versions (subject, version, schema, deleted, has_refs, created_ms) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (subject, version) DO UPDATE SET schema = excluded.schema, deleted = excluded.deleted, "
            "has_refs = excluded.has_refs, created_ms = excluded.created_ms",
            (
                subject_key,
                version.version,
                schema_key,
                version.deleted,
                bool(version.content.references),
                version.created_ms,
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
        self._execute("INSERT INTO contexts (name) VALUES (?) ON CONFLICT DO NOTHING", (subject.context,))
        cursor = self._execute("INSERT INTO subjects (context, name) VALUES (?, ?)", (subject.context, subject.name))
        return cursor.lastrowid or 0

    def _schema_key(self, version: StoredVersion) -> int:
        context, content = version.subject.context, version.content
        row = self._execute("SELECT key FROM schemas WHERE context = ? AND id = ?", (context, version.id)).fetchone()
        if row is not None:
            return int(row[0])
        cursor = self._execute(
            "INSERT INTO schemas (context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                context,
                version.id,
                content.type.value,
                version.fingerprint,
                body_hash(content.text),
                content.text,
                _json(references_json(content.references)) if content.references else None,
                None if content.metadata is None else _json(metadata_json(content.metadata)),
                None if content.rule_set is None else _json(rule_set_json(content.rule_set)),
            ),
        )
        key = cursor.lastrowid or 0
        for reference in content.references:
            target = version.subject.sibling(reference.subject)
            self._execute(
                "INSERT INTO edges (schema, context, name, version) VALUES (?, ?, ?, ?)",
                (key, target.context, target.name, reference.version),
            )
        self._execute("DELETE FROM retired WHERE context = ? AND id = ?", (context, version.id))
        self._execute(
            "UPDATE contexts SET next_id = max(next_id, ?) WHERE name = ?",
            (version.id + 1, context),
        )
        return key

    def _drop_unused(self, schema_key: int) -> None:
        if self._execute("SELECT 1 FROM versions WHERE schema = ? LIMIT 1", (schema_key,)).fetchone():
            return
        self._execute(
            "INSERT OR REPLACE INTO retired (context, fingerprint, type, id) "
            "SELECT context, fingerprint, type, id FROM schemas WHERE key = ?",
            (schema_key,),
        )
        self._execute("DELETE FROM schemas WHERE key = ?", (schema_key,))

    def _row_of(self, subject: Subject, version: int) -> tuple[int, int, int] | None:
        """Keys of the subject and the schema, and the id, of a version."""
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
        self._execute("UPDATE versions SET deleted = 1 WHERE subject = ? AND version = ?", (subject_key, version))
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
        self._execute(
            "INSERT OR REPLACE INTO configs (context, name, body) VALUES (?, ?, ?)",
            (scope.context, scope.name, _json(config_json(config))),
        )
        self._settings_changed("config-changed", scope)

    def remove_config(self, scope: Subject) -> None:
        self._execute("DELETE FROM configs WHERE context = ? AND name = ?", (scope.context, scope.name))
        self._settings_changed("config-removed", scope)

    def put_mode(self, scope: Subject, mode: Mode) -> None:
        self._execute(
            "INSERT OR REPLACE INTO modes (context, name, mode) VALUES (?, ?, ?)",
            (scope.context, scope.name, mode.value),
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


def _locked(path: Path) -> Any:
    """Hold the file beside `path` that says a registry uses it: two writers would serve stale answers."""
    file = open(path.with_name(f"{path.name}.lock"), "a")  # noqa: SIM115 - closed with the store
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreFailed(f"The registry's file {path.name} is in use by another process") from None
    os.set_inheritable(file.fileno(), False)
    return file
