"""The child process that compiles: `python -m headgate.serdes.columnar.native.compile_process <kernel>…`.

Writes each kernel to stdout as soon as it is ready: its name and size in one line, then the code with its checksum. It
also stores the code, unless no directory is writable. If the parent ends early, the process still completes the store,
so that the next process need not compile. Only one process of a machine compiles; others wait and read the stored code.
"""

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from headgate.serdes.columnar.native.code_store import locked, read_sealed, seal, writable_directory, write_sealed

SECONDS_MAX: Final = 600
"""The process ends after this time, for example if another process holds the lock."""


def main(kernels: list[str]) -> None:
    signal.alarm(SECONDS_MAX)
    directory = writable_directory()
    with locked(directory) if directory is not None else nullcontext():
        for kernel in kernels:
            sealed = read_sealed(kernel) or _compiled(kernel, directory)
            if not _send(kernel, sealed) and directory is None:
                return


def _compiled(kernel: str, directory: Path | None) -> bytes:
    from headgate.serdes.columnar.native.compiler import object_code  # needs Numba

    sealed = seal(kernel, object_code(kernel))
    if directory is not None:
        write_sealed(directory, kernel, sealed)
    return sealed


def _send(kernel: str, sealed: bytes) -> bool:
    """Returns whether the parent still reads."""
    try:
        sys.stdout.buffer.write(f"{kernel} {len(sealed)}\n".encode() + sealed)
        sys.stdout.buffer.flush()
    except OSError:
        # Otherwise Python reports the unsent bytes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
