"""Values judged by parsed schemas."""

import json
from typing import Any

import pytest

from registry.formats.json_schema import Validator, parse
from registry.formats.json_schema.validation import FAULTS_MAX

# Python refuses to print it.
HUGE = 10**5_000

VALUES_WITHOUT_JSON = [10**400, HUGE, float("inf"), float("nan"), {1: 2}, {1, 2}, b"x", object(), {"a": HUGE}, "\ud800"]


def validator(schema: Any, references: dict[str, str] | None = None) -> Validator:
    return parse(json.dumps(schema), references or {}).validator()


def test_faults_carry_json_pointers() -> None:
    judged = validator({"properties": {"a/b": {"items": {"type": "integer"}}, "c": {"maxLength": 1}}})
    found = sorted(judged.faults({"a/b": [1, "x"], "c": "long"}), key=lambda fault: fault.path)
    assert [(fault.path, fault.keyword) for fault in found] == [
        ("/a~1b/1", "/properties/a~1b/items/type"),
        ("/c", "/properties/c/maxLength"),
    ]
    assert all(fault.message for fault in found)


def test_the_whole_value_has_the_empty_path() -> None:
    assert [fault.path for fault in validator({"type": "string"}).faults(1)] == [""]


@pytest.mark.parametrize(
    ("pattern", "text", "accepted"),
    [
        (r"^\p{L}+$", "été", True),
        (r"^\p{L}+$", "123", False),
        (r"^\d+$", "١٢", False),
        (r"^a$", "a\n", False),
        (r"(?<y>\d)\k<y>", "11", True),
        (r"^\/path", "/path", True),
        (r"^[\w.-]+$", "a-b.c", True),
        (r"^[[]$", "[", True),
        (r"\u0041", "A", True),
        (r"^[^]$", "\n", True),
    ],
)
def test_patterns_mean_what_ecma_262_says(pattern: str, text: str, accepted: bool) -> None:
    assert validator({"pattern": pattern}).accepts(text) is accepted
    assert validator({"patternProperties": {pattern: False}}).accepts({text: 1}) is not accepted
    closed = validator({"patternProperties": {pattern: {}}, "additionalProperties": False})
    assert closed.accepts({text: 1}) is accepted


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "additionalProperties", "propertyNames"])
def test_a_pattern_that_backtracks_without_end_is_given_up(keyword: str) -> None:
    evil = r"^(\w+\s?)*(x+x+)+y$"
    schemas: dict[str, dict[str, Any]] = {
        "pattern": {"pattern": evil},
        "patternProperties": {"patternProperties": {evil: True}},
        "additionalProperties": {"patternProperties": {evil: {}}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": evil}},
    }
    schema = schemas[keyword]
    text = "x" * 5_000 + "!"
    found = list(validator(schema).faults(text if keyword == "pattern" else {text: 1}))
    # The fast engine may see that the name does not match, which makes this one valid.
    assert keyword == "patternProperties" or any("takes too long" in fault.message for fault in found)


def test_values_nested_too_deep_get_a_fault_and_no_crash() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    found = list(validator({"items": {"$ref": "#"}}).faults(value))
    assert [fault.message for fault in found] == ["is nested too deep to be judged"]


def test_endless_faults_are_cut() -> None:
    assert len(list(validator({"items": {"type": "integer"}}).faults(["x"] * 10_000))) == FAULTS_MAX


@pytest.mark.parametrize(
    ("factor", "value", "accepted"),
    [
        (0.1, 0.3, True),
        (0.1, 0.35, False),
        (0.01, 19.99, True),
        (0.1, 10**400, True),
        pytest.param(3, HUGE, False, id="huge"),
        (1e-300, 1e300, True),
        (2, 1e308, True),
        (0.1, True, True),
        (0.1, "0.35", True),
    ],
)
def test_multiples_are_judged_by_their_decimal_digits(factor: float, value: Any, accepted: bool) -> None:
    assert validator({"multipleOf": factor}).accepts(value) is accepted
    assert validator({"not": {"multipleOf": factor}}).accepts(value) is not accepted


@pytest.mark.parametrize(
    "value",
    VALUES_WITHOUT_JSON,
    ids=range(len(VALUES_WITHOUT_JSON)),
)
@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"multipleOf": 0.1}},
        {"properties": {"a": {"multipleOf": 0.3}}},
        {"enum": [1, 10**400]},
        {"maximum": 1.5},
        {"patternProperties": {"a": {}}, "propertyNames": {"maxLength": 1}},
        {"type": ["integer", "object"], "minProperties": 2},
    ],
)
def test_values_that_no_json_holds_get_an_answer(schema: dict[str, Any], value: Any) -> None:
    assert all(fault.message for fault in validator(schema).faults(value))


def test_exact_numbers_of_a_schema_mix_with_any_number_of_a_value() -> None:
    judged = validator({"maximum": 1.5, "minimum": -(10**30), "enum": [1.0, 0.5, 10**20]})
    assert judged.accepts(1)
    assert judged.accepts(0.5)
    assert not judged.accepts(2.5)


def test_dynamic_references_are_followed() -> None:
    tree = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://example.com/tree",
        "$dynamicAnchor": "node",
        "properties": {"children": {"items": {"$dynamicRef": "#node"}}, "data": {"type": "integer"}},
    }
    strict = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    judged = validator(strict, {"tree": json.dumps(tree)})
    assert judged.accepts({"children": [{"data": 1}]})
    assert not judged.accepts({"children": [{"daat": 1}]})
    assert not judged.accepts({"children": [{"data": "1"}]})
