"""Allocation of producer ids."""

import pytest

from headgate.broker.state.producer_ids import (
    ProducerIds,
    block_ids,
    ends_agree,
    far_ahead,
    ids_per_ms,
    largest_seen,
    seen_id_max,
    skipped_ids,
)


def test_ids_are_allocated_in_blocks_and_never_twice() -> None:
    sizes: list[int] = []

    def allocate(size: int) -> range:
        sizes.append(size)
        return range(size * len(sizes), size * (len(sizes) + 1))

    ids = ProducerIds(allocate)
    assert sizes == []
    assert [ids.take() for _ in range(2 * block_ids + 1)] == list(range(block_ids, 3 * block_ids + 1))
    assert sizes == [block_ids] * 3


@pytest.mark.parametrize(
    ("journal_end", "file_end", "agree"),
    [
        (None, None, True),
        (None, 1000, True),
        (1000, None, False),
        (1000, 1000, True),
        (1000, 2000, True),
        (2000, 1000, False),
    ],
)
def test_the_file_is_never_behind_the_journal(journal_end: int | None, file_end: int | None, agree: bool) -> None:
    assert ends_agree(journal_end, file_end) is agree


def test_ids_that_a_client_made_up_do_not_use_up_the_range() -> None:
    assert largest_seen([]) == -1
    assert largest_seen([3, 9, 4]) == 9
    assert largest_seen([3, seen_id_max, seen_id_max + 1]) == seen_id_max
    assert largest_seen([seen_id_max + 1]) == -1


def test_in_doubt_allocation_continues_after_all_ids_in_use() -> None:
    assert far_ahead([], -1, 0) == skipped_ids == 2**40
    assert far_ahead([2000, 5000], 41, 0) == 5000 + skipped_ids
    assert far_ahead([5], 41, 0) == 42 + skipped_ids
    now_ms = 1_700_000_000_000
    assert far_ahead([5], 41, now_ms) == now_ms * ids_per_ms
    assert far_ahead([now_ms * ids_per_ms], 41, now_ms) == now_ms * ids_per_ms + skipped_ids
