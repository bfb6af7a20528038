"""Finds the process that listens on a TCP port, from /proc (proc(5)). Finds nothing on systems without /proc."""

import os
from pathlib import Path

_LISTEN = "0A"


def port_owner(port: int) -> str | None:
    """A description of the process that listens on `port`: `process 4711 (python -m headgate.broker ...)`."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _holds(process, sockets):
            return f"process {process.name} ({_command(process)})"
    return None


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == _LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(columns[9])
    return inodes


def _holds(process: Path, sockets: set[str]) -> bool:
    try:
        return any(os.readlink(descriptor) in sockets for descriptor in (process / "fd").iterdir())
    except OSError:
        # A process of another user, or one that has exited.
        return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "?"
    text = " ".join([os.path.basename(words[0]), *words[1:]]).strip()
    return text if len(text) <= 80 else text[:77] + "..."
