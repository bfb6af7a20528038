"""Progress of a run: one live line on a terminal, otherwise a log line every 10 seconds."""

import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.live import Live

PLAIN_SECONDS = 10.0
"""Interval between log lines."""


def line_of(document: dict[str, Any]) -> str:
    """`1,000 read · 980 good · 20 poison (TRUNCATED 12, NULL 8) · lag 0 · 512 rows/s`"""
    parts = [f"{document['read']:,} read", f"{document['good']:,} good"]
    reasons = ", ".join(f"{reason} {rows:,}" for reason, rows in document["poison_by_reason"].items())
    parts.append(f"{document['poison']:,} poison" + (f" ({reasons})" if reasons else ""))
    refused = sum(each["refused"] for each in document["sinks"].values())
    if refused:
        parts.append(f"{refused:,} refused by sinks")
    if document["lag"] is not None:
        parts.append(f"lag {document['lag']:,}")
    parts.append(f"{document['rows_per_second']:,.0f} rows/s")
    return " · ".join(parts)


class Progress:
    """Shows documents of `Metrics` on stderr. Stdout is for data."""

    def __init__(self, out: IO[str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out or sys.stderr
        self._clock = clock
        self._live: Live | None = None
        self._last = ""
        self._next_at = clock() + PLAIN_SECONDS

    def say(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._out, flush=True)

    def show(self, document: dict[str, Any]) -> None:
        if self._out.isatty():
            self._draw(line_of(document))
        elif self._clock() >= self._next_at:
            self._next_at = self._clock() + PLAIN_SECONDS
            line = line_of(document)
            if line != self._last:
                self._last = line
                print(line, file=self._out, flush=True)

    def _draw(self, line: str) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        if self._live is None:
            self._live = Live(console=Console(file=self._out), transient=True, refresh_per_second=4)
            self._live.start()
        self._live.update(Spinner("dots", Text(line)))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
