"""Runs `headgate up` and stops it at the end of the test."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.cli.conftest import HEADGATE, Cli
from tests.live.ports import free_port


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[bytes]", dict[str, str]]]:
    """Yield the process of a running `headgate up` and the addresses that it printed."""
    process = subprocess.Popen(
        [*HEADGATE, "up", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=Cli("unused:1", folder).environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate(timeout=30)[1].decode())
        yield process, json.loads(line)["services"]
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def ports() -> list[str]:
    ports = {name: str(free_port()) for name in ("--broker-port", "--registry-port", "--proxy-port")}
    return [word for option in ports.items() for word in option]
