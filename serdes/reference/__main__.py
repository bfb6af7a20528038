"""Writes the tables of poison reasons: `python -m headgate.serdes.reference [folder]`. The default folder is docs/."""

import sys
from pathlib import Path

from headgate.serdes.reference.poison_reasons import rendered


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for path in sorted(folder.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            path.write_text(rendered(page), encoding="utf-8")


if __name__ == "__main__":
    main()
