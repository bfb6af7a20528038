"""The format of the golden files."""

import pytest

from tests.wire.golden_files import AREAS, BROKER_SETTINGS, GOLDEN, load, text_of


@pytest.mark.parametrize("area", [*AREAS, BROKER_SETTINGS])
def test_a_golden_file_has_one_step_per_line(area: str) -> None:
    assert text_of(load(area)) == (GOLDEN / f"{area}.json").read_text(encoding="utf-8")
