"""A pseudo-terminal for `headgate`, 100 columns wide."""

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

POLL_SECONDS = 0.01
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    def __init__(self, master: int, path: str) -> None:
        self._master = master
        self.path = path

    def during(self, command: Callable[[], int]) -> tuple[int, str]:
        """The exit code of the command and everything that it shows. A terminal that nobody reads would block it."""
        parts: list[bytes] = []
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(command)
            while not running.done():
                self._read(parts)
                wait([running], POLL_SECONDS)
        self._read(parts)
        return running.result(), b"".join(parts).decode().replace("\r\n", "\n")

    def _read(self, parts: list[bytes]) -> None:
        with suppress(BlockingIOError):
            while True:
                parts.append(os.read(self._master, 65536))


def shown_lines(text: str) -> list[str]:
    """The lines with text, without colours and trailing blanks."""
    return [line.rstrip() for line in _STYLE.sub("", text).splitlines() if line.strip()]


@contextmanager
def terminal() -> Iterator[Terminal]:
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        os.set_blocking(master, False)
        yield Terminal(master, os.ttyname(slave))
    finally:
        os.close(slave)
        os.close(master)
