"""References between schemas (table `edges`), derived from the references in the table `schemas`.

A lookup would not find an edge with a damaged target, and a referenced schema could be deleted. Therefore the edges of
all verified schemas are compared with their references when the file is opened, and rewritten if they differ.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from headgate.registry.errors import DamagedRow
from headgate.registry.model import Reference
from headgate.registry.storage.sqlite.rows import FAILURES, Execute, checksum, verified
from headgate.registry.subjects import Subject
from headgate.registry.wire import WireReference, references_of

_LOG: Final = logging.getLogger(__name__)
_REFERENCES_DECODER: Final = msgspec.json.Decoder(list[WireReference])

EDGES: Final = (
    "SELECT s.context, s.id, e.context, e.name, e.version, e.checksum "
    "FROM edges e LEFT JOIN schemas s ON s.key = e.schema"
)
"""The checksum covers the schema id, so that it also protects the foreign key."""


def put_edges(execute: Execute, key: int, context: str, id: int, references: Iterable[Reference]) -> None:
    """Write the edges of a schema that has none."""
    for name_context, name, version, row_checksum in _rows(context, id, references):
        execute(
            "INSERT INTO edges (schema, context, name, version, checksum) VALUES (?, ?, ?, ?, ?)",
            (key, name_context, name, version, row_checksum),
        )


def repair(connection: sqlite3.Connection) -> None:
    """Rewrite the edges of verified schemas if they differ. Logs problems and raises nothing."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Edges without a schema. Their schema gets them back below.
            connection.execute("DELETE FROM edges WHERE schema NOT IN (SELECT key FROM schemas)")
            repaired = sum(_repaired(connection, schema) for schema in connection.execute(_SCHEMAS).fetchall())
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    except FAILURES as error:
        _LOG.error("The table 'edges' of the registry's file cannot be checked: %s", error)
        return
    if repaired:
        _LOG.warning("The references of %d schemas were damaged in the table 'edges' and are restored", repaired)


_SCHEMAS: Final = (
    "SELECT key, context, id, type, fingerprint, body_hash, body, refs, metadata, rule_set, checksum FROM schemas"
)


def _repaired(connection: sqlite3.Connection, schema: tuple[object, ...]) -> bool:
    key, *row = schema
    assert isinstance(key, int)
    try:
        context, id, _, _, _, _, refs, *_ = verified("schemas", row)
    except DamagedRow:
        return False  # the references are unknown, so keep the edges
    references = references_of(_REFERENCES_DECODER.decode(refs)) if refs else ()
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
