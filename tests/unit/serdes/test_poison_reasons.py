"""The poison reasons and the documentation generated from them."""

import sys
from pathlib import Path

import pytest

from headgate.serdes import Reason
from tests.reference.__main__ import main
from tests.reference.poison_reasons import SECTIONS, rendered

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md") if "<!-- poison-reasons:" in path.read_text(encoding="utf-8"))

STORED_NUMBERS = {
    "NULL": 1,
    "TOO_SHORT": 2,
    "BAD_MAGIC": 3,
    "UNKNOWN_SCHEMA": 4,
    "TRUNCATED": 5,
    "CORRUPT": 6,
    "TRAILING_BYTES": 7,
    "UNRESOLVABLE": 8,
    "INVALID_VALUE": 9,
    "REGISTRY_UNAVAILABLE": 10,
    "TOO_DEEP": 11,
    "RULES_NOT_EXECUTED": 12,
    "TOO_LARGE": 13,
}


def test_the_numbers_in_stored_columns_do_not_change() -> None:
    assert {reason.name: int(reason) for reason in Reason} == STORED_NUMBERS
    assert [Reason(number).name for number in STORED_NUMBERS.values()] == list(STORED_NUMBERS)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_a_message_a_condition_and_advice(reason: Reason) -> None:
    for text in (reason.message, reason.condition, reason.advice):
        assert text
        assert not text.endswith(".")
        assert "|" not in text, "would break the table"


def test_no_two_reasons_have_the_same_message() -> None:
    assert len({reason.message for reason in Reason}) == len(Reason)


@pytest.mark.parametrize("name", PAGES)
def test_the_generated_sections_of_a_page_are_up_to_date(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page == rendered(page), "stale: run `python -m tests.reference`"


def test_the_full_table_is_on_the_page_of_the_wire_format() -> None:
    assert SECTIONS["table"]() in (DOCS / "wire-format.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_lists_every_reason(section: str) -> None:
    text = SECTIONS[section]()
    assert all(f"`{reason.name}`" in text for reason in Reason)


def test_a_stale_section_is_replaced_and_the_rest_of_the_page_is_kept() -> None:
    page = "before\n<!-- poison-reasons: names -->\nstale\n<!-- end of poison-reasons -->\nafter\n"
    fresh = rendered(page)
    assert "stale" not in fresh
    assert fresh.startswith("before\n<!-- poison-reasons: names -->\n- `NULL`")
    assert fresh.endswith("<!-- end of poison-reasons -->\nafter\n")


@pytest.mark.parametrize("folder", ["given", "docs"])
def test_the_command_updates_only_stale_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    fresh = rendered("<!-- poison-reasons: names -->\n<!-- end of poison-reasons -->\n")
    place = tmp_path / folder
    place.mkdir()
    (place / "fresh.md").write_text(fresh, encoding="utf-8")
    (place / "stale.md").write_text(fresh.replace(f"`{Reason.TRUNCATED.name}`", "`CUT`"), encoding="utf-8")
    (place / "other.md").write_text("no table", encoding="utf-8")
    written = (place / "fresh.md").stat().st_mtime_ns
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference", *([str(place)] if folder == "given" else [])])
    main()
    assert (place / "fresh.md").stat().st_mtime_ns == written
    assert (place / "other.md").read_text(encoding="utf-8") == "no table"
    assert (place / "stale.md").read_text(encoding="utf-8") == fresh
