"""Rows with a checksum of all values, which is verified on each read."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import orjson

from headgate.registry.errors import DamagedRow

Execute: TypeAlias = Callable[[str, Sequence[Any]], sqlite3.Cursor]
_CHECKSUM_BYTES: Final = 16

FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)
"""The errors of sqlite3 for a damaged file. The second occurs if SQLite's message quotes damaged bytes."""


def text_of(stored: bytes) -> str:
    """Decode a text column. Damaged bytes are replaced, so that the checksum reports only this row."""
    return stored.decode("utf-8", "replace")


class Table:
    """A table whose last column is `checksum`, over all other columns in order."""

    def __init__(self, name: str, columns: str) -> None:
        self._name = name
        places = ", ".join("?" * (columns.count(",") + 2))
        self.select = f"SELECT {columns}, checksum FROM {name}"
        self._insert = f"INSERT OR REPLACE INTO {name} ({columns}, checksum) VALUES ({places})"

    def put(self, execute: Execute, values: tuple[Any, ...]) -> None:
        execute(self._insert, (*values, checksum(values)))

    def rows(
        self, execute: Execute, where: str, parameters: Sequence[Any] = (), order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """The values without the checksum. Raises DamagedRow if it does not match."""
        ordered = f" ORDER BY {order}" if order else ""
        for row in execute(f"{self.select} WHERE {where}{ordered}", parameters):
            yield verified(self._name, row)

    def count(self, execute: Execute) -> int:
        return int(execute(f"SELECT count(*) FROM {self._name}", ()).fetchone()[0])


def verified(table: str, row: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a row whose last column is the checksum. Raises DamagedRow if it does not match."""
    *values, stored = row
    if stored != checksum(tuple(values)):
        raise DamagedRow(table, values)
    return tuple(values)


def checksum(values: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(orjson.dumps(values, default=repr), digest_size=_CHECKSUM_BYTES).digest()
