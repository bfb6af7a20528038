"""The examples of docs/columnar.md, run one after another as a reader would paste them."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "columnar.md"


def test_the_examples_of_the_page_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
