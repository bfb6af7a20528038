"""Validation of values."""

import json
from typing import Any

import pytest

from headgate.registry.formats.json_schema import Validator, parse
from headgate.registry.formats.json_schema.validation import FAULTS_MAX

# Python refuses to print it.
HUGE = 10**5_000

VALUES_WITHOUT_JSON = [10**400, HUGE, float("inf"), float("nan"), {1: 2}, {1, 2}, b"x", object(), {"a": HUGE}, "\ud800"]


def validator(schema: Any, references: dict[str, str] | None = None) -> Validator:
    return parse(json.dumps(schema), references or {}).validator()


def test_errors_have_json_pointers() -> None:
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
def test_patterns_follow_ecma_262(pattern: str, text: str, accepted: bool) -> None:
    assert validator({"pattern": pattern}).accepts(text) is accepted
    assert validator({"patternProperties": {pattern: False}}).accepts({text: 1}) is not accepted
    closed = validator({"patternProperties": {pattern: {}}, "additionalProperties": False})
    assert closed.accepts({text: 1}) is accepted


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "additionalProperties", "propertyNames"])
def test_a_pattern_with_excessive_backtracking_is_cancelled(keyword: str) -> None:
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
    # The fast path may find that the name does not match, which makes the value valid.
    assert keyword == "patternProperties" or any("takes too long" in fault.message for fault in found)


def test_values_nested_too_deeply_are_errors_and_do_not_crash() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    found = list(validator({"items": {"$ref": "#"}}).faults(value))
    assert [fault.message for fault in found] == ["is nested too deeply to be validated"]


def test_the_number_of_errors_is_limited() -> None:
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
def test_multiples_are_checked_by_their_decimal_digits(factor: float, value: Any, accepted: bool) -> None:
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
def test_values_that_are_not_json_are_errors(schema: dict[str, Any], value: Any) -> None:
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


@pytest.mark.parametrize(
    ("items", "accepted"),
    [
        ([1, 1.0], False),
        ([1, True], True),
        ([0, False, "0", None, ""], True),
        ([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ([[1], [True]], True),
        ([0.1, 0.10000000000000001], False),
        ([{"n": index} for index in range(20_000)], True),
        ([{"n": index} for index in range(20_000)] + [{"n": 5.0}], False),
    ],
    ids=range(8),
)
def test_unique_items_are_compared_by_value_in_one_pass(items: list[Any], accepted: bool) -> None:
    assert validator({"uniqueItems": True}).accepts(items) is accepted
    assert validator({"uniqueItems": False}).accepts(items)


def test_alternatives_do_not_collect_the_errors_of_all_items() -> None:
    many = [1] * 100_000
    for keyword in ("anyOf", "oneOf"):
        judged = validator({keyword: [{"items": {"type": "string"}}, {"type": "null"}]})
        (fault,) = judged.faults(many)
        assert fault.path == ""
        assert "none of the alternatives" in fault.message
    (fault,) = validator({"oneOf": [{"type": "integer"}, {"minimum": 3}]}).faults(5)
    assert "more than one" in fault.message


MODERN = ["https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"]


@pytest.mark.parametrize("url", MODERN)
@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        ({"properties": {"a": {}}}, {"a": 1}, True),
        ({"properties": {"a": {}}}, {"a": 1, "b": 1}, False),
        ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}}, {"a": 1, "b": 1}, True),
        ({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}]}, {"a": 1, "b": 1}, False),
        ({"patternProperties": {r"^\p{L}+$": {}}}, {"é": 1}, True),
        ({"patternProperties": {r"^\p{L}+$": {}}}, {"é": 1, "1": 1}, False),
        ({"if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": {}}}}, {"a": 1, "b": 1}, True),
        ({"if": {"properties": {"a": {"const": 1}}}, "then": {"properties": {"b": {}}}}, {"a": 2, "b": 1}, False),
        ({"dependentSchemas": {"a": {"properties": {"a": {}, "b": {}}}}}, {"a": 1, "b": 1}, True),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, {"a": 1}, True),
        ({"allOf": [{"additionalProperties": True}]}, {"a": 1}, True),
        ({}, {"a": 1}, False),
        ({}, [1], True),
    ],
)
def test_unevaluated_properties_are_those_that_no_keyword_evaluated(
    url: str, schema: dict[str, Any], value: Any, accepted: bool
) -> None:
    judged = validator({"$schema": url, **schema, "unevaluatedProperties": False})
    assert judged.accepts(value) is accepted
    assert judged._validator.is_valid(value) is accepted


@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        ({"prefixItems": [{}]}, [1], True),
        ({"prefixItems": [{}]}, [1, 2], False),
        ({"contains": {"type": "string"}}, ["a", "b"], True),
        ({"contains": {"type": "string"}}, ["a", 1], False),
        ({"allOf": [{"prefixItems": [{}, {}]}]}, [1, 2], True),
        ({"items": {"type": "integer"}}, [1, 2], True),
        ({"oneOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}, {}]}]}, [2, 3], True),
        ({"oneOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}, {}]}]}, [1, 3], False),
    ],
)
def test_unevaluated_items_are_those_that_no_keyword_evaluated(
    schema: dict[str, Any], value: Any, accepted: bool
) -> None:
    judged = validator({"$schema": MODERN[1], **schema, "unevaluatedItems": False})
    assert judged.accepts(value) is accepted
    assert judged._validator.is_valid(value) is accepted


def test_unevaluated_properties_of_large_values_are_found_in_one_pass() -> None:
    value = {f"p{index}": index for index in range(20_000)}
    closed = validator({"$schema": MODERN[1], "patternProperties": {"^p": {}}, "unevaluatedProperties": False})
    assert closed.accepts(value)
    assert [fault.path for fault in closed.faults(value | {"x": 1})] == ["/x"]
    items = validator({"$schema": MODERN[1], "contains": {"type": "integer"}, "unevaluatedItems": False})
    assert [fault.path for fault in items.faults([*range(20_000), "x"])] == ["/20000"]


def test_an_endless_pattern_next_to_unevaluated_properties_is_cancelled() -> None:
    evil = r"^(\w+\s?)*(x+x+)+y$"
    closed = validator({"$schema": MODERN[1], "patternProperties": {evil: {}}, "unevaluatedProperties": False})
    found = list(closed.faults({"x" * 5_000 + "!": 1}))
    assert [fault.message for fault in found if "takes too long" in fault.message]


D7 = "http://json-schema.org/draft-07/schema#"
D2019 = "https://json-schema.org/draft/2019-09/schema"
D2020 = "https://json-schema.org/draft/2020-12/schema"
WHOLE = {"type": "integer"}
ODD_REFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "$defs under definitions": (
        {"$schema": D7, "properties": {"a": {"$ref": "#/$defs/X"}}, "definitions": {"X": WHOLE}},
        {},
    ),
    "definitions under $defs": (
        {"$schema": D2020, "properties": {"a": {"$ref": "#/definitions/X"}}, "$defs": {"X": WHOLE}},
        {},
    ),
    "a name that needs escapes": (
        {"properties": {"a": {"$ref": "#/$defs/X%20~1%25y"}}, "definitions": {"X /%y": WHOLE}},
        {},
    ),
    "a recursive schema": (
        {"properties": {"a": {"$ref": "#/$defs/X"}, "b": {"$ref": "#"}}, "definitions": {"X": WHOLE}},
        {},
    ),
    "an embedded resource": (
        {
            "$schema": D2019,
            "$id": "http://a.example/root",
            "properties": {"a": {"$ref": "inner#/definitions/X"}},
            "$defs": {"I": {"$id": "inner", "allOf": [{"$ref": "#/definitions/X"}], "$defs": {"X": WHOLE}}},
        },
        {},
    ),
    "a reference of the registry": (
        {"properties": {"a": {"$ref": "other.json#/$defs/X"}}},
        {"other.json": {"definitions": {"X": {"$ref": "#/$defs/Y"}, "Y": WHOLE}}},
    ),
    "an anchor in $id": (
        {"$schema": D2020, "properties": {"a": {"$ref": "#id1"}}, "$defs": {"X": {"$id": "#id1", **WHOLE}}},
        {},
    ),
    "a pointer inside an anchor in $id": (
        {
            "$schema": D2019,
            "$id": "http://a.example/root",
            "properties": {"a": {"$id": "#id1", "$ref": "#/$defs/X"}, "b": {"$ref": "#id1"}},
            "$defs": {"X": {"$id": "#id2", "$anchor": "x", **WHOLE}, "Y": {"$ref": "#x"}},
        },
        {},
    ),
    "an anchor in $id of the root": (
        {"$schema": D2020, "$id": "#root", "properties": {"a": WHOLE, "b": {"items": {"$ref": "#root"}}}},
        {},
    ),
    "an anchor in $id of a reference": (
        {"$schema": D2020, "properties": {"a": {"$ref": "other.json#id1"}}},
        {"other.json": {"$schema": D2020, "$defs": {"X": {"$id": "#id1", **WHOLE}}}},
    ),
}


@pytest.mark.parametrize(("schema", "references"), ODD_REFERENCES.values(), ids=ODD_REFERENCES)
def test_values_are_validated_through_all_accepted_references(
    schema: dict[str, Any], references: dict[str, Any]
) -> None:
    before = json.dumps(schema)
    parsed = parse(before, {name: json.dumps(document) for name, document in references.items()})
    judged = parsed.validator()
    assert [fault.message for fault in judged.faults({"a": 1})] == []
    faults = list(judged.faults({"a": "x"}))
    assert [fault.path for fault in faults] == ["/a"]
    assert "refers to" not in faults[0].message
    assert json.loads(parsed.canonical) == json.loads(before)
