"""Why `headgate up` does not start or does not keep running: what failed, why, and what to try."""

import errno
import os
import signal
from importlib.util import find_spec
from pathlib import Path

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.compose import CannotListen, NoReachableAddress, port_of
from headgate.gateway.port_owner import port_owner
from headgate.gateway.settings.model import ServiceName, Settings
from headgate.gateway.supervisor import ServiceDied

# Enough for the end of a traceback.
shown_lines_max = 10


def need_server_extra() -> None:
    """Raises CommandError if the libraries of the services are not installed."""
    if missing := [name for name in ("fastapi", "fastavro", "uvicorn") if find_spec(name) is None]:
        raise CommandError(
            "the services are not installed",
            why=f"{', '.join(missing)} not found: the base install has only the commands and the clients",
            next_step="pip install 'headgate[server]' (uvx: uvx --from 'headgate[server]' headgate up)",
        )


def prepare_data_dir(data_dir: Path) -> None:
    """Create the data directory. Raises CommandError if it cannot be written."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = data_dir / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        for folder in (data_dir, *(data_dir / name for name in ServiceName)):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"{folder} is not writable for this user")
    except OSError as error:
        why = "it is a file, not a directory" if isinstance(error, FileExistsError) else str(error.strerror)
        raise CommandError(
            f"cannot use data directory {data_dir}", why=why, next_step="choose another directory: --data-dir DIR"
        ) from error


def address_error(error: CannotListen | NoReachableAddress, settings: Settings) -> CommandError:
    if isinstance(error, NoReachableAddress):
        return CommandError(
            f"the broker has no address to advertise on {settings.host}",
            why=f"Kafka clients connect to the advertised address, and this machine has no route to others: {error}",
            next_step="--host ADDRESS, or --set advertised.listeners=PLAINTEXT://ADDRESS:PORT",
        )
    name, port, cause = error.name, error.port, error.__cause__
    assert isinstance(cause, OSError)
    other = f"--{name}-port {port + 10000 if port < 50000 else 0}"
    match cause.errno:
        case errno.EADDRINUSE:
            owner = port_owner(port) or "another program"
            if [port_of(each, settings) for each in settings.only].count(port) > 1:
                owner = "another service of this command"
            return CommandError(
                f"the {name} cannot listen on port {port}: it is in use",
                why=f"{owner} uses it",
                next_step=f"stop it, or choose another port: {other}",
            )
        case errno.EACCES:
            return CommandError(
                f"the {name} cannot listen on port {port}: permission denied",
                why="only root, or a process with CAP_NET_BIND_SERVICE, listens on ports below 1024",
                next_step=f"choose another port: {other}",
            )
    return CommandError(
        f"the {name} cannot listen on {settings.host}",
        why=f"this machine has no such address: {str(cause.strerror).partition(' (while')[0]}",
        next_step="--host 127.0.0.1 for this machine only, --host 0.0.0.0 for all its addresses",
    )


def explained(death: ServiceDied, settings: Settings) -> CommandError:
    """Derive the cause of a failure from the last log lines of the service."""
    said = "\n".join(death.tail)
    if "is in use by another process" in said:
        return CommandError(
            f"the data directory {settings.data_dir} is in use",
            why="another Headgate runs on it",
            next_step="stop it, or choose another directory: --data-dir DIR",
        )
    last = "".join(f"\n    {line}" for line in death.tail[-shown_lines_max:])
    return CommandError(
        str(death), why=f"its last log lines:{last}" if last else "it logged nothing", next_step=_after(death, settings)
    )


def _after(death: ServiceDied, settings: Settings) -> str:
    steps = []
    if death.exit_code == -signal.SIGKILL:
        steps.append("check `dmesg`: the kernel kills processes when memory runs out")
    steps.append("correct the cause and run headgate up again")
    if others := [f"--only {name}" for name in settings.only if name != death.service.name]:
        steps.append(f"to run the other services without the {death.service.name}: headgate up {' '.join(others)}")
    return "; ".join(steps)
