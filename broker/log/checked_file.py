"""Small files with a checksum, for all state that controls deletion or identity.

A file starts with the line `headgate-crc32c <eight hex digits>`. The content that the checksum covers follows. The line
comes first, so a truncated file still has it and fails the check. Files from before this format lack the line. Their
reader validates the content instead. A damaged first line fails that validation.
"""

import os
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from headgate.broker.log.files import replace_file
from headgate.broker.log.open_files import open_files
from headgate.broker.runtime.errors import StorageError

_MARK = b"headgate-crc32c "
_HEAD_BYTES = len(_MARK) + 8 + 1


class DamagedFile(Exception):
    """The content of a file does not match its checksum or has an invalid format."""

    def __init__(self, path: Path, reason: str = "the checksum does not match the content") -> None:
        super().__init__(f"{path.parent.name}/{path.name} is damaged: {reason}")


class Stored(NamedTuple):
    content: bytes
    is_checked: bool
    """False for a file from before checksums."""


def read_checked(path: Path) -> Stored | None:
    """Return the file's content, or None if the file does not exist.

    Raises DamagedFile if the checksum does not match. Raises StorageError if the file is unreadable.
    """
    try:
        with open(open_files.open(path, os.O_RDONLY), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path.parent.name}/{path.name}: {error.strerror}", error.errno) from error
    if not data.startswith(_MARK):
        return Stored(data, is_checked=False)
    content = data[_HEAD_BYTES:]
    if data[:_HEAD_BYTES] != _head(content):
        raise DamagedFile(path)
    return Stored(content, is_checked=True)


def write_checked(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace the file atomically. Raises StorageError."""
    replace_file(path, _head(content) + content, durable=durable)


def _head(content: bytes) -> bytes:
    return _MARK + f"{crc32c(content):08x}\n".encode()
