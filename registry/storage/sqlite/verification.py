"""Checks the file for damage at start.

Small files are checked completely: pages and indexes by SQLite, rows by checksums. Indexes and `edges` are derived
data, so damaged ones are rebuilt. Damaged rows are logged, and reading one fails later (`rows.verified`). The registry
starts anyway, because it can still serve all other rows.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Final

from headgate.registry.errors import DamagedRow
from headgate.registry.storage.sqlite.associations import ASSOCIATIONS
from headgate.registry.storage.sqlite.edges import EDGES, repair
from headgate.registry.storage.sqlite.keys import DEKS, KEKS
from headgate.registry.storage.sqlite.reader import CHANGES
from headgate.registry.storage.sqlite.rows import FAILURES, verified

_LOG: Final = logging.getLogger(__name__)

_CHECKED_BYTES_MAX: Final = 32 * 1024 * 1024
"""A larger file would delay the start by more than a second. Its rows are verified on each read."""
_REPORTED_MAX: Final = 20
"""Logged problems per table."""

_ROWS: Final = {
    "contexts": "SELECT name, next_id, checksum FROM contexts",
    "subjects": "SELECT context, name, checksum FROM subjects",
    "schemas": "SELECT context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set, checksum "
    "FROM schemas",
    "versions": "SELECT u.context, u.name, v.version, s.id, v.deleted, v.has_refs, v.created_ms, v.checksum "
    "FROM versions v LEFT JOIN subjects u ON u.key = v.subject LEFT JOIN schemas s ON s.key = v.schema",
    "retired": "SELECT context, fingerprint, type, id, checksum FROM retired",
    "configs": "SELECT context, name, body, checksum FROM configs",
    "modes": "SELECT context, name, mode, checksum FROM modes",
    "keks": KEKS.select,
    "deks": DEKS.select,
    "associations": ASSOCIATIONS.select,
    "edges": EDGES,
    "changes": CHANGES,
}


def inspect(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > _CHECKED_BYTES_MAX:
        return
    try:
        problems = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_REPORTED_MAX})")]
    except FAILURES as error:
        problems = [str(error)]
    if problems != ["ok"]:
        for problem in problems:
            _LOG.error("The registry's file %s is damaged: %s", path.name, problem)
        try:
            connection.execute("REINDEX")
            _LOG.warning("The indexes of the registry's file %s were rebuilt", path.name)
        except FAILURES as error:
            _LOG.error("The indexes of the registry's file %s cannot be rebuilt: %s", path.name, error)
    for table in _ROWS:
        _inspect_rows(connection, table)
    repair(connection)


def _inspect_rows(connection: sqlite3.Connection, table: str) -> None:
    damaged = 0
    try:
        for row in connection.execute(_ROWS[table]):
            try:
                verified(table, row)
            except DamagedRow as error:
                damaged += 1
                if damaged <= _REPORTED_MAX:
                    _LOG.error("%s", error)
    except FAILURES as error:
        _LOG.error("The table '%s' of the registry's file cannot be read to its end: %s", table, error)
    if damaged > _REPORTED_MAX:
        _LOG.error("%d more rows of the table '%s' are damaged", damaged - _REPORTED_MAX, table)
