"""Claims letters of a dead-letter table in SQLite, so that each is re-driven at most once, also by concurrent runs."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from headgate.proxy.dead_letters.letter import LetterState, StoredLetter
from headgate.serdes.redrive_mark import MarkState

WAIT_SECONDS_MAX: Final = 60.0
"""Timeout for the lock of another run."""
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS headgate_redrive (letters TEXT, partition INTEGER, number INTEGER, state TEXT, "
    "run_by TEXT, at_ms INTEGER, PRIMARY KEY (letters, partition, number))"
)
_STATES: Final = {MarkState.STARTED: LetterState.UNKNOWN, MarkState.DONE: LetterState.REDRIVEN}


class TableClaims:
    """`letters` distinguishes the tables of one file."""

    def __init__(self, file: Path, letters: str, by: str) -> None:
        self._file = file
        self._letters = letters
        self._by = by

    def states(self) -> dict[tuple[int, int], LetterState]:
        """Never creates the file."""
        if not self._file.is_file():
            return {}
        with self._opened() as connection:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'headgate_redrive'").fetchone()
            query = "SELECT partition, number, state FROM headgate_redrive WHERE letters = ?"
            rows = connection.execute(query, (self._letters,)) if known else ()
            return {(partition, number): _STATES[MarkState(state)] for partition, number, state in rows}

    async def claim(self, letters: Sequence[StoredLetter]) -> list[StoredLetter]:
        """Returns the letters that this run has claimed first."""
        insert = "INSERT OR IGNORE INTO headgate_redrive VALUES (?, ?, ?, ?, ?, ?)"
        now_ms = time.time_ns() // 1_000_000
        with self._opened() as connection:
            connection.execute(_TABLE)
            return [
                stored
                for stored in letters
                if connection.execute(
                    insert, (self._letters, *stored.place, MarkState.STARTED, self._by, now_ms)
                ).rowcount
            ]

    async def complete(self, letters: Sequence[StoredLetter]) -> None:
        update = "UPDATE headgate_redrive SET state = ? WHERE letters = ? AND partition = ? AND number = ?"
        with self._opened() as connection:
            connection.executemany(update, [(MarkState.DONE, self._letters, *stored.place) for stored in letters])

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with closing(sqlite3.connect(self._file, timeout=WAIT_SECONDS_MAX)) as connection, connection:
            yield connection
