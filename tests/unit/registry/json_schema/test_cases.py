"""Runs tests/cases/json_schema.json with the checker. The format is described next to the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.json_schema import check
from headgate.registry.compatibility.json_schema.comparison import Comparison
from headgate.registry.compatibility.json_schema.pair_comparison import compare_pair
from headgate.registry.formats.json_schema import JsonSchema, parse

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "cases" / "json_schema.json").read_text(encoding="utf-8")
)


def parsed(case: dict[str, Any], side: str) -> JsonSchema:
    references = {name: json.dumps(schema) for name, schema in case.get("references", {}).items()}
    return parse(json.dumps(case[side]), references)


def test_the_names_of_the_cases_are_unique() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 500


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_checker_has_the_results_of_the_table(case: dict[str, Any], policy: Policy) -> None:
    original, update = parsed(case, "original"), parsed(case, "update")
    for direction, reader, writer in (("backward", update, original), ("forward", original, update)):
        expected = case[direction]
        if policy is Policy.LENIENT:
            expected = case.get(f"lenient_{direction}", expected)
        found = check(reader, writer, policy)
        assert sorted(f"{each.kind} {each.path}" for each in found) == sorted(expected), direction
        assert all(each.message and each.advice for each in found)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_schema_of_the_table_reads_its_own_data(case: dict[str, Any]) -> None:
    for side in ("original", "update"):
        schema = parsed(case, side)
        assert check(schema, schema) == []
        # Without the fast path for equal texts.
        assert Comparison(Policy.STRICT, compare_pair).run(schema.root, schema.root) == []
