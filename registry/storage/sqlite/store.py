"""The registry store in one SQLite file: write-ahead log, one writer, many readers.

With `synchronous=FULL`, every commit is on disk before it is acknowledged. Operations that arrive together share one
commit. Each reading thread has its own connection and sees the data committed when its transaction started.

sqlite-utils creates and migrates the tables (`schema`). All other statements use sqlite3 directly.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from headgate.registry.errors import RegistryError, StoreFailed
from headgate.registry.storage.base import BatchOutcome, Operation, StoreReader
from headgate.registry.storage.sqlite.file import locked, prepare
from headgate.registry.storage.sqlite.reader import SqliteReader
from headgate.registry.storage.sqlite.rows import FAILURES, checksum, text_of
from headgate.registry.storage.sqlite.tables import migrate
from headgate.registry.storage.sqlite.verification import inspect
from headgate.registry.storage.sqlite.writer import SqliteWriter

_BUSY_SECONDS: Final = 10.0
_WRITER_CACHE_KIB: Final = 32 * 1024
"""The writer's page cache. The index of fingerprints is read at random positions."""
_READER_CACHE_KIB: Final = 8 * 1024


class SqliteStore:
    """A `registry.storage.base.RegistryStore` in the file at `path`.

    `now_ms` provides timestamps for the change log.
    """

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        prepare(path)
        self._path = path
        self._now_ms = now_ms
        self._lock_file = locked(path)
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_guard = threading.Lock()
        self._writing = threading.Lock()
        try:
            self._writer = self._open(_WRITER_CACHE_KIB)
            try:
                migrate(self._writer)
                inspect(self._writer, path)
            except BaseException:
                self._writer.close()
                raise
        except FAILURES as error:
            self._lock_file.close()
            raise StoreFailed(f"The registry's file {path.name} cannot be opened: {error}") from error
        except StoreFailed:
            self._lock_file.close()
            raise

    def _open(self, cache_kib: int = _READER_CACHE_KIB) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.text_factory = text_of
        connection.create_function("row_checksum", -1, lambda *values: checksum(values), deterministic=True)
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
        except FAILURES as error:
            raise StoreFailed(f"The store could not be read: {error}") from error

    @contextmanager
    def snapshot(self, *, skip_damaged: bool = False) -> Iterator[StoreReader]:
        try:
            connection = self._open()
            try:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("BEGIN")
                yield SqliteReader(connection, skip_damaged=skip_damaged)
            finally:
                connection.close()
        except FAILURES as error:
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
                except sqlite3.DatabaseError as error:
                    if type(error) is not sqlite3.DatabaseError:
                        raise  # the disk or the statement failed, so nothing of the batch is saved
                    # A damaged page fails only this operation.
                    self._writer.execute("ROLLBACK TO operation")
                    result = StoreFailed(f"The store could not write the change: {error}")
                self._writer.execute("RELEASE operation")
                results.append(result)
        except FAILURES as error:
            self._rollback()
            self._writing.release()
            raise StoreFailed(f"The store could not write the change: {error}") from error
        except BaseException:
            self._rollback()
            self._writing.release()
            raise
        return SqliteStaged(self._commit, BatchOutcome(tuple(results), writer.touched()))

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except FAILURES as error:
            self._rollback()
            raise StoreFailed(f"The store could not write the change: {error}") from error
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
            except FAILURES as error:
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
    """An open transaction (`registry.storage.base.Staged`)."""

    def __init__(self, commit: Callable[[], None], outcome: BatchOutcome) -> None:
        self._commit = commit
        self._outcome = outcome

    def commit(self) -> BatchOutcome:
        self._commit()
        return self._outcome
