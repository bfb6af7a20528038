"""Resident memory of process groups, as samples in a CSV file."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
GROWTH_MAX = 1.3
"""A later median may exceed an earlier one by this factor: a garbage collector does not run at fixed times."""
GROWTH_MIB_MAX = 64


def resident_mib(session: int) -> dict[str, float]:
    """Resident memory of the processes of a session, by program: `java` and `python`."""
    found: dict[str, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")
        except OSError:
            continue  # The process has ended.
        fields = rest.split()
        if int(fields[3]) == session:
            program = "java" if "java" in name else "python"
            found[program] = found.get(program, 0.0) + int(fields[21]) * PAGE_BYTES / 2**20
    return found


@dataclass(slots=True)
class Samples:
    """Memory in MiB by name, and the numbers of records, over time."""

    rows: list[dict[str, float]] = field(default_factory=list)

    def add(self, seconds: float, values: Mapping[str, float]) -> None:
        self.rows.append({"seconds": round(seconds, 1), **{name: round(value, 1) for name, value in values.items()}})

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row if name != "seconds"))

    def series(self, name: str) -> list[tuple[float, float]]:
        return [(row["seconds"], row[name]) for row in self.rows if name in row]

    def write(self, file: Path) -> None:
        with file.open("w", newline="", encoding="utf-8") as output:
            writer = csv.DictWriter(output, ["seconds", *self.names])
            writer.writeheader()
            writer.writerows(self.rows)

    def growth(self, name: str) -> tuple[float, float]:
        """The medians of the second and of the last quarter. The first one contains the start."""
        values = [value for _, value in self.series(name)]
        quarter = max(len(values) // 4, 1)
        return median(values[quarter : 2 * quarter] or values), median(values[-quarter:])

    def is_flat(self, name: str) -> bool:
        early, late = self.growth(name)
        return late <= max(early * GROWTH_MAX, early + GROWTH_MIB_MAX)
