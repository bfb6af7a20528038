"""The file of the registry: created with owner permissions, and locked against a second process."""

import fcntl
import logging
import os
from pathlib import Path
from typing import Any, Final

from headgate.registry.errors import StoreFailed

_LOG: Final = logging.getLogger(__name__)


def prepare(path: Path) -> None:
    """Create the directory and the file with owner permissions. Raises StoreFailed.

    SQLite's -wal and -shm files get the mode of the database file.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        mode = path.parent.stat().st_mode & 0o777
    except OSError as error:
        raise StoreFailed(f"The registry's file {path} cannot be opened: {error.strerror}") from error
    if mode & 0o077:
        _LOG.warning(
            "Other users can access the data directory %s (mode %04o). To change it: chmod -R go= %s",
            path.parent,
            mode,
            path.parent,
        )


def locked(path: Path) -> Any:
    """Lock a file next to `path`. Two processes with the same store would return stale responses."""
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    file = os.fdopen(descriptor, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreFailed(f"The registry's file {path.name} is in use by another process") from None
    return file
