"""Leader epochs: the end of an epoch (KIP-101), the epoch of an offset, and the file."""

from pathlib import Path

import pytest

from headgate.broker.log.checked_file import DamagedFile, write_checked
from headgate.broker.log.leader_epochs import end_of_epoch, epoch_at, read_epochs, write_epochs

EPOCHS = [(2, 0), (4, 10), (5, 25)]


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, (0, 0)), (1, (1, 0)), (2, (2, 10)), (3, (2, 10)), (4, (4, 25)), (5, (5, 40))]
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, expected: tuple[int, int]) -> None:
    assert end_of_epoch(epoch, EPOCHS, (5, 40), 0) == expected


@pytest.mark.parametrize(("epoch", "expected"), [(4, (4, 25)), (5, (5, 40)), (6, (5, 40)), (7, (7, 40)), (8, (7, 40))])
def test_an_epoch_without_records_begins_at_the_log_end(epoch: int, expected: tuple[int, int]) -> None:
    assert end_of_epoch(epoch, EPOCHS, (7, 40), 0) == expected


def test_a_log_without_records_has_only_the_current_epoch() -> None:
    assert end_of_epoch(3, [], (3, 8), 8) == (3, 8)
    assert end_of_epoch(2, [], (3, 8), 8) == (2, 8)


@pytest.mark.parametrize(("epoch", "expected"), [(2, (2, 0)), (3, (3, 8)), (4, (3, 8))])
def test_a_log_of_one_epoch_ends_with_it(epoch: int, expected: tuple[int, int]) -> None:
    assert end_of_epoch(epoch, [(3, 0)], (3, 8), 0) == expected


@pytest.mark.parametrize(
    ("log_start_offset", "epoch", "expected"),
    [
        (9, 2, (2, 10)),
        (9, 1, (1, 9)),
        (10, 2, (2, 10)),
        (10, 3, (3, 10)),
        (10, 4, (4, 25)),
        (11, 2, (2, 11)),
        (11, 3, (3, 11)),
        (24, 4, (4, 25)),
        (25, 4, (4, 25)),
        (26, 4, (4, 26)),
        (26, 5, (5, 40)),
        (40, 5, (5, 40)),
    ],
)
def test_epochs_before_the_log_start_are_gone(log_start_offset: int, epoch: int, expected: tuple[int, int]) -> None:
    assert end_of_epoch(epoch, EPOCHS, (5, 40), log_start_offset) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (9, 2), (10, 4), (24, 4), (25, 5), (99, 5)])
def test_an_offset_belongs_to_the_last_epoch_that_begins_before_it(offset: int, epoch: int) -> None:
    assert epoch_at(offset, EPOCHS) == epoch


def test_an_offset_before_all_epochs_has_none() -> None:
    assert epoch_at(4, [(3, 5)]) == -1
    assert epoch_at(5, [(3, 5)]) == 3
    assert epoch_at(0, []) == -1


def test_the_file_contains_one_pair_per_line(tmp_path: Path) -> None:
    assert read_epochs(tmp_path) == []
    write_epochs(tmp_path, EPOCHS)
    assert (tmp_path / "leader-epochs").read_bytes().splitlines()[1:] == [b"2 0", b"4 10", b"5 25"]
    assert read_epochs(tmp_path) == EPOCHS
    write_epochs(tmp_path, [])
    assert read_epochs(tmp_path) == []


def test_the_largest_numbers_are_read(tmp_path: Path) -> None:
    write_epochs(tmp_path, [(2**31 - 1, 2**63 - 1)])
    assert read_epochs(tmp_path) == [(2**31 - 1, 2**63 - 1)]


@pytest.mark.parametrize("content", [b"1", b"1 2", b"1 2 3\n", b"-1 2\n", b"a 2\n", b"1 2\n\n", b"12345678901 2\n"])
def test_other_content_is_damage(tmp_path: Path, content: bytes) -> None:
    write_checked(tmp_path / "leader-epochs", content)
    with pytest.raises(DamagedFile, match="leader-epochs is damaged"):
        read_epochs(tmp_path)
