"""Reads the dead-letter tables of pipelines: Parquet folders and SQLite tables.

The position of a letter is the number of its row in SQLite. In Parquet, it is a hash of the file name, and the row of
the file. Columns: `spark_udfs.dead_letter`.
"""

import hashlib
import json
import sqlite3
from abc import ABC, abstractmethod
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from headgate.proxy.dead_letters.letter import LetterCounts, LetterState, StoredLetter
from headgate.proxy.dead_letters.table_claims import TableClaims
from headgate.serdes import Poison, Reason, Record, read_dead_letter, to_dead_letter

DEFAULT_TABLE: Final = "dead_letters"
ROWS_MAX: Final = 1000
"""Rows that are read together."""
_CLAIMS_FILE: Final = "_headgate_redrive.db"
"""Next to the Parquet files. Readers ignore names that start with an underscore."""
_REQUIRED: Final = ("topic", "raw", "reason")


class TableUnreadable(ValueError):
    """The location is not a dead-letter table that can be read without Spark."""


def is_table(location: str) -> bool:
    """A location with a scheme or a folder. Topic names contain neither `:` nor `/`."""
    return ":" in location or "/" in location or location.endswith(".parquet")


def open_table(location: str, by: str) -> "DeadLetterTable":
    """`sqlite:FILE`, `sqlite:FILE#TABLE`, `parquet:PATH` or a path. Raises TableUnreadable."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme == "sqlite":
        file, _, table = rest.partition("#")
        return SqliteTable(location, Path(file), table or DEFAULT_TABLE, by)
    if colon and scheme != "parquet":
        raise TableUnreadable(f"{scheme}: tables need Spark or a client of the database; use sqlite: or parquet:")
    return ParquetTable(location, Path(rest if colon else location), by)


class DeadLetterTable(ABC):
    """The interface of `DeadLetterTopic`, without `purge`."""

    def __init__(self, location: str, claims: TableClaims) -> None:
        self.location = location
        self.claims = claims

    async def read(
        self, accepts: Callable[[StoredLetter], bool], start: tuple[int, int] = (0, 0)
    ) -> AsyncIterator[StoredLetter]:
        """Raises TableUnreadable."""
        states = self.claims.states()
        for place, row in self._rows():
            stored = self._stored(place, row, states.get(place, LetterState.WAITING))
            if place >= start and accepts(stored):
                yield stored

    async def find(self, partition: int, offset: int) -> StoredLetter | None:
        """Raises TableUnreadable."""
        async for stored in self.read(lambda stored: stored.place == (partition, offset)):
            return stored
        return None

    async def counts(self) -> LetterCounts:
        """Raises TableUnreadable."""
        counts: Counter[tuple[str, int | None, str]] = Counter()
        async for stored in self.read(lambda _: True):
            counts[stored.reason, stored.letter.schema_id, str(stored.state)] += 1
        return LetterCounts(counts, True)

    @abstractmethod
    def _rows(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        """The rows with their places. Raises TableUnreadable."""

    def _stored(self, place: tuple[int, int], row: dict[str, Any], state: LetterState) -> StoredLetter:
        origin = Record(
            row["topic"] or "",
            row.get("key"),
            row["raw"],
            _headers(row.get("headers")),
            row.get("partition"),
            row.get("offset"),
            _milliseconds(row.get("timestamp")),
        )
        reason = Reason.__members__.get(row["reason"] or "", Reason.CORRUPT)
        poison = Poison(reason, row.get("detail") or "", origin.value, row.get("schema_id"))
        failed_at = _milliseconds(row.get("failed_at")) or 0
        letter = to_dead_letter(
            origin,
            poison,
            dead_letter_topic=self.location,
            application=row.get("pipeline") or "",
            now_ms=failed_at,
        )
        record = Record(self.location, letter.key, letter.value, letter.headers, *place, letter.timestamp_ms)
        return StoredLetter(record, read_dead_letter(record), state)


class SqliteTable(DeadLetterTable):
    def __init__(self, location: str, file: Path, table: str, by: str) -> None:
        super().__init__(location, TableClaims(file, table, by))
        self._file = file
        self._table = table

    def _rows(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        name = self._table.replace('"', '""')
        try:
            with closing(sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                cursor = connection.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid')
                names = [column[0] for column in cursor.description[1:]]
                _check_columns(self.location, names)
                while rows := cursor.fetchmany(ROWS_MAX):
                    for number, *values in rows:
                        yield (0, number), dict(zip(names, values, strict=True))
        except sqlite3.Error as error:
            raise TableUnreadable(f"cannot read {self.location}: {error}") from error


class ParquetTable(DeadLetterTable):
    def __init__(self, location: str, path: Path, by: str) -> None:
        folder = path if path.is_dir() else path.parent
        super().__init__(location, TableClaims(folder / _CLAIMS_FILE, "parquet", by))
        self._path = path
        self._folder = folder

    def _rows(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        if (self._folder / "_delta_log").is_dir():
            raise TableUnreadable(f"{self.location} is a Delta table; read it with Spark")
        if find_spec("pyarrow") is None:
            raise TableUnreadable("Parquet needs the package pyarrow: pip install 'headgate[arrow]'")
        from pyarrow import lib, parquet

        for number, file in self._files():
            try:
                content = parquet.ParquetFile(file)  # type: ignore[no-untyped-call]
                _check_columns(self.location, content.schema_arrow.names)
                batches = content.iter_batches(batch_size=ROWS_MAX)  # type: ignore[no-untyped-call]
                for at, row in enumerate(row for batch in batches for row in batch.to_pylist()):
                    yield (number, at), row
            except (OSError, lib.ArrowException) as error:
                raise TableUnreadable(f"cannot read {file}: {str(error)[:300]}") from error

    def _files(self) -> list[tuple[int, Path]]:
        """The files by number, which does not change when other files are added. Raises TableUnreadable."""
        if not self._path.exists():
            raise TableUnreadable(f"there is no {self._path}")
        found = [self._path] if self._path.is_file() else sorted(self._path.rglob("*.parquet"))
        files: dict[int, Path] = {}
        for file in found:
            parts = file.relative_to(self._folder).parts
            if not any(part.startswith(("_", ".")) for part in parts):
                digest = hashlib.sha256("/".join(parts).encode()).digest()
                number = int.from_bytes(digest[:8], "big") % 10**9
                if number in files:
                    raise TableUnreadable(f"{files[number]} and {file} have the same number; read them separately")
                files[number] = file
        return sorted(files.items())


def _check_columns(location: str, names: list[str]) -> None:
    """Raises TableUnreadable."""
    if missing := [name for name in _REQUIRED if name not in names]:
        raise TableUnreadable(f"{location} is not a dead-letter table: it has no column {missing[0]}")


def _headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    """A list of Parquet, or JSON with base64 of a database."""
    if isinstance(value, str):
        try:
            rows = json.loads(value)
            return tuple((row["key"], b64decode(row["value"]) if row.get("value") else None) for row in rows)
        except (ValueError, KeyError, TypeError):
            return ()
    return tuple((row["key"], row["value"]) for row in value) if isinstance(value, list) else ()


def _milliseconds(value: object) -> int | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
