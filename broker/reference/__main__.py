"""Writes the reference pages: `python -m headgate.broker.reference [folder]`. The default folder is docs/."""

import sys
from pathlib import Path

from headgate.broker.reference.pages import pages


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
