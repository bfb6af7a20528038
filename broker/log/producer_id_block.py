"""A file with the end of the last block of producer ids. The metadata journal stores it too."""

from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked

_NAME = "producer-ids"


def write_block_end(directory: Path, end: int) -> None:
    """Write the end of the block durably. Raises StorageError."""
    write_checked(directory / _NAME, str(end).encode())


def read_block_end(directory: Path) -> int | None:
    """Return the end of the block, or None if the file does not exist. Raises DamagedFile."""
    path = directory / _NAME
    stored = read_checked(path)
    if stored is None:
        return None
    # Every version writes this file with a checksum.
    if not stored.is_checked or not stored.content.isdigit():
        raise DamagedFile(path)
    return int(stored.content)
