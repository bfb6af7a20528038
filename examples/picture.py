"""Records `headgate consume` with a poison record in a terminal, and writes the picture of the README.

python examples/picture.py docs/images/consume.svg
"""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from headgate.testing import Headgate

FIELDS = '[{"name": "id", "type": "long"}, {"name": "total", "type": "double"}]'
SCHEMA = f'{{"type": "record", "name": "Order", "fields": {FIELDS}}}'
COMMANDS = (
    "headgate produce orders --value-schema order.avsc < orders.ndjson",
    r"printf '\0\0\0\0\1\6' | headgate produce orders",
    "headgate consume orders -e",
    "headgate consume orders -g billing --on-poison dead-letter -e > orders.txt",
    "headgate dead show orders.dead 0:0",
)


def in_terminal(command: str, environment: dict[str, str], folder: Path) -> str:
    """The output of a command on a terminal, with its colors."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", command], stdin=side, stdout=side, stderr=side, env=environment, cwd=folder
    ) as process:
        os.close(side)
        printed = b""
        try:
            while part := os.read(terminal, 4096):
                printed += part
        except OSError:  # Linux: the other side is closed
            pass
        process.wait()
    os.close(terminal)
    return printed.decode().replace("\r\n", "\n")


def main() -> None:
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True)
    with Headgate() as headgate:
        folder = Path(headgate.folder)
        (folder / "order.avsc").write_text(SCHEMA)
        (folder / "orders.ndjson").write_text('{"id": 1, "total": 9.99}\n{"id": 2, "total": 5.0}\n')
        environment = os.environ | {
            "HEADGATE_BOOTSTRAP_SERVER": headgate.bootstrap_servers,
            "HEADGATE_REGISTRY_URL": headgate.registry_url,
            "COLUMNS": "110",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for command in COMMANDS:
            console.print(Text("$ " + command, style="bold"))
            console.print(Text.from_ansi(in_terminal(command, environment, folder).rstrip("\n")))
    Path(sys.argv[1]).write_text(console.export_svg(title="headgate"), encoding="utf-8")


if __name__ == "__main__":
    main()
