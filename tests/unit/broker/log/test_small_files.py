"""Small files with a checksum: start offset, producer ids, manifest, retention hold, cluster identity."""

import errno
import json
import logging
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.broker.log import retention_hold
from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked
from headgate.broker.log.identity import Identity, lost_epochs_skipped, read_identity
from headgate.broker.log.leader_epochs import write_epochs
from headgate.broker.log.producer_id_block import read_block_end, write_block_end
from headgate.broker.log.retention_hold import RetentionHold
from headgate.broker.log.segment import Segment
from headgate.broker.log.segment_manifest import Row, describe, read_manifest, write_manifest
from headgate.broker.log.start_offset import StoredStart, read_start_offset, write_start_offset
from headgate.broker.runtime.errors import StorageError

TOPIC, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


def test_a_checked_file_starts_with_the_checksum_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert read_checked(path) is None
    write_checked(path, b"123456789")
    # The check value of CRC-32C.
    assert path.read_bytes() == b"headgate-crc32c e3069283\n123456789"
    assert read_checked(path) == (b"123456789", True)
    path.write_bytes(b"of an earlier version")
    assert read_checked(path) == (b"of an earlier version", False)


def test_an_unreadable_file_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(StorageError, match=r"cannot read .*/state") as caught:
        read_checked(tmp_path / "state")
    assert caught.value.error_number == errno.EISDIR


def test_the_start_offset_has_a_checksum_or_comes_from_an_earlier_version(tmp_path: Path) -> None:
    assert read_start_offset(tmp_path) is None
    write_start_offset(tmp_path, 151)
    assert read_start_offset(tmp_path) == StoredStart(151, is_checked=True)
    (tmp_path / "log-start-offset").write_bytes(b"152\n")
    assert read_start_offset(tmp_path) == StoredStart(152, is_checked=False)


@pytest.mark.parametrize("offset", [0, 10**18, 2**63 - 1])
def test_every_offset_is_a_start_offset(tmp_path: Path, offset: int) -> None:
    write_start_offset(tmp_path, offset)
    assert read_start_offset(tmp_path) == StoredStart(offset, is_checked=True)


@pytest.mark.parametrize("content", [b"", b"-1", b"1.5", b"1 2", str(2**63).encode(), b"0" * 20, b"9" * 19])
def test_other_numbers_are_no_start_offset(tmp_path: Path, content: bytes) -> None:
    write_checked(tmp_path / "log-start-offset", content)
    with pytest.raises(DamagedFile, match="it does not hold an offset"):
        read_start_offset(tmp_path)


def test_the_end_of_a_block_of_producer_ids_requires_a_checksum(tmp_path: Path) -> None:
    assert read_block_end(tmp_path) is None
    write_block_end(tmp_path, 5000)
    assert read_block_end(tmp_path) == 5000
    (tmp_path / "producer-ids").write_bytes(b"5000")
    with pytest.raises(DamagedFile):
        read_block_end(tmp_path)
    for content in (b"", b"-5", b"5x"):
        write_checked(tmp_path / "producer-ids", content)
        with pytest.raises(DamagedFile):
            read_block_end(tmp_path)


def a_segment(directory: Path, base_offset: int, size_bytes: int) -> Segment:
    segment = Segment(directory, base_offset, 0, size_bytes)
    segment.has_confirmed_times, segment.index_checksums = True, (1, 2)
    segment.largest_timestamp, segment.largest_timestamp_offset = 700 + base_offset, base_offset + 1
    return segment


def test_the_manifest_contains_the_end_and_the_times_of_each_segment(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == []
    segments = [a_segment(tmp_path, 0, 50), a_segment(tmp_path, 10, 60), a_segment(tmp_path, 30, 0)]
    write_manifest(tmp_path, segments, 30)
    assert read_manifest(tmp_path) == [
        Row(0, 10, 50, 700, 1, False, (1, 2)),
        Row(10, 30, 60, 710, 11, False, (1, 2)),
    ]


@pytest.mark.parametrize("unknown", ["times", "checksums"])
def test_unconfirmed_times_are_not_in_the_manifest(tmp_path: Path, unknown: str) -> None:
    segment = a_segment(tmp_path, 10, 60)
    segment.is_damaged = True
    if unknown == "times":
        segment.has_confirmed_times = False
    else:
        segment.index_checksums = None
    write_manifest(tmp_path, [segment], 30)
    assert read_manifest(tmp_path) == [Row(10, 30, 0, -1, 10, True, None)]


def test_a_manifest_without_a_checksum_or_with_other_content_is_damaged(tmp_path: Path) -> None:
    for content in (b"{}", b"[[1]]", b"no json"):
        write_checked(tmp_path / "segments", content)
        with pytest.raises(DamagedFile):
            read_manifest(tmp_path)
    (tmp_path / "segments").write_bytes(b"[]")
    with pytest.raises(DamagedFile):
        read_manifest(tmp_path)


def test_the_manifest_confirms_the_times_of_sealed_segments_of_the_same_size(tmp_path: Path) -> None:
    same, longer, last = (Segment(tmp_path, base, 0, size) for base, size in ((0, 50), (10, 61), (30, 70)))
    missing = Row(20, 30, 9, 1, 20, False, None)
    rows = [
        Row(0, 10, 50, 700, 1, True, (1, 2)),
        Row(10, 20, 60, 710, 11, False, (3, 4)),
        missing,
        Row(30, 40, 70, 730, 31, False, (5, 6)),
    ]
    assert describe([same, longer, last], rows) == [missing]
    assert [segment.index_checksums for segment in (same, longer, last)] == [(1, 2), (3, 4), (5, 6)]
    assert [segment.has_confirmed_times for segment in (same, longer, last)] == [True, False, False]
    assert [segment.largest_timestamp for segment in (same, longer, last)] == [700, -1, -1]
    assert (same.largest_timestamp_offset, same.is_damaged, longer.is_damaged) == (1, True, False)


def test_a_hold_survives_a_restart_and_ends_per_topic(tmp_path: Path) -> None:
    hold = RetentionHold(tmp_path)
    hold.load()
    assert not hold.covers(TOPIC)
    hold.place({TOPIC: "a", OTHER: "b"})
    again = RetentionHold(tmp_path)
    again.load()
    assert again.covers(TOPIC)
    again.release(TOPIC)
    again.release(TOPIC)
    assert not again.covers(TOPIC)
    assert again.covers(OTHER)
    last = RetentionHold(tmp_path)
    last.load()
    assert (last.covers(TOPIC), last.covers(OTHER)) == (False, True)
    last.release(OTHER)
    assert not (tmp_path / "retention-hold").exists()


def test_removing_the_file_releases_all_topics(tmp_path: Path) -> None:
    hold = RetentionHold(tmp_path)
    hold.refresh()
    hold.place({TOPIC: "a"})
    hold.refresh()
    assert hold.covers(TOPIC)
    (tmp_path / "retention-hold").unlink()
    hold.refresh()
    assert not hold.covers(TOPIC)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"topics": 1}', b"no json"])
def test_a_damaged_hold_covers_every_topic(tmp_path: Path, content: bytes) -> None:
    write_checked(tmp_path / "retention-hold", content)
    hold = RetentionHold(tmp_path)
    hold.load()
    hold.refresh()
    assert hold.covers(TOPIC)
    (tmp_path / "retention-hold").unlink()
    hold.refresh()
    assert not hold.covers(TOPIC)


def test_a_hold_without_a_checksum_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "retention-hold").write_text(json.dumps({"topics": {}}))
    hold = RetentionHold(tmp_path)
    hold.load()
    assert hold.covers(TOPIC)


def test_a_hold_that_is_not_stored_lasts_and_is_stored_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageError("no room", errno.ENOSPC)

    hold = RetentionHold(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(retention_hold, "write_checked", full)
        hold.place({TOPIC: "a"})
        hold.refresh()
        assert hold.covers(TOPIC)
    assert not (tmp_path / "retention-hold").exists()
    hold.refresh()
    assert hold.covers(TOPIC)
    assert (tmp_path / "retention-hold").exists()


def identity_of(directory: Path, partitions: list[Path] | None = None, *, stopped_cleanly: bool = True) -> Identity:
    def store(action: Callable[[], object]) -> None:
        action()

    return read_identity(directory, partitions or [], stopped_cleanly=stopped_cleanly, store=store)


def test_a_new_directory_gets_an_id_in_kafkas_format(tmp_path: Path) -> None:
    identity = identity_of(tmp_path)
    assert identity.unclean_starts == 0
    assert len(identity.cluster_id) == 22
    assert identity.cluster_id.replace("-", "").replace("_", "").isalnum()
    assert identity_of(tmp_path) == identity
    assert (tmp_path / "meta.json").read_bytes() == (tmp_path / "meta.copy.json").read_bytes()


def test_each_unclean_start_is_counted(tmp_path: Path) -> None:
    first = identity_of(tmp_path)
    for count in (1, 2):
        assert identity_of(tmp_path, stopped_cleanly=False) == Identity(first.cluster_id, count)
    (tmp_path / "meta.json").unlink()
    assert identity_of(tmp_path) == Identity(first.cluster_id, 2)
    assert (tmp_path / "meta.json").exists()


@pytest.mark.parametrize("behind", ["meta.json", "meta.copy.json"])
def test_the_larger_count_of_both_files_counts(tmp_path: Path, behind: str) -> None:
    identity_of(tmp_path)
    older = (tmp_path / behind).read_bytes()
    newer = identity_of(tmp_path, stopped_cleanly=False)
    (tmp_path / behind).write_bytes(older)
    assert identity_of(tmp_path) == newer
    assert (tmp_path / behind).read_bytes() != older


@pytest.mark.parametrize(
    "meta",
    [
        [],
        {},
        {"cluster_id": "", "unclean_starts": 0},
        {"cluster_id": 5, "unclean_starts": 0},
        {"cluster_id": "x"},
        {"cluster_id": "x", "unclean_starts": -1},
        {"cluster_id": "x", "unclean_starts": True},
    ],
)
def test_an_invalid_identity_is_replaced_by_the_other_file(tmp_path: Path, meta: object) -> None:
    identity = identity_of(tmp_path)
    write_checked(tmp_path / "meta.json", json.dumps(meta).encode())
    assert identity_of(tmp_path) == identity


def test_a_lost_identity_skips_epochs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    partitions = [tmp_path / name for name in ("a-0", "a-1", "a-2")]
    for partition in partitions:
        partition.mkdir()
    write_epochs(partitions[0], [(3, 0), (8, 20)])
    write_epochs(partitions[1], [(5, 0)])
    (partitions[2] / "leader-epochs").write_bytes(b"damaged")
    with caplog.at_level(logging.ERROR):
        identity = identity_of(tmp_path, partitions)
    assert identity.unclean_starts == 8 + lost_epochs_skipped
    assert identity.cluster_id in caplog.text
    (tmp_path / "meta.json").unlink()
    (tmp_path / "meta.copy.json").unlink()
    assert identity_of(tmp_path, partitions[2:]).unclean_starts == lost_epochs_skipped
