"""Hooks of mkdocs: pages and files of the repository that are not in docs/."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"architecture.md": "ARCHITECTURE.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
FOLDERS = ("openapi/*.yaml", "benchmarks/results/*.md", "examples/**/*.py", "examples/**/*.yaml", "examples/**/*.toml")
_LINK = re.compile(r"(\]\()([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    for pattern in FOLDERS:
        for path in sorted(ROOT.glob(pattern)):
            name = str(path.relative_to(ROOT))
            files.append(File.generated(config, name, content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository lead to the pages of the site."""
    uri = page.file.src_uri
    source = PAGES.get(uri)
    at = ROOT if source is not None else ROOT / "docs" / Path(uri).parent
    if uri.startswith("benchmarks/"):
        at = ROOT / Path(uri).parent
    known = {ROOT / "docs" / file.src_uri: file.src_uri for file in files}
    known |= {ROOT / file.src_uri: file.src_uri for file in files}
    known |= {ROOT / name: target for target, name in PAGES.items()}
    known[ROOT / "README.md"] = "index.md"
    depth = uri.count("/")

    def replaced(match: re.Match[str]) -> str:
        if match[2].startswith(("http:", "https:", "mailto:")):
            return match[0]
        found = known.get((at / match[2]).resolve())
        return match[0] if found is None else f"{match[1]}{'../' * depth}{found}"

    return _LINK.sub(replaced, markdown)
