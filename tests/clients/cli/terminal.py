"""A pseudo-terminal for `headgate`, 100 columns wide."""

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    def __init__(self, master: int, path: str) -> None:
        self._master = master
        self.path = path

    def shown(self) -> str:
        """Everything that was written since the last call."""
        parts = []
        while True:
            try:
                parts.append(os.read(self._master, 65536))
            except BlockingIOError:
                return b"".join(parts).decode().replace("\r\n", "\n")


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
