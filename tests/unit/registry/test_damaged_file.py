"""Changed bits in the registry's file: damaged rows are reported and never returned, other rows are."""

import logging
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from headgate.registry.errors import DamagedRow, StoreFailed
from headgate.registry.model import Config, Content, Level, Metadata, Mode, Reference, SchemaType
from headgate.registry.storage.base import Deleted, Operation, Selection, StoredVersion, StoreReader, StoreWriter
from headgate.registry.storage.sqlite import SqliteStore
from headgate.registry.storage.sqlite import store as sqlite_store
from headgate.registry.subjects import Subject
from tests.rounds import rounds

SUBJECTS = [Subject(".", f"subject-{number}") for number in range(20)]
A = SUBJECTS[0]
OTHER = Subject(".", "other")
"""Every third schema refers to version 3 of it."""

FLIPPED_BITS = rounds(25, 500)
"""Each is a start of the registry and a read of all data."""


def version(subject: Subject, number: int, id: int, *, deleted: bool = False) -> StoredVersion:
    text = f'{{"type":"record","name":"Order{id}","fields":[{{"name":"customerName{id}","type":"string"}}]}}'
    content = Content(
        SchemaType.AVRO,
        text,
        (Reference("n", "other", 3),) if id % 3 == 0 else (),
        Metadata({}, {"owner": f"team{id}"}),
    )
    return StoredVersion(subject, number, id, content, content.fingerprint(), 1000 + id, deleted)


def putting(put: StoredVersion) -> Operation:
    return lambda writer: writer.put_version(put)


def configuring(scope: Subject) -> Operation:
    def configure(writer: StoreWriter) -> None:
        writer.put_config(scope, Config(Level.FULL, normalize=True))
        writer.put_mode(scope, Mode.READONLY)

    return configure


Filled: TypeAlias = Callable[[Path], SqliteStore]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Return a function that opens a store with content. Each store is a copy of one file, to save 60 commits."""
    template = tmp_path_factory.mktemp("filled") / "registry.db"
    store = SqliteStore(template, lambda: 7)
    for index, subject in enumerate(SUBJECTS):
        for number in (1, 2):
            put = version(subject, number, 2 * index + number, deleted=number == 1 and index % 4 == 0)
            store.apply([putting(put)])
        store.apply([configuring(subject)])
    store.close()

    def copied(path: Path) -> SqliteStore:
        shutil.copyfile(template, path)
        return SqliteStore(path, lambda: 7)

    return copied


QUESTIONS: list[Callable[[StoreReader], Any]] = [
    *(lambda store, s=subject: store.latest(s) for subject in SUBJECTS),
    *(lambda store, s=subject: store.version(s, 1) for subject in SUBJECTS),
    *(lambda store, s=subject: store.versions(s) for subject in SUBJECTS),
    *(lambda store, s=subject: store.config(s) for subject in SUBJECTS),
    *(lambda store, s=subject: store.mode(s) for subject in SUBJECTS),
    *(lambda store, i=id: store.schema(".", i) for id in range(1, 41)),
    *(lambda store, i=id: store.uses(".", i) for id in range(1, 41)),
    lambda store: store.referrers(OTHER, 3),
    lambda store: store.changes(0, 1000),
    lambda store: store.last_change(),
    lambda store: store.subjects(Selection(None), Deleted.SHOWN, 0, 100),
    lambda store: list(store.walk(Selection(None), Deleted.SHOWN)),
]


def answers(store: SqliteStore) -> list[Any]:
    found: list[Any] = []
    for question in QUESTIONS:
        try:
            with store.reading() as reader:
                found.append(question(reader))
        except StoreFailed as error:
            found.append(error)
    return found


def missing(answer: Any, expected: Any) -> bool:
    """Nothing, or a part of a list: rows of a damaged key. The log reports them at start."""
    if isinstance(answer, list) and isinstance(expected, list):
        return all(one in expected for one in answer)
    return answer is None


def test_no_flipped_bit_changes_a_response(
    tmp_path: Path, filled: Filled, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some flipped bits make a file look locked. No other process has it open, so a longer wait changes nothing.
    monkeypatch.setattr(sqlite_store, "_BUSY_SECONDS", 0.1)
    store = filled(tmp_path / "registry.db")
    expected = answers(store)
    assert not any(isinstance(answer, StoreFailed) for answer in expected)
    store.close()
    whole = (tmp_path / "registry.db").read_bytes()
    chance = random.Random(20_261_118)
    # Most pages are half empty: change bytes with content.
    places = [place for place in range(100, len(whole)) if whole[place]]
    damaged = tmp_path / "damaged" / "registry.db"
    reported = 0
    for place in chance.sample(places, FLIPPED_BITS):
        shutil.rmtree(damaged.parent, ignore_errors=True)
        damaged.parent.mkdir()
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        damaged.write_bytes(changed)
        caplog.clear()
        try:
            store = SqliteStore(damaged, lambda: 7)
        except StoreFailed:
            reported += 1
            continue
        found = answers(store)
        store.close()
        logged = bool(caplog.records)
        reported += logged
        wrong = [
            (was, now)
            for was, now in zip(expected, found, strict=True)
            if now != was and not isinstance(now, StoreFailed) and not (logged and missing(now, was))
        ]
        assert not wrong, f"bit flipped at {place}"
    assert reported


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("UPDATE schemas SET body = replace(body, 'customer', 'bustomer') WHERE id = 1", lambda s: s.version(A, 1)),
        ("UPDATE schemas SET type = 'JSON' WHERE id = 1", lambda s: s.schema(".", 1)),
        ("UPDATE schemas SET metadata = replace(metadata, 'team', 'steam') WHERE id = 1", lambda s: s.version(A, 1)),
        ("UPDATE versions SET deleted = 1 WHERE subject = 1 AND version = 2", lambda s: s.latest(A)),
        ("UPDATE versions SET schema = 3 WHERE subject = 1 AND version = 2", lambda s: s.latest(A)),
        ("UPDATE versions SET version = 9 WHERE subject = 1 AND version = 2", lambda s: s.last_version(A)),
        ("UPDATE subjects SET name = 'subject-x' WHERE key = 1", lambda s: s.versions(Subject(".", "subject-x"))),
        ("UPDATE configs SET body = replace(body, 'FULL', 'NONE')", lambda s: s.config(A)),
        ("UPDATE modes SET mode = 'READWRITE'", lambda s: s.mode(A)),
        ("UPDATE contexts SET next_id = 3", lambda s: s.contexts()),
    ],
)
def test_a_changed_row_is_reported_and_named(
    tmp_path: Path,
    filled: Filled,
    statement: str,
    question: Callable[[StoreReader], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "registry.db"
    filled(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    with caplog.at_level(logging.ERROR):
        store = SqliteStore(path, lambda: 7)
    assert "does not match its checksum" in caplog.text  # already at start
    try:
        with pytest.raises(DamagedRow, match="is damaged"), store.reading() as reader:
            question(reader)
        with store.reading() as reader:
            assert reader.latest(SUBJECTS[7]) == version(SUBJECTS[7], 2, 16)
    finally:
        store.close()


def test_a_damaged_context_assigns_no_id_twice(tmp_path: Path, filled: Filled) -> None:
    path = tmp_path / "registry.db"
    filled(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE contexts SET next_id = 3")
    connection.close()
    store = SqliteStore(path, lambda: 7)
    outcome = store.apply([lambda writer: writer.allocate_id("."), lambda writer: writer.mark_deleted(A, 2)])
    assert isinstance(outcome.results[0], DamagedRow)
    assert outcome.results[1] is None
    store.close()


def test_an_export_can_skip_damaged_rows(tmp_path: Path, filled: Filled, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "registry.db"
    filled(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schemas SET body = replace(body, 'customer', 'bustomer') WHERE id = 1")
        connection.execute("UPDATE modes SET mode = 'READWRITE' WHERE name = 'subject-3'")
    connection.close()
    store = SqliteStore(path, lambda: 7)
    with store.snapshot(skip_damaged=True) as reader:
        caplog.clear()
        assert len(list(reader.walk(Selection(None), Deleted.SHOWN))) == 39
        assert len(reader.modes(Selection(None))) == 19
    assert caplog.text.count("Left out") == 2
    store.close()


def test_a_damaged_index_is_rebuilt(tmp_path: Path, filled: Filled, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "registry.db"
    filled(path).close()
    whole = path.read_bytes()
    name = b".subject-11"
    places = [place for place in range(len(whole)) if whole.startswith(name, place)]
    for place in places:
        changed = bytearray(whole)
        changed[place + len(name) - 1] ^= 0x40
        path.write_bytes(changed)
        store = SqliteStore(path, lambda: 7)
        with store.reading() as reader:
            try:
                latest = reader.latest(SUBJECTS[11])
            except StoreFailed:
                latest = None
        store.close()
        if latest is not None:
            break
    assert latest == version(SUBJECTS[11], 2, 24)
    assert "were rebuilt" in caplog.text


def test_a_file_without_checksums_gets_them(tmp_path: Path) -> None:
    from headgate.registry.storage.sqlite import tables as sqlite_schema

    path = tmp_path / "registry.db"
    connection = sqlite3.connect(path)
    for step in sqlite_schema.MIGRATIONS[:2]:
        connection.executescript(step)
    connection.execute("PRAGMA user_version = 2")
    put = version(A, 1, 5)
    connection.execute("INSERT INTO subjects (key, context, name) VALUES (1, '.', 'subject-0')")
    connection.execute(
        "INSERT INTO schemas (key, context, id, type, fingerprint, body_hash, body, metadata) "
        "VALUES (1, '.', 5, 'AVRO', ?, x'00', ?, '{\"properties\":{\"owner\":\"team5\"}}')",
        (put.fingerprint, put.content.text),
    )
    connection.execute("INSERT INTO versions VALUES (1, 1, 1, 0, 0, 1005)")
    connection.execute("UPDATE contexts SET next_id = 6")
    connection.commit()
    connection.close()
    store = SqliteStore(path, lambda: 7)
    with store.reading() as reader:
        assert reader.version(A, 1) == put
    assert store.apply([lambda writer: writer.allocate_id(".")]).results == (6,)
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE edges SET name = 'othes' WHERE rowid = 4",
        "UPDATE edges SET version = 2 WHERE rowid = 4",
        "UPDATE edges SET context = ':' WHERE rowid = 4",
        "UPDATE edges SET schema = 1 WHERE rowid = 4",
        "UPDATE edges SET schema = 999 WHERE rowid = 4",
        "UPDATE edges SET checksum = x'00' WHERE rowid = 4",
        "DELETE FROM edges WHERE rowid = 4",
        "INSERT INTO edges (schema, context, name, version) VALUES (1, '.', 'other', 3)",
    ],
)
def test_damaged_references_are_restored_at_the_start(
    tmp_path: Path, filled: Filled, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "registry.db"
    store = filled(path)
    with store.reading() as reader:
        expected = reader.referrers(OTHER, 3)
    assert [referrer.id for referrer in expected] == list(range(3, 41, 3))
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    store = SqliteStore(path, lambda: 7)
    with store.reading() as reader:
        assert reader.referrers(OTHER, 3) == expected
    store.close()
    assert "are restored" in caplog.text
    caplog.clear()
    SqliteStore(path, lambda: 7).close()
    assert not caplog.records


def test_a_reference_that_is_damaged_while_the_registry_runs_is_reported(tmp_path: Path, filled: Filled) -> None:
    path = tmp_path / "registry.db"
    store = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE edges SET schema = 1 WHERE rowid = 4")
    connection.close()
    with pytest.raises(DamagedRow, match="edges"), store.reading() as reader:
        reader.referrers(OTHER, 3)
    store.close()


@pytest.mark.parametrize(
    "change",
    ["subject = 'subject-x'", "kind = 'version-removed'", "version = 9", "id = 9", "at_ms = 8", "sequence = 999"],
)
def test_a_damaged_change_is_skipped_and_reported(
    tmp_path: Path, filled: Filled, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "registry.db"
    store = filled(path)
    with store.reading() as reader:
        expected = [one for one in reader.changes(0, 1000) if one.sequence != 5]
        last = reader.last_change()
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE changes SET {change} WHERE sequence = 5")
    connection.close()
    store = SqliteStore(path, lambda: 7)
    assert "does not match its checksum" in caplog.text
    with store.reading() as reader:
        assert reader.changes(0, 1000) == expected
        assert reader.changes(4, 1) == [expected[4]]
        assert reader.last_change() == last
    store.close()


def test_references_and_changes_of_a_file_without_checksums_get_them(
    tmp_path: Path, filled: Filled, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "registry.db"
    store = filled(path)
    expected = answers(store)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE edges DROP COLUMN checksum")
        connection.execute("ALTER TABLE changes DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    store = SqliteStore(path, lambda: 7)
    assert answers(store) == expected
    store.close()
    assert not caplog.records
