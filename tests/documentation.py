"""Runs the code blocks of a documentation page from top to bottom.

| language | check |
|---|---|
| `console` | each command after `$` exits with 0 and prints the lines below it; of a JSON object, some fields |
| `sh` | exits with 0 |
| `python` | runs in one namespace per page; functions named test_* are called with the names of the page |

Other languages are data. A block that cannot run has a visible reason above it: `*Not run by the tests: …*`.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.installation import ROOT

COMMAND_SECONDS_MAX = 60
RUNNABLE = ("console", "sh", "python")
NOT_RUN = "*Not run by the tests: "
# Pages of other tests: with a Spark session, and without servers.
OTHER_PAGES = ("docs/spark.md", "docs/columnar.md")

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    language: str
    text: str
    line: int

    def python(self, names: dict[str, Any], addresses: Mapping[str, str]) -> None:
        """Execute a Python block. Its line numbers are those of the page."""
        code = "\n" * self.line + replaced(self.text, addresses)
        exec(compile(code, str(self.page), "exec"), names)
        for name in [name for name in names if name.startswith("test_")]:
            function = names.pop(name)
            function(**{each: names[each] for each in inspect.signature(function).parameters})

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Each command and the lines that it prints, or None if the block shows no output."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *shown = part.replace("\\\n", "").splitlines()
            yield command, [line for line in shown if line]


def pages() -> list[str]:
    """Every page with a block that runs, relative to the repository."""
    everything = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(page.relative_to(ROOT)) for page in everything if blocks(page)]


def blocks(page: Path) -> list[Block]:
    """The blocks that run."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n\n")[2].lstrip()
        if match[2] in RUNNABLE and not before.startswith(NOT_RUN):
            body = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
            found.append(Block(page, match[2], body, text.count("\n", 0, match.start(3))))
    return found


def replaced(text: str, addresses: Mapping[str, str]) -> str:
    for host in ("127.0.0.1", "localhost"):
        for port, service in (("9092", "broker"), ("8081", "registry"), ("8082", "proxy")):
            text = text.replace(f"{host}:{port}", addresses[service])
    return text


def run_page(
    page: Path,
    folder: Path,
    addresses: Mapping[str, str],
    names: dict[str, Any],
    *,
    path: str = "",
    languages: tuple[str, ...] = RUNNABLE,
) -> None:
    """Run the blocks of a page in a folder. `path` precedes the PATH of the commands."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("HEADGATE_", "XDG_"))}
    environment = inherited | {
        "HEADGATE_BOOTSTRAP_SERVER": addresses["broker"],
        "HEADGATE_REGISTRY_URL": f"http://{addresses['registry']}",
        "HOME": str(folder),
        "PATH": f"{path or Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    variables = ""
    for block in blocks(page):
        if block.language not in languages:
            continue
        if block.language == "python":
            block.python(names, addresses)
            continue
        is_shown = block.language == "console"
        for command, shown in block.commands() if is_shown else [(block.text, [])]:
            place = f"{page.name}, line {block.line}: {command}"
            here = replaced(command, addresses)
            if assigned := re.match(r"([A-Z_]+)=", here):
                here += f"; declare -p {assigned[1]}"
            done = subprocess.run(
                ["bash", "-c", f"set -eo pipefail; {variables}{here}"],
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS_MAX,
                cwd=folder,
                env=environment,
                check=False,
            )
            assert done.returncode == 0, (place, done.stdout, done.stderr)
            if assigned:
                variables += f"{done.stdout.strip()}; "  # later commands of the page use it
            elif is_shown:
                assert_output(done.stdout, shown, place)


def assert_output(printed: str, shown: list[str], place: str) -> None:
    """Schema ids depend on the pages that ran before. They are compared as numbers."""
    text, printed = (re.sub(r"\bschema \d+\b", "schema N", each) for each in ("\n".join(shown), printed))
    if text.startswith(("{", "[")) and not printed.startswith(text):
        wanted, got = json.loads(text), json.loads(printed)
        if isinstance(wanted, dict):
            got = {name: value for name, value in got.items() if name in wanted}
            for name in ("id", "value_schema_id"):
                if name in wanted:
                    assert type(got.pop(name, None)) is type(wanted.pop(name)), (place, printed)
        assert got == wanted, (place, printed)
    else:
        assert [line.rstrip() for line in printed.splitlines() if line.strip()] == text.splitlines(), (place, printed)
