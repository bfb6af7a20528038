"""Compiled code on disk, one file per kernel.

Code from disk is executed, so it is a trust boundary. A file is used only if the file and its directory belong to this
user or to root, and nobody else can write to them. A checksum, which includes the key and the kernel, detects damaged
and exchanged files. All other files are ignored.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from headgate.serdes.columnar.native.code_key import code_key

DIRECTORY_VARIABLE: Final = "HEADGATE_CODE_DIR"
"""The environment variable that replaces the default directories."""

CODE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Larger files are not ours: the largest kernel has 60 kB."""

ROOT: Final = 0
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
DIGEST_BYTES: Final = 32
LOCK_NAME: Final = "lock"


def directories() -> list[Path]:
    """Where code is searched. New code is stored in the first directory that is writable.

    The directory next to the sources becomes part of a packed environment or a container image.
    """
    given = os.environ.get(DIRECTORY_VARIABLE)
    if given:
        return [Path(given)]
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    places = [Path(__file__).parent / "__pycache__" / "machine_code"]
    with suppress(RuntimeError):  # no home directory
        places.append(Path(home).expanduser() / "headgate" / "machine_code")
    return places


def seal(kernel: str, code: bytes) -> bytes:
    """The code with its checksum, as it is stored and sent to executors."""
    return _digest(kernel, code) + code


def unseal(kernel: str, sealed: bytes) -> bytes | None:
    """The code, or None if it is damaged, or compiled for another kernel, version or platform."""
    digest, code = sealed[:DIGEST_BYTES], sealed[DIGEST_BYTES:]
    return code if digest == _digest(kernel, code) else None


def _digest(kernel: str, code: bytes) -> bytes:
    return sha256(f"{code_key()}\n{kernel}\n".encode() + code).digest()


def read_sealed(kernel: str) -> bytes | None:
    """The stored code with its checksum, or None if there is no code that fits and can be trusted."""
    return _found(kernel)[1]


def place_of(kernel: str) -> Path | None:
    """The directory of the code that `read_sealed` returns."""
    return _found(kernel)[0]


def _found(kernel: str) -> tuple[Path, bytes] | tuple[None, None]:
    for directory in directories():
        with suppress(OSError):
            sealed = _read_trusted(directory, _file_name(kernel))
            if sealed is not None and unseal(kernel, sealed) is not None:
                return directory, sealed
    return None, None


def write_sealed(directory: Path, kernel: str, sealed: bytes) -> None:
    """Atomic replace: write a temporary file and rename it. Raises `OSError`."""
    handle, temporary = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(sealed)
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, directory / _file_name(kernel))
    except OSError:
        os.unlink(temporary)
        raise


def writable_directory() -> Path | None:
    """The first directory that can be created and written, and that `read_sealed` trusts."""
    for directory in directories():
        with suppress(OSError):
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            if directory.stat().st_uid == os.geteuid():
                directory.chmod(0o755)
            if _is_trusted(directory.stat()):
                with tempfile.TemporaryFile(dir=directory):
                    return directory
    return None


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Only one process of a machine compiles. The others wait here. The lock ends with the process."""
    import fcntl

    with open(directory / LOCK_NAME, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _file_name(kernel: str) -> str:
    return f"{kernel}-{code_key()[:16]}.code"


def _read_trusted(directory: Path, name: str) -> bytes | None:
    if not _is_trusted(directory.stat()):
        return None
    with open(os.open(directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or not _is_trusted(found) or found.st_size > CODE_BYTES_MAX:
            return None
        return file.read()


def _is_trusted(found: os.stat_result) -> bool:
    return found.st_uid in (ROOT, os.geteuid()) and not found.st_mode & OTHERS_WRITE
