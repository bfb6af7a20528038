"""Allocates unique producer ids in blocks of a thousand, so that one write to the disk serves a thousand producers.

An id that is allocated twice loses records: the broker treats batches of the second producer as duplicates.
The end of the last block is therefore stored twice, in the metadata journal and in the file `producer-ids`. If the two
differ, or if one is damaged, allocation continues far ahead.
"""

from collections.abc import Callable, Iterable

# Kafka's own block size. A crash wastes the rest of a block, which 63 bits can afford.
block_ids = 1000

# Ids skipped when the end of the last block is in doubt. More than any broker allocates.
skipped_ids = 2**40

# Clients can write with ids that they made up. Larger ones do not move the start, so that no client uses up the range.
seen_id_max = 2**61

# Ids per millisecond of the wall clock. When in doubt, ids also start at this multiple of the time, so that two starts
# that both lost everything differ. Live producers, proxies and stored idempotency keys hold ids that no scan can find.
ids_per_ms = 4096


class ProducerIds:
    def __init__(self, allocate: Callable[[int], range]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))

    def take(self) -> int:
        """Raises StorageError when a new block cannot be made durable."""
        taken = next(self._block, None)
        if taken is None:
            self._block = iter(self._allocate(block_ids))
            taken = next(self._block)
        return taken


def ends_agree(journal_end: int | None, file_end: int | None) -> bool:
    """Whether the two places can stem from one undisturbed history. The file is written before the journal."""
    return journal_end is None or (file_end is not None and file_end >= journal_end)


def largest_seen(ids: Iterable[int]) -> int:
    """Return the largest id that producers have written with, or -1."""
    return max((each for each in ids if each <= seen_id_max), default=-1)


def far_ahead(known_ends: Iterable[int], seen: int, now_ms: int) -> int:
    """Return a first id after every id that can have been allocated. `seen` is the result of `largest_seen`."""
    return max(max([seen + 1, *known_ends]) + skipped_ids, now_ms * ids_per_ms)
