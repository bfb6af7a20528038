"""System calls that exist only on some operating systems, with portable replacements, for example for macOS.

The broker uses these features if Python provides them: epoll, fdatasync, sendfile, pwritev, posix_fallocate, RWF_NOWAIT
and the boot id in /proc. The environment variable HEADGATE_BROKER_PORTABLE=1 disables all of them.
"""

import fcntl
import os
import select
from pathlib import Path
from typing import Final

PORTABLE_VARIABLE: Final = "HEADGATE_BROKER_PORTABLE"

_IS_PORTABLE: Final = os.environ.get(PORTABLE_VARIABLE) == "1"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

# Without sendfile: the maximum number of bytes copied from a file to a socket at a time.
copied_bytes_max = 256 * 1024


def _has(module: object, name: str) -> bool:
    return not _IS_PORTABLE and hasattr(module, name)


HAS_EPOLL: Final = _has(select, "epoll")
HAS_FDATASYNC: Final = _has(os, "fdatasync")
HAS_FALLOCATE: Final = _has(os, "posix_fallocate")
HAS_PWRITEV: Final = _has(os, "pwritev")
HAS_SENDFILE: Final = _has(os, "sendfile")
RWF_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None) if _has(os, "preadv") else None

# On macOS, fsync does not flush the disk cache. F_FULLFSYNC does.
_F_FULLFSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def sync_file(descriptor: int) -> None:
    """Flush the content of a file to the disk. Raises OSError."""
    if HAS_FDATASYNC:
        os.fdatasync(descriptor)
    else:
        sync_file_and_metadata(descriptor)


def sync_file_and_metadata(descriptor: int) -> None:
    """Flush the content and the metadata of a file to the disk. Raises OSError."""
    if _F_FULLFSYNC is not None:
        fcntl.fcntl(descriptor, _F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def write_at(descriptor: int, head: bytes, rest: memoryview, position: int) -> int:
    """Write both parts at `position`. Returns the number of bytes written. Raises OSError."""
    if HAS_PWRITEV:
        return os.pwritev(descriptor, (head, rest), position)
    return os.pwrite(descriptor, b"".join((head, rest)), position)


def send_file(socket_descriptor: int, descriptor: int, position: int, length: int) -> int:
    """Send bytes of a file to a socket. Returns the number of bytes sent. Raises OSError."""
    if HAS_SENDFILE:
        return os.sendfile(socket_descriptor, descriptor, position, length)
    content = os.pread(descriptor, min(length, copied_bytes_max), position)
    return os.write(socket_descriptor, content) if content else 0


def allocate(descriptor: int, size_bytes: int) -> None:
    """Allocate disk space for an empty file. Raises OSError."""
    if HAS_FALLOCATE:
        os.posix_fallocate(descriptor, 0, size_bytes)
    else:
        os.pwrite(descriptor, bytes(size_bytes), 0)


def boot_id() -> str:
    """Return the id of the machine's last boot, or `unknown`."""
    try:
        return "unknown" if _IS_PORTABLE else _BOOT_ID.read_text().strip()
    except OSError:
        return "unknown"
