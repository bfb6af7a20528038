"""The log start offset of a partition on disk: everything before it is deleted.

Deletion writes the offset before it removes segments. A crash in between leaves files to remove, never a gap. A full
disk is the exception (`broker.log.log_deletion`).
"""

from pathlib import Path
from typing import NamedTuple

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked

_NAME = "log-start-offset"

# Kafka offsets are signed 64-bit integers.
offset_max = 2**63 - 1


class StoredStart(NamedTuple):
    offset: int
    is_checked: bool


def write_start_offset(directory: Path, offset: int) -> None:
    write_checked(directory / _NAME, str(offset).encode())


def read_start_offset(directory: Path) -> StoredStart | None:
    """Return the stored offset, or None if the file does not exist. Raises DamagedFile."""
    path = directory / _NAME
    stored = read_checked(path)
    if stored is None:
        return None
    digits = stored.content.strip()
    if not digits.isdigit() or len(digits) > 19 or int(digits) > offset_max:
        raise DamagedFile(path, "it does not hold an offset")
    return StoredStart(int(digits), stored.is_checked)
