"""Writes the generated pages and tables: `python -m tests.reference [folder]`. The default folder is docs/."""

import sys
from pathlib import Path

from tests.reference import broker_pages
from tests.reference.command_page import command_page
from tests.reference.errors_page import errors_page
from tests.reference.poison_reasons import rendered
from tests.reference.settings_page import settings_page


def pages() -> dict[str, str]:
    """The text of each generated page by its file name in docs/."""
    return {
        "cli.md": command_page(),
        "configuration.md": settings_page(),
        "error-codes.md": errors_page(),
        **broker_pages.pages(),
    }


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in sorted(folder.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        if rendered(page) != page:
            path.write_text(rendered(page), encoding="utf-8")


if __name__ == "__main__":
    main()
