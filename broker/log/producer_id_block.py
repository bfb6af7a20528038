"""The end of the last block of producer ids, in a file next to the metadata journal that holds it too."""

from pathlib import Path

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked

_NAME = "producer-ids"


def write_block_end(directory: Path, end: int) -> None:
    """Durable when it returns. Raises StorageError."""
    write_checked(directory / _NAME, str(end).encode())


def read_block_end(directory: Path) -> int | None:
    """None if there is no such file. Raises DamagedFile."""
    path = directory / _NAME
    stored = read_checked(path)
    if stored is None:
        return None
    # Never written without a checksum.
    if not stored.is_checked or not stored.content.isdigit():
        raise DamagedFile(path)
    return int(stored.content)
