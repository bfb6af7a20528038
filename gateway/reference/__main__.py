"""Generates the reference pages: `python -m headgate.gateway.reference [folder]`, by default into docs/."""

import sys
from pathlib import Path

from headgate.gateway.reference.command_page import command_page
from headgate.gateway.reference.settings_page import settings_page


def pages() -> dict[str, str]:
    """The text of each page by its file name in docs/."""
    return {"cli.md": command_page(), "configuration.md": settings_page()}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
