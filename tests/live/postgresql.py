"""A PostgreSQL server on loopback with its own data directory, from the system package."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

START_SECONDS_MAX = 60.0


class PostgresqlUnavailable(RuntimeError):
    """PostgreSQL is not installed, or initdb failed. The message states the cause."""


def programs() -> Path:
    """Return the folder of initdb and postgres. Debian does not add it to PATH."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        raise PostgresqlUnavailable("PostgreSQL is not installed (make system installs it)")
    return versions[-1].parent


class PostgresqlServer:
    """One server with one user, `postgres`, that needs no password on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Only the current user can access the folders of the test run, and PostgreSQL refuses to run as root.
        self._data = Path(tempfile.mkdtemp(prefix="headgate-postgresql-"))
        self.port = free_port()
        self.process: ServerProcess | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        bin_ = programs()
        data = self._data
        prefix = self._as_somebody(data)
        command = [*prefix, str(bin_ / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8"]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise PostgresqlUnavailable(f"initdb failed: {done.stdout[-500:]}{done.stderr[-500:]}")
        # Disable fsync: a test server needs no durability.
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = [*prefix, str(bin_ / "postgres"), "-D", str(data), "-p", str(self.port), *options]
        self.process = ServerProcess(server, self.folder / "postgresql.log", cwd=Path("/"))
        self.process.start(lambda: accepts(f"127.0.0.1:{self.port}"), START_SECONDS_MAX)

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
        shutil.rmtree(self._data, ignore_errors=True)

    def _as_somebody(self, data: Path) -> list[str]:
        """Return a command prefix that switches to an unprivileged user, because PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return []
        setpriv = shutil.which("setpriv")
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            user = pwd.getpwnam("nobody")
        if setpriv is None:
            raise PostgresqlUnavailable("setpriv, to run PostgreSQL as somebody else than root, is not there")
        os.chown(data, user.pw_uid, user.pw_gid)
        return [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
