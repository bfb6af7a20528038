"""The documentation site builds without a warning, and works from a folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.live.installation import ROOT


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    site = tmp_path / "site"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(site)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {"index.html", "tutorial.html", "architecture.html", "what-headgate-is-not.html"} <= pages
    # Links between pages name files, so a browser follows them without a server.
    links = re.findall(r'href="([^"#:]+)"', (site / "index.html").read_text(encoding="utf-8"))
    assert not [link for link in links if not (site / link).is_file()]


def test_every_page_is_in_the_navigation() -> None:
    configured = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"- {page.name}" not in configured]
    assert missing == []
