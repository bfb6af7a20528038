"""Runs `tests/cases/protobuf.json` with the checker, in both directions, as text and as serialized descriptors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.registry.compatibility.protobuf import check
from headgate.registry.formats.protobuf import ProtobufSchema, parse

TABLE: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "cases" / "protobuf.json").read_text("utf-8"))
NAMES = [case["name"] for case in TABLE]


def schemas(case: Mapping[str, Any]) -> tuple[ProtobufSchema, ProtobufSchema]:
    shared = case.get("references", {})
    return (
        parse(case["original"], {**shared, **case.get("original_references", {})}),
        parse(case["update"], {**shared, **case.get("update_references", {})}),
    )


def found(reader: ProtobufSchema, writer: ProtobufSchema) -> list[str]:
    return sorted(f"{one.kind} {one.path}" for one in check(reader, writer))


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("case", TABLE, ids=NAMES)
def test_both_directions_have_the_results_of_the_table(case: Mapping[str, Any]) -> None:
    original, update = schemas(case)
    assert found(update, original) == sorted(case["backward"])
    assert found(original, update) == sorted(case["forward"])


@pytest.mark.parametrize("case", TABLE, ids=NAMES)
def test_the_serialized_form_is_compared_like_the_text(case: Mapping[str, Any]) -> None:
    original, update = schemas(case)
    shared = case.get("references", {})
    serialized = parse(update.serialized(), {**shared, **case.get("update_references", {})})
    assert found(serialized, original) == sorted(case["backward"])
    assert found(serialized, update) == []


@pytest.mark.parametrize("case", TABLE, ids=NAMES)
def test_normalizing_does_not_change_the_result(case: Mapping[str, Any]) -> None:
    original, update = schemas(case)
    shared = case.get("references", {})
    normalized = parse(update.normalized(), {**shared, **case.get("update_references", {})})
    assert found(normalized, original) == sorted(case["backward"])
    assert found(original, normalized) == sorted(case["forward"])
