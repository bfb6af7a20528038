"""The tables of the SQLite store and their migrations.

Each migration is a script that increases `PRAGMA user_version` by one. Never change a released migration: add a new
one.
"""

import re
import sqlite3
import sys
from typing import TYPE_CHECKING, Final

from headgate.registry.errors import StoreFailed

if TYPE_CHECKING:
    from sqlite_utils import Database

MIGRATIONS: Final = (
    """
    CREATE TABLE contexts (
        name TEXT PRIMARY KEY,
        next_id INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID;
    INSERT INTO contexts (name) VALUES ('.');

    CREATE TABLE schemas (
        key INTEGER PRIMARY KEY,
        context TEXT NOT NULL,
        id INTEGER NOT NULL,
        type TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        body_hash BLOB NOT NULL,
        body TEXT NOT NULL,
        refs TEXT,
        metadata TEXT,
        rule_set TEXT,
        UNIQUE (context, id)
    );
    CREATE INDEX schemas_by_fingerprint ON schemas (fingerprint, context);
    CREATE INDEX schemas_by_body ON schemas (body_hash, context);

    CREATE TABLE subjects (
        key INTEGER PRIMARY KEY,
        context TEXT NOT NULL,
        name TEXT NOT NULL,
        UNIQUE (context, name)
    );

    CREATE TABLE versions (
        subject INTEGER NOT NULL REFERENCES subjects (key),
        version INTEGER NOT NULL,
        schema INTEGER NOT NULL REFERENCES schemas (key),
        deleted INTEGER NOT NULL DEFAULT 0,
        has_refs INTEGER NOT NULL DEFAULT 0,
        created_ms INTEGER NOT NULL,
        PRIMARY KEY (subject, version)
    ) WITHOUT ROWID;
    CREATE INDEX versions_by_schema ON versions (schema);
    CREATE INDEX versions_with_refs ON versions (subject, version) WHERE has_refs = 1;

    CREATE TABLE edges (
        schema INTEGER NOT NULL REFERENCES schemas (key) ON DELETE CASCADE,
        context TEXT NOT NULL,
        name TEXT NOT NULL,
        version INTEGER NOT NULL
    );
    CREATE INDEX edges_by_target ON edges (context, name, version);
    CREATE INDEX edges_by_schema ON edges (schema);

    CREATE TABLE retired (
        context TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        type TEXT NOT NULL,
        id INTEGER NOT NULL,
        PRIMARY KEY (context, fingerprint, type)
    ) WITHOUT ROWID;
    CREATE INDEX retired_by_id ON retired (context, id);

    CREATE TABLE configs (
        context TEXT NOT NULL,
        name TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (context, name)
    ) WITHOUT ROWID;

    CREATE TABLE modes (
        context TEXT NOT NULL,
        name TEXT NOT NULL,
        mode TEXT NOT NULL,
        PRIMARY KEY (context, name)
    ) WITHOUT ROWID;

    CREATE TABLE changes (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        version INTEGER,
        id INTEGER
    );
    """,
    """
    CREATE TABLE keks (
        name TEXT PRIMARY KEY,
        kms_type TEXT NOT NULL,
        kms_key_id TEXT NOT NULL,
        kms_props TEXT NOT NULL,
        doc TEXT,
        shared INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        checksum BLOB NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE deks (
        kek TEXT NOT NULL,
        subject TEXT NOT NULL,
        algorithm TEXT NOT NULL,
        version INTEGER NOT NULL,
        encrypted_key_material TEXT NOT NULL,
        deleted INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (kek, subject, algorithm, version)
    ) WITHOUT ROWID;

    CREATE TABLE associations (
        resource_id TEXT NOT NULL,
        resource_type TEXT NOT NULL,
        type TEXT NOT NULL,
        guid TEXT NOT NULL,
        resource_name TEXT NOT NULL,
        resource_namespace TEXT NOT NULL,
        context TEXT NOT NULL,
        subject TEXT NOT NULL,
        lifecycle TEXT NOT NULL,
        frozen INTEGER NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (resource_id, resource_type, type)
    ) WITHOUT ROWID;
    CREATE INDEX associations_by_subject ON associations (context, subject);
    CREATE INDEX associations_by_resource_name ON associations (resource_name, resource_namespace);
    """,
    # The checksum of a version covers the subject's names and the schema id, so that it also protects both foreign
    # keys.
    """
    ALTER TABLE contexts ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE schemas ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE subjects ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE versions ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE retired ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE configs ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE modes ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    UPDATE contexts SET checksum = row_checksum(name, next_id);
    UPDATE schemas SET checksum =
        row_checksum(context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set);
    UPDATE subjects SET checksum = row_checksum(context, name);
    UPDATE versions SET checksum = coalesce((
        SELECT row_checksum(
            u.context, u.name, versions.version, s.id, versions.deleted, versions.has_refs, versions.created_ms)
        FROM subjects u, schemas s WHERE u.key = versions.subject AND s.key = versions.schema), x'');
    UPDATE retired SET checksum = row_checksum(context, fingerprint, type, id);
    UPDATE configs SET checksum = row_checksum(context, name, body);
    UPDATE modes SET checksum = row_checksum(context, name, mode);
    """,
    # The checksum of an edge covers the schema id, so that it also protects the foreign key.
    """
    ALTER TABLE edges ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    ALTER TABLE changes ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
    UPDATE edges SET checksum = coalesce((
        SELECT row_checksum(s.context, s.id, edges.context, edges.name, edges.version)
        FROM schemas s WHERE s.key = edges.schema), x'');
    UPDATE changes SET checksum = row_checksum(sequence, at_ms, kind, subject, version, id);
    """,
)


TABLES = frozenset(re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate the file to the current version. Each step is atomic."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreFailed(
            f"The registry's file has version {version}, this program knows {len(MIGRATIONS)}: "
            "it was written by a newer release"
        )
    if version == len(MIGRATIONS):
        return
    database = _database(connection)
    for step in range(version, len(MIGRATIONS)):
        database.executescript(f"BEGIN IMMEDIATE;{MIGRATIONS[step]};PRAGMA user_version = {step + 1};COMMIT;")
    missing = TABLES - set(database.table_names())
    if missing:
        raise StoreFailed(f"The registry's file lacks the tables {', '.join(sorted(missing))} after its migrations")


def _database(connection: sqlite3.Connection) -> "Database":
    """sqlite-utils with an open connection.

    It imports pandas if installed, which takes seconds and is not needed. Therefore pandas is hidden during the import.
    """
    hide = "pandas" not in sys.modules
    if hide:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # hides the module from the import system
    try:
        from sqlite_utils import Database
    finally:
        if hide:
            del sys.modules["pandas"]
    return Database(connection)
