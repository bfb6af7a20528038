"""Starts with damaged journals: the broker starts, applies no invented entries and deletes nothing."""

import logging
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crc32c import crc32c
from kio.schema.errors import ErrorCode

from headgate.broker.log.checked_file import read_checked, write_checked
from headgate.broker.log.journal import Journal
from headgate.broker.node.broker import Broker
from headgate.broker.node.opening import open_broker
from headgate.broker.protocol.produced_batch import validate_produced
from headgate.broker.state.groups.messages import CommitRequest, PartitionCommit
from headgate.broker.state.metadata_image import replay
from headgate.broker.state.settings import BrokerSettings, Scope
from headgate.wire.record_batch import read_header
from headgate.wire.records import encode_batch
from tests.manual_clock import ManualClock
from tests.rounds import rounds
from tests.unit.broker.log.logs import NOW_MS, open_at
from tests.wire.record_batches import Batch, NewRecord

DAY_MS = 24 * 3_600_000
MUTATIONS = rounds(20, 400)
RETENTIONS = ["604800000", "1000", "-1"]
COMMITS = [111, 222, 333, 444]
RECORDS = 450
OFFSETS_TOPIC = "__consumer_offsets"


@contextmanager
def running(data: Path, clock: ManualClock | None = None, *, clean: bool = True) -> Iterator[Broker]:
    broker = open_broker(data, BrokerSettings(), lambda callback: callback(), clock=clock or ManualClock(NOW_MS))
    try:
        yield broker
    finally:
        if clean:
            broker.close()
        else:
            broker.group_commit.stop()
            broker.directory.close(clean=False)


def commit(broker: Broker, offset: int) -> None:
    partition = PartitionCommit("kept", 0, offset, -1, "")
    request = CommitRequest("group", "", None, -1, None, ErrorCode.illegal_generation, [partition])
    broker.groups.commit(request)


def write(broker: Broker, topic: str, producer_id: int = -1) -> None:
    found = broker.topics.find(topic)
    assert found is not None
    fields = {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    rows = [NewRecord(b"value", timestamp=NOW_MS)] * RECORDS
    batch = Batch(rows, **fields).encode()  # type: ignore[arg-type]
    found.partitions[0].log.append(batch, validate_produced(batch)[1], NOW_MS)


def start_of(broker: Broker, topic: str) -> int:
    found = broker.topics.find(topic)
    assert found is not None
    return found.partitions[0].log.log_start_offset


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory whose journals hold topics, config changes, producer ids and commits."""
    data = tmp_path_factory.mktemp("original") / "data"
    with running(data) as broker:
        for name in ("kept", "other"):
            broker.topic_store.create(name, 1, {"retention.ms": RETENTIONS[0]})
            write(broker, name)
        kept = broker.topics.find("kept")
        assert kept is not None
        for value in RETENTIONS[1:]:
            broker.set_topic_overrides(kept, {"retention.ms": value})
            broker.metadata.allocate_producer_ids(1000)
        gone = broker.topic_store.create("gone", 1, {})
        broker.delete_topic(gone)
        broker.producer_ids.take()
        for offset in COMMITS:
            commit(broker, offset)
    return data


def journal_file(data: Path, name: str) -> Path:
    return max(data.glob(f"{name}-0/*.log"), key=lambda path: path.stat().st_size)


def harm(content: bytes, randomness: random.Random) -> bytes:
    damaged = bytearray(content)
    place = randomness.randrange(len(damaged))
    match randomness.randrange(5):
        case 0 | 1 | 2:
            damaged[place] ^= 1 << randomness.randrange(8)
        case 3:
            del damaged[place:]
        case 4:
            length = min(randomness.choice((1, 8, 60, 500)), len(damaged) - place)
            damaged[place : place + length] = bytes(length)
    return bytes(damaged)


@pytest.mark.parametrize("name", ["__cluster_metadata", OFFSETS_TOPIC])
def test_a_damaged_journal_costs_entries_and_nothing_else(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # This test cuts no power, and each start would sync a dozen files.
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    randomness = random.Random(name)
    with running(shutil.copytree(original, tmp_path / "sound")) as sound:
        next_id = sound.metadata.producer_ids_end
    for number in range(MUTATIONS):
        data = shutil.copytree(original, tmp_path / str(number))
        path = journal_file(data, name)
        content = path.read_bytes()
        mutated = harm(content, randomness)
        path.write_bytes(mutated)
        if randomness.random() < 0.5:
            (data / "clean-shutdown").unlink()
        clock = ManualClock(NOW_MS)
        with running(data, clock) as broker:
            topic = broker.topics.find("kept")
            assert topic is not None
            assert topic.overrides.get("retention.ms") in [*RETENTIONS, None], number
            assert broker.producer_ids.take() >= next_id, number
            for _, committed in broker.groups._offsets.newest():
                assert committed.offset in COMMITS, number
            clock.advance(30 * DAY_MS)
            broker.timers.run_due()
            broker.timers.run_due()
            assert start_of(broker, "kept") == 0, number
        if number % 5 == 0:
            with running(data) as broker:
                assert broker.topics.find("kept") is not None


def test_a_flipped_bit_in_a_retention_time_deletes_nothing_until_it_is_confirmed(
    original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    path = journal_file(data, "__cluster_metadata")
    content = path.read_bytes()
    position = content.rindex(b'"retention.ms":"-1"') + len(b'"retention.ms":"')
    path.write_bytes(content[:position] + b"1" + content[position + 1 :])
    with caplog.at_level(logging.ERROR):
        retention_hold_lasts_until_its_file_is_removed(data)
    assert f"{path.parent.name}/{path.name}, position" in caplog.text


def retention_hold_lasts_until_its_file_is_removed(data: Path) -> None:
    for _ in range(2):
        clock = ManualClock(NOW_MS)
        with running(data, clock) as broker:
            clock.advance(30 * DAY_MS)
            broker.retention.run()
            assert [start_of(broker, name) for name in ("kept", "other")] == [0, 0]
    clock = ManualClock(NOW_MS + 30 * DAY_MS)
    with running(data, clock) as broker:
        other = broker.topics.find("other")
        assert other is not None
        broker.set_topic_overrides(other, {"retention.ms": "5000"})
        broker.retention.run()
        assert [start_of(broker, name) for name in ("kept", "other")] == [0, RECORDS]
        (data / "retention-hold").unlink()
        broker.retention.run()
        assert start_of(broker, "kept") == RECORDS
    assert list((data / "__cluster_metadata-0").glob("*.log.damaged"))


def test_retention_waits_for_a_round_after_the_clock_has_jumped(
    original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(NOW_MS)
    with running(shutil.copytree(original, tmp_path / "data"), clock) as broker:
        clock._wall_ms += 8 * DAY_MS
        broker.retention.run()
        assert start_of(broker, "other") == 0
        assert "the clock has jumped" in caplog.text
        broker.retention.run()
        assert start_of(broker, "other") == RECORDS


def test_a_damaged_entry_behind_the_recovery_point_holds_retention_after_a_power_cut(
    original: Path, tmp_path: Path
) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    (data / "clean-shutdown").unlink()
    write_checked(data / "boot-id", b"00000000-0000-0000-0000-000000000000")
    write_checked(data / "recovery-points", b"{}")
    path = journal_file(data, "__cluster_metadata")
    path.write_bytes(path.read_bytes().replace(b'"retention.ms":"-1"', b'"retention.ms":"91"'))
    clock = ManualClock(NOW_MS + 30 * DAY_MS)
    with running(data, clock) as broker:
        broker.retention.run()
        assert start_of(broker, "kept") == 0
        assert broker.topics.find("gone") is None


def test_a_topic_whose_entry_is_missing_keeps_its_records(original: Path, tmp_path: Path) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    path = journal_file(data, "__cluster_metadata")
    size = path.stat().st_size
    with running(data, clean=False) as broker:
        broker.topic_store.create("late", 1, {"retention.ms": "-1"})
        write(broker, "late")
    os.truncate(path, size)
    clock = ManualClock(NOW_MS + 30 * DAY_MS)
    with running(data, clock) as broker:
        broker.retention.run()
        # The hold covers only the topic without an entry.
        assert [start_of(broker, name) for name in ("late", "other")] == [0, RECORDS]
    (data / "retention-hold").unlink()
    with running(data, clock) as broker:
        broker.retention.run()
        assert start_of(broker, "late") == RECORDS


def test_a_topic_with_invalid_configs_keeps_its_records(original: Path, tmp_path: Path) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    with running(data) as broker:
        other = broker.topics.find("other")
        assert other is not None
        other.overrides["retention.ms"] = "forever"
        broker.metadata.save_topic(other, 1)
    with running(data, ManualClock(NOW_MS + 30 * DAY_MS)) as broker:
        broker.retention.run()
        assert start_of(broker, "other") == 0


def test_with_invalid_broker_configs_all_topics_keep_their_records(original: Path, tmp_path: Path) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    with running(data) as broker:
        broker.metadata.save_broker_overrides(Scope.ALL_BROKERS, {"log.retention.ms": "forever"})
    with running(data, ManualClock(NOW_MS + 30 * DAY_MS)) as broker:
        broker.retention.run()
        assert start_of(broker, "other") == 0


def test_producer_ids_skip_the_ids_of_stored_batches(tmp_path: Path) -> None:
    """The journal lost its end without a trace, and the file with the second copy is lost too."""
    with running(tmp_path, clean=False) as broker:
        broker.topic_store.create("kept", 1, {})
        path = journal_file(tmp_path, "__cluster_metadata")
        size = path.stat().st_size
        taken = broker.producer_ids.take()
        write(broker, "kept", taken)
    os.truncate(path, size)
    (tmp_path / "producer-ids").unlink()
    with running(tmp_path) as broker:
        assert broker.producer_ids.take() > taken


@pytest.mark.parametrize("harm", ["journal lost", "journal and file lost", "file damaged", "file lost", "all lost"])
def test_no_producer_id_is_allocated_twice(original: Path, tmp_path: Path, harm: str) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    with running(data) as broker:
        given = {broker.producer_ids.take() for _ in range(3)}
        write(broker, "kept", max(given))
    for _ in range(2):
        if harm in ("journal lost", "journal and file lost", "all lost"):
            shutil.rmtree(data / "__cluster_metadata-0")
        if harm in ("journal and file lost", "file lost", "all lost"):
            (data / "producer-ids").unlink()
        if harm == "file damaged":
            content = bytearray((data / "producer-ids").read_bytes())
            content[-4] ^= 1
            (data / "producer-ids").write_bytes(content)
        if harm == "all lost":
            # Remove all batches, so that no partition contains a producer id.
            for path in data.glob("kept-0/*"):
                if path.suffix in (".log", ".snapshot"):
                    path.unlink()
        clock = ManualClock(NOW_MS + 60_000 + len(given))
        with running(data, clock) as broker:
            taken = broker.producer_ids.take()
        assert taken > max(given)
        assert taken < 2**63
        given.add(taken)


def test_a_directory_of_an_earlier_version_goes_on_with_larger_ids(original: Path, tmp_path: Path) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    (data / "producer-ids").unlink()
    for path in [*data.iterdir(), *data.glob("*/*")]:
        if path.is_file() and path.suffix not in (".log", ".index", ".timeindex", ".snapshot"):
            stored = read_checked(path)
            assert stored is not None
            path.write_bytes(stored.content if path.name != "clean-shutdown" else b"")
    (data / "recovery-points.previous").unlink(missing_ok=True)
    (data / "meta.copy.json").unlink()
    with running(original) as before:
        cluster_id, first = before.cluster_id, before.metadata.producer_ids_end
    with running(data) as broker:
        assert broker.cluster_id == cluster_id
        assert broker.metadata.producer_ids_end >= first
        topic = broker.topics.find("kept")
        assert topic is not None
        assert (topic.overrides, topic.partitions[0].log.log_end_offset) == ({"retention.ms": "-1"}, RECORDS)
        assert not broker.retention_hold.covers(topic.topic_id)


def test_a_topic_comes_back_by_the_name_of_its_directory(
    original: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    shutil.rmtree(data / "__cluster_metadata-0")
    (data / "kept-0" / "partition.metadata").unlink()
    (data / "other-0" / "partition.metadata").write_bytes(b"\x00garbage")
    with running(data) as broker:
        ids = []
        for name in ("kept", "other"):
            topic = broker.topics.find(name)
            assert topic is not None
            assert topic.partitions[0].log.log_end_offset == RECORDS
            assert f"{name}-0" in caplog.text
            ids.append(topic.topic_id)
    with running(data) as broker:
        assert [topic.topic_id for topic in map(broker.topics.find, ("kept", "other")) if topic is not None] == ids


def test_the_offsets_topic_stays_compacted_when_the_metadata_is_lost(original: Path, tmp_path: Path) -> None:
    data = shutil.copytree(original, tmp_path / "data")
    shutil.rmtree(data / "__cluster_metadata-0")
    with running(data) as broker:
        topic = broker.topics.find(OFFSETS_TOPIC)
        assert topic is not None
        assert not topic.settings.deletes_old_segments
        assert [committed.offset for _, committed in broker.groups._offsets.newest()] == [COMMITS[-1]]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"topic\x00", b"{}"),
        (b"topic\x00short", None),
        (b"topic\x00../../x\x00" + bytes(16), b'{"partitions":1,"overrides":{}}'),
        (b"topic\x00t\x00" + bytes(16), b"not json"),
        (b"topic\x00t\x00" + bytes(16), b'{"partitions":"one","overrides":{}}'),
        (b"topic\x00t\x00" + bytes(16), b'{"partitions":-1,"overrides":{}}'),
        (b"topic\x00\xff\xfe\x00" + bytes(16), b'{"partitions":1,"overrides":{}}'),
        (b"broker\x00nobody", b"{}"),
        (b"broker\x00\xff", b"{}"),
        (b"broker\x00cluster", b"[]"),
        (b"producer-ids", b"many"),
        (b"producer-ids", b"-5"),
        (b"producer-ids", b"9" * 19),
    ],
)
def test_an_entry_that_cannot_be_read_is_skipped(key: bytes, value: bytes | None) -> None:
    good = (b"producer-ids", b"7000")
    image = replay([good, (key, value)])
    assert len(image.unreadable) == 1
    assert (image.topics, image.producer_ids_end) == ({}, 7000)


def test_a_batch_with_a_good_checksum_and_bad_records_is_skipped(tmp_path: Path) -> None:
    journal = Journal(open_at(tmp_path), ManualClock())
    journal.append_now([(b"a", b"1")])
    lying = bytearray(encode_batch([(b"b", b"2")] * 2, NOW_MS))
    lying[61] = 0x7F
    checked = _with_checksum(bytes(lying))
    journal.log.append(checked, read_header(checked), NOW_MS)
    journal.append_now([(b"c", b"3")])
    assert list(journal.entries()) == [(b"a", b"1"), (b"c", b"3")]
    assert len(journal.damage) == 1


def _with_checksum(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[21:]).to_bytes(4) + batch[21:]
