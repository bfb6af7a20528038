"""`read_topic` with a cluster in memory: positions, options, good records and poison."""

from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka.structs import TopicPartition
from pyarrow import lib as pa

from headgate.kafka_client.fetch import Fetched
from headgate.spark_udfs import topic_table
from headgate.spark_udfs.extra import MissingExtra
from headgate.spark_udfs.source import reading
from headgate.spark_udfs.topic_table import TopicTable, read_topic
from tests.unit.columnar.test_batches import simple
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry
from tests.unit.spark_udfs.plans import payload, record, text_of
from tests.unit.spark_udfs.source.fake_cluster import FakeCluster

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
ORDER = record(("id", "long"), ("note", "string"))
GOOD = [payload(ORDER, {"id": at, "note": f"n{at}"}) for at in range(4)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster({A: (0, 3), B: (5, 7)})
    monkeypatch.setattr("headgate.spark_udfs.source.cluster.Cluster", lambda connection: found)
    monkeypatch.setattr(reading, "shared_cluster", lambda connection: found)
    return found


@pytest.fixture
def registry(stub_registry: StubRegistry) -> StubRegistry:
    stub_registry.add("orders-value", {"schema": text_of(ORDER)})
    return stub_registry


def answer(fake: FakeCluster, first: list[bytes], second: list[bytes]) -> None:
    fake.responses = [Fetched(simple(first), 3, 3, 0), Fetched(simple(second, base=5), 7, 7, 5)]


def ranges(table: TopicTable) -> list[tuple[int, int, int]]:
    return [(each.at.partition, each.start, each.end) for each in table._ranges]


def test_good_records_and_poison_are_separate_tables(fake: FakeCluster, registry: StubRegistry) -> None:
    answer(fake, [GOOD[0], b"bad", GOOD[1]], GOOD[2:])
    table = read_topic("orders", registry=ADDRESS)
    assert fake.is_closed
    assert (table.offset_count, ranges(table)) == (5, [(0, 0, 3), (1, 5, 7)])
    assert [each["id"] for each in table.good.column("value").to_pylist()] == [0, 1, 2, 3]
    assert "reason" not in table.good.column_names
    assert "raw" not in table.good.column_names
    (bad,) = table.poison.to_pylist()
    assert (bad["offset"], bad["reason"], bad["raw"]) == (1, "TOO_SHORT", b"bad")
    assert "value" not in bad
    assert bad["key"] == b"k"
    # The topic is read once.
    assert fake.fetched_from == [0, 5]


def test_raw_values_are_never_poison(fake: FakeCluster) -> None:
    answer(fake, [b"a", b"b", b"c"], [b"d", b"e"])
    table = read_topic("orders", raw=True, headers=True)
    assert table.good.column("value").to_pylist() == [b"a", b"b", b"c", b"d", b"e"]
    assert "headers" in table.good.column_names
    assert table.poison.num_rows == 0
    assert "reason" not in table.schema.names
    assert "headers" not in read_topic("orders", raw=True).schema.names


def test_keys_are_decoded_with_their_own_subject(fake: FakeCluster, registry: StubRegistry) -> None:
    registry.add("keys", {"schema": '"string"'})
    answer(fake, GOOD[:3], GOOD[:2])
    table = read_topic("orders", registry=ADDRESS, key_subject="keys")
    assert table.good.num_rows == 0
    bad = table.poison.to_pylist()[0]
    assert (bad["part"], bad["key_raw"], bad["raw"]) == ("key", b"k", GOOD[0])
    assert "key" not in bad


def test_subjects_and_fields_are_selected(fake: FakeCluster, registry: StubRegistry) -> None:
    only = read_topic("orders", registry=ADDRESS, subject="orders-value", fields=["id"])
    assert only.schema.field("value").type == pa.struct([("id", pa.int64())])
    registry.add("other", {"schema": text_of(record(("x", "long"), name="X"))})
    both = read_topic("orders", registry=ADDRESS, subject=["orders-value", "other"])
    assert [field.name for field in both.schema.field("value").type] == ["orders-value", "other"]


def test_positions_have_four_forms(fake: FakeCluster) -> None:
    fake.times = {A: 2, B: 6}
    at = datetime(2026, 1, 2, tzinfo=UTC)
    for start in (at, int(at.timestamp() * 1000)):
        assert ranges(read_topic("orders", raw=True, start=start)) == [(0, 2, 3), (1, 6, 7)]
        assert set(fake.requested_times[-1].values()) == {int(at.timestamp() * 1000)}
    assert ranges(read_topic("orders", raw=True, start={0: 1, 1: 6}, end={0: 2, 1: 7})) == [(0, 1, 2), (1, 6, 7)]
    with pytest.raises(ValueError, match="has no time zone"):
        read_topic("orders", raw=True, start=datetime(2026, 1, 2))


def test_each_partition_can_continue_at_its_own_offset(fake: FakeCluster) -> None:
    parts = read_topic("orders", raw=True).by_partition({0: 2, 1: 1})
    assert {number: (each.start, each.end) for number, each in parts.items()} == {0: (2, 3), 1: (5, 7)}
    done = read_topic("orders", raw=True).by_partition({0: 99})
    assert {number: (each.start, each.end) for number, each in done.items()} == {0: (3, 3), 1: (5, 7)}


def test_progress_reaches_the_end_of_every_range(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    seen: list[Any] = []

    @contextmanager
    def bar(total: int, *, is_shown: bool) -> Any:
        seen.append((total, is_shown))
        yield seen.append

    monkeypatch.setattr(topic_table, "_progress_bar", bar)
    answer(fake, [b"a", b"b", b"c"], [b"d", b"e"])
    reader = read_topic("orders", raw=True, progress=True).reader()
    assert reader.read_all().num_rows == 5
    assert seen[0] == (5, True)
    assert sum(seen[1:]) == 5
    assert all(count >= 0 for count in seen[1:])
    answer(fake, [b"a", b"b", b"c"], [b"d", b"e"])
    list(read_topic("orders", raw=True).batches())
    assert (5, False) in seen


def test_a_missing_library_is_reported(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_table, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"numpy and pyarrow not installed; run pip install 'headgate\[arrow\]'"):
        read_topic("orders")
