"""The leader epochs of a partition and the first offset of each (KIP-101).

On disk: one `epoch offset` pair per line.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked

_LINES = re.compile(rb"([0-9]{1,10} [0-9]{1,19}\n)*")


def write_epochs(directory: Path, epochs: list[tuple[int, int]]) -> None:
    """Write the epochs without an fsync. Recovery reads epochs lost in a power cut from the batches."""
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
    write_checked(directory / "leader-epochs", lines.encode(), durable=False)


def read_epochs(directory: Path) -> list[tuple[int, int]]:
    """Return the stored epochs, or an empty list without a file. Raises DamagedFile."""
    path = directory / "leader-epochs"
    stored = read_checked(path)
    if stored is None:
        return []
    if not _LINES.fullmatch(stored.content):
        raise DamagedFile(path, "it does not hold pairs of epoch and offset")
    pairs = [line.split() for line in stored.content.splitlines()]
    return [(int(epoch), int(offset)) for epoch, offset in pairs]


def end_of_epoch(
    epoch: int, epochs: Sequence[tuple[int, int]], current: tuple[int, int], log_start_offset: int
) -> tuple[int, int]:
    """Return (largest epoch at or before `epoch`, first offset after it).

    `current` is (current epoch, log end offset). If `epoch` precedes all epochs in the log, the result is `epoch` and
    the log start offset.
    """
    entries = list(epochs)
    if not entries or entries[-1][0] < current[0]:
        entries.append(current)
    # Of the epochs that begin at or before the log start offset, only the last one still has records.
    gone = sum(start <= log_start_offset for _, start in entries)
    entries = entries[max(gone - 1, 0) :]
    position = bisect_right(entries, epoch, key=lambda entry: entry[0])
    found = entries[position - 1][0] if position else epoch
    end = entries[position][1] if position < len(entries) else current[1]
    return found, max(end, log_start_offset)


def epoch_at(offset: int, epochs: Sequence[tuple[int, int]]) -> int:
    """Return the epoch in which `offset` was written, or -1 if it is unknown."""
    position = bisect_right(epochs, offset, key=lambda entry: entry[1])
    return epochs[position - 1][0] if position else -1
