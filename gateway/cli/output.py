"""Output of commands: data to stdout, messages to stderr.

Tables use rich on a terminal and plain columns in a pipe. `--json` prints one JSON document, or one per line for
streams. rich is imported only when it is used.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from headgate.gateway.settings.masking import masked

# Short runs show no progress line.
progress_delay_seconds = 1.0


def print_json(document: object) -> None:
    """Print one document: indented on a terminal, on one line in a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(document, indent=indent, ensure_ascii=False))


def print_json_line(document: object) -> None:
    print(json.dumps(document, ensure_ascii=False))


def visible(text: str) -> str:
    """Escape control characters and invalid UTF-8. Names in schemas and of files could otherwise control a terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table. Columns in `numbers` are right-aligned. None is printed as a dash."""
    lines = [["-" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    right = [heading in numbers for heading in headings]
    if sys.stdout.isatty():
        _draw(headings, lines, right)
        return
    widths = [max([len(heading), *(len(line[at]) for line in lines)]) for at, heading in enumerate(headings)]
    for line in [list(headings), *lines]:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(padded).rstrip())


def _draw(headings: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, to_right in zip(headings, right, strict=True):
        table.add_column(heading, justify="right" if to_right else "left", overflow="fold")
    for line in lines:
        # Names and configs are data, not rich's markup.
        table.add_row(*(Text(cell) for cell in line))
    Console().print(table)


def say(text: str) -> None:
    """Print a message to stderr, with passwords masked."""
    # A terminal shows data and messages in order. The flush at exit reports errors.
    with suppress(OSError):
        sys.stdout.flush()
    print(masked(text), file=sys.stderr)


def say_heading(text: str) -> None:
    say(f"\x1b[1m{text}\x1b[0m" if colours_wanted() else text)


def colours_wanted() -> bool:
    """Follows https://no-color.org: a non-empty NO_COLOR disables colours."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def size_text(size_bytes: int | None) -> str | None:
    """A readable size: `1.5 MiB`."""
    if size_bytes is None:
        return None
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


class Progress(AbstractContextManager["Progress"]):
    """A progress counter on stderr, with a bar if the total is known. It appears after one second, and only on a
    terminal.
    """

    def __init__(self, noun: str, total: int | None = None) -> None:
        self._noun = noun
        self._total = total
        self._visible = sys.stderr.isatty()
        self._shown = False
        self._next_at = time.monotonic() + progress_delay_seconds

    def update(self, count: int) -> None:
        if self._visible and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + 0.1
            self._shown = True
            print(f"\r\x1b[K{self._bar(count)}{count:,} {self._noun}", end="", file=sys.stderr, flush=True)

    def _bar(self, count: int) -> str:
        if not self._total:
            return ""
        share = min(count / self._total, 1.0)
        return f"[{'#' * int(share * 20):<20}] {share:4.0%} "

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
