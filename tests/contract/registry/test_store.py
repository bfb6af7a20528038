"""The contract of all stores. Add new stores to `STORES`."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.registry.errors import OperationNotPermitted, StoreFailed
from headgate.registry.model import Config, Content, Level, Metadata, Mode, Reference, Rule, RuleSet, SchemaType
from headgate.registry.storage.base import Deleted, Operation, RegistryStore, Selection, StoredVersion, StoreWriter
from headgate.registry.storage.sqlite import SqliteStore
from headgate.registry.subjects import Subject

STORES: dict[str, Callable[[Path], RegistryStore]] = {
    "sqlite": lambda folder: SqliteStore(folder / "registry.db", lambda: 7),
}


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], RegistryStore]]:
    """Open the store. A second call opens the same data."""
    stores: list[RegistryStore] = []

    def open_again() -> RegistryStore:
        if stores:
            stores[-1].close()
        stores.append(STORES[request.param](tmp_path))
        return stores[-1]

    yield open_again
    stores[-1].close()


def stored(subject: Subject, version: int, id: int, text: str = "", **content: object) -> StoredVersion:
    made = Content(SchemaType.AVRO, text or f'"text {id}"', **content)  # type: ignore[arg-type]
    return StoredVersion(subject, version, id, made, made.fingerprint(), 1000 + version)


def putting(version: StoredVersion) -> Operation:
    return lambda store: store.put_version(version)


S = Subject(".", "s")
RICH = stored(
    S,
    1,
    1,
    references=(Reference("n", "other", 3),),
    metadata=Metadata({"p": ("t",)}, {"k": "v"}, ("k",)),
    rule_set=RuleSet((), (Rule("r", "CONDITION", "READ", "CEL", params={"a": "b"}, tags=("x",), disabled=True),), ()),
)


def test_a_stored_version_is_read_back_unchanged(opened: Callable[[], RegistryStore]) -> None:
    opened().apply([lambda store: store.put_version(RICH)])
    with opened().reading() as store:
        assert store.version(S, 1) == RICH
        assert store.latest(S) == RICH
        assert store.schema(".", 1) == RICH
        assert [key.version for key in store.versions_with_content(S, RICH.fingerprint, SchemaType.AVRO)] == [1]
        assert store.ids_of_fingerprint(RICH.fingerprint) == [(".", 1)]
        assert [r.id for r in store.referrers(Subject(".", "other"), 3)] == [1]


def test_a_failed_operation_is_undone_and_others_are_kept(opened: Callable[[], RegistryStore]) -> None:
    def failing(store: StoreWriter) -> None:
        store.put_version(stored(S, 2, 2))
        raise OperationNotPermitted("no")

    outcome = opened().apply(
        [lambda store: store.put_version(stored(S, 1, 1)), failing, lambda store: store.put_version(stored(S, 3, 3))]
    )
    assert outcome.results[0] is None
    assert isinstance(outcome.results[1], OperationNotPermitted)
    with opened().reading() as store:
        assert [key.version for key in store.versions(S)] == [1, 3]
    assert outcome.touched.subjects == {"s"}


def test_a_reader_sees_committed_data_only(opened: Callable[[], RegistryStore]) -> None:
    store = opened()
    store.apply([lambda writer: writer.put_version(stored(S, 1, 1))])
    with store.snapshot() as before:
        assert before.last_version(S) == 1
        staged = store.stage([lambda writer: writer.put_version(stored(S, 2, 2))])
        with store.reading() as during:
            assert during.last_version(S) == 1
        staged.commit()
        assert before.last_version(S) == 1
    with store.reading() as after:
        assert after.last_version(S) == 2


def test_ids_are_assigned_once_in_each_context(opened: Callable[[], RegistryStore]) -> None:
    outcome = opened().apply([lambda store: store.allocate_id("."), lambda store: store.allocate_id(".c")])
    assert outcome.results == (1, 1)
    outcome = opened().apply([lambda store: store.allocate_id(".")])
    assert outcome.results == (2,)
    store = opened()
    store.apply([lambda writer: writer.put_version(stored(S, 1, 500))])
    assert store.apply([lambda writer: writer.allocate_id(".")]).results == (501,)


def test_content_is_removed_with_its_last_version_and_keeps_its_id(opened: Callable[[], RegistryStore]) -> None:
    one, other = stored(S, 1, 1), stored(Subject(".", "t"), 1, 1)
    store = opened()
    store.apply([lambda w: w.put_version(one), lambda w: w.put_version(other)])
    store.apply([lambda w: w.remove_version(S, 1)])
    with store.reading() as reader:
        assert reader.schema(".", 1) is not None
        assert not reader.has_subject(S, deleted=True)
    store.apply([lambda w: w.remove_version(Subject(".", "t"), 1)])
    with opened().reading() as reader:
        assert reader.schema(".", 1) is None
        assert reader.id_of_content(".", one.fingerprint, SchemaType.AVRO) is None
        assert reader.retired_id_of_content(".", one.fingerprint, SchemaType.AVRO) == 1


def test_soft_deleted_versions_can_be_excluded_included_or_selected(opened: Callable[[], RegistryStore]) -> None:
    store = opened()
    subjects = [Subject(context, name) for context, name in itertools.product((".", ".c"), ("a", "ab", "b"))]
    store.apply([putting(stored(s, 1, n + 1)) for n, s in enumerate(subjects)])
    store.apply([lambda w: w.mark_deleted(Subject(".", "ab"), 1)])

    def listed(selection: Selection, deleted: Deleted) -> list[str]:
        with store.reading() as reader:
            names = [subject.qualified for subject in reader.subjects(selection, deleted, 0, 100)]
            walked = [version.subject.qualified for version in reader.walk(selection, deleted)]
        assert walked == names
        return names

    assert listed(Selection("."), Deleted.HIDDEN) == ["a", "b"]
    assert listed(Selection("."), Deleted.SHOWN) == ["a", "ab", "b"]
    assert listed(Selection("."), Deleted.ONLY) == ["ab"]
    assert listed(Selection(None, "a"), Deleted.HIDDEN) == [":.c:a", ":.c:ab", "a"]
    assert listed(Selection(".c", "ab"), Deleted.SHOWN) == [":.c:ab"]


def test_settings_are_stored_by_scope(opened: Callable[[], RegistryStore]) -> None:
    config = Config(Level.FULL, alias="x", normalize=True, default_metadata=Metadata({}, {"k": "v"}))
    store = opened()
    store.apply([lambda w: w.put_config(S, config), lambda w: w.put_mode(Subject(".c", ""), Mode.IMPORT)])
    with opened().reading() as reader:
        assert reader.config(S) == config
        assert reader.config(Subject(".c", "s")) is None
        assert reader.mode(Subject(".c", "")) is Mode.IMPORT
        assert reader.configs(Selection(".", "s")) == [(S, config)]
        assert reader.modes(Selection(None)) == [(Subject(".c", ""), Mode.IMPORT)]


def test_lookup_by_text_includes_versions_with_references(opened: Callable[[], RegistryStore]) -> None:
    store = opened()
    versions = [
        stored(S, 1, 1, '"a"'),
        stored(S, 2, 2, '"a"', metadata=Metadata({}, {"k": "v"})),
        stored(S, 3, 3, '"b"'),
        stored(S, 4, 4, '"c"', references=(Reference("n", "o", 1),)),
    ]
    store.apply([putting(version) for version in versions])
    with store.reading() as reader:
        assert [key.version for key in reader.lookalikes(S, '"a"')] == [4, 2, 1]


def test_a_batch_that_cannot_be_written_fails_completely(opened: Callable[[], RegistryStore]) -> None:
    store = opened()
    store.apply([lambda w: w.put_version(stored(S, 1, 1))])

    def breaking(writer: StoreWriter) -> None:
        writer.put_version(stored(S, 2, 2))
        writer._execute("INSERT INTO nowhere VALUES (1)")  # type: ignore[attr-defined]

    with pytest.raises(StoreFailed):
        store.apply([breaking])
    store.check()
    with store.reading() as reader:
        assert reader.last_version(S) == 1


def test_a_file_of_a_newer_release_is_rejected(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "registry.db", lambda: 7)
    store._writer.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StoreFailed, match="newer release"):
        SqliteStore(tmp_path / "registry.db", lambda: 7)
