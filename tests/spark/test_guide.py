"""The examples of docs/spark.md, run from top to bottom against a live broker and registry."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "spark.md"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    process = HeadgateBroker(tmp_path_factory.mktemp("broker"))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()


def test_the_examples_of_the_guide_run(
    spark: "SparkSession", broker: HeadgateBroker, own_registry: HeadgateRegistry
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "examples"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 8
    for block in blocks:
        # Keep the line numbers, so that a traceback points to the page.
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        code = code.replace("http://localhost:8081", own_registry.url).replace("localhost:9092", broker.address)
        exec(compile(code, str(PAGE), "exec"), names)
    assert names["seen"] == {"good": 1000, "poison": 3}
