"""References between schemas (the table `edges`), derived from the references in the rows of `schemas`.

An edge whose target is damaged would not be found, and a schema that others need could be deleted. When the file is
opened, the edges of every verified schema are therefore compared with its references and written again if they differ.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from headgate.registry.errors import DamagedRow
from headgate.registry.model import Reference
from headgate.registry.storage.sqlite_rows import FAILURES, Execute, checksum, verified
from headgate.registry.subjects import Subject
from headgate.registry.wire import WireReference, references_of

_log: Final = logging.getLogger(__name__)
_references: Final = msgspec.json.Decoder(list[WireReference])

EDGES: Final = (
    "SELECT s.context, s.id, e.context, e.name, e.version, e.checksum "
    "FROM edges e LEFT JOIN schemas s ON s.key = e.schema"
)
"""The checksum covers the id of the schema, so that it also protects the key that leads to it."""


def put_edges(execute: Execute, key: int, context: str, id: int, references: Iterable[Reference]) -> None:
    """Write the edges of a schema, which has none yet."""
    for name_context, name, version, row_checksum in _rows(context, id, references):
        execute(
            "INSERT INTO edges (schema, context, name, version, checksum) VALUES (?, ?, ?, ?, ?)",
            (key, name_context, name, version, row_checksum),
        )


def repair(connection: sqlite3.Connection) -> None:
    """Write the edges of verified schemas again if they do not match. Logs problems and raises nothing."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Edges of no schema. The schema that they belonged to gets them back below.
            connection.execute("DELETE FROM edges WHERE schema NOT IN (SELECT key FROM schemas)")
            repaired = sum(_repaired(connection, schema) for schema in connection.execute(_SCHEMAS).fetchall())
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    except FAILURES as error:
        _log.error("The table 'edges' of the registry's file cannot be checked: %s", error)
        return
    if repaired:
        _log.warning("The references of %d schemas were damaged in the table 'edges' and are restored", repaired)


_SCHEMAS: Final = (
    "SELECT key, context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set, checksum FROM schemas"
)


def _repaired(connection: sqlite3.Connection, schema: tuple[object, ...]) -> bool:
    key, *row = schema
    assert isinstance(key, int)
    try:
        context, id, _, _, _, _, refs, *_ = verified("schemas", row)
    except DamagedRow:
        return False  # its references are unknown, so its edges stay
    references = references_of(_references.decode(refs)) if refs else ()
    stored = connection.execute("SELECT context, name, version, checksum FROM edges WHERE schema = ?", (key,))
    if sorted(stored.fetchall()) == sorted(_rows(context, id, references)):
        return False
    connection.execute("DELETE FROM edges WHERE schema = ?", (key,))
    put_edges(connection.execute, key, context, id, references)
    return True


def _rows(context: str, id: int, references: Iterable[Reference]) -> Iterator[tuple[str, str, int, bytes]]:
    for reference in references:
        target = Subject(context, "").sibling(reference.subject)
        values = (target.context, target.name, reference.version)
        yield *values, checksum((context, id, *values))
