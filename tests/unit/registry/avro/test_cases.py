"""Runs tests/cases/avro.json with the checker. The format is described next to the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.registry.compatibility.avro import check
from headgate.registry.formats.avro import parse

TABLE: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "cases" / "avro.json").read_text("utf-8"))


def found(reader: Any, writer: Any) -> list[str]:
    one, other = (parse(json.dumps(schema), {}, strict=False) for schema in (reader, writer))
    return sorted(f"{incompatibility.kind} {incompatibility.path}" for incompatibility in check(one, other))


def test_the_names_of_the_cases_are_unique() -> None:
    names = [case["name"] for case in TABLE]
    assert len(set(names)) == len(names) >= 500


@pytest.mark.parametrize("case", TABLE, ids=[case["name"] for case in TABLE])
def test_the_checker_has_the_results_of_the_table(case: dict[str, Any]) -> None:
    assert found(case["update"], case["original"]) == sorted(case["backward"])
    assert found(case["original"], case["update"]) == sorted(case["forward"])
