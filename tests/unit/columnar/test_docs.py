"""Runs the examples of docs/columnar.md in order."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "columnar.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
