"""Malicious schemas: each is accepted or rejected within limits."""

import json
import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.json_schema import check, comparison
from headgate.registry.compatibility.json_schema.comparison import INCOMPATIBILITIES_MAX
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema import JsonSchema, parse
from headgate.registry.formats.json_schema.document import DEPTH_LEVELS_MAX

MODERN = "https://json-schema.org/draft/2020-12/schema"


def schema(value: Any) -> JsonSchema:
    return parse(json.dumps(value), {})


def nested(levels: int, opening: str, closing: str, core: str = "{}") -> str:
    return opening * levels + core + closing * levels


@pytest.mark.parametrize("levels", [10_000, 1_000_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("[", "]"),
        ('{"properties":{"a":', "}}"),
        ('{"not":', "}"),
        ('{"allOf":[', "]}"),
        ('{"items":', "}"),
        ('{"default":[', "]}"),
        ('{"enum":[', "]}"),
    ],
)
def test_nesting_beyond_the_limit_is_rejected(levels: int, opening: str, closing: str) -> None:
    for text in (nested(levels, opening, closing), opening * levels):
        with pytest.raises(InvalidSchema, match="levels deep"):
            parse(text, {})


@pytest.mark.parametrize(
    ("opening", "closing", "levels_each"),
    [
        ('{"properties":{"a":', "}}", 2),
        ('{"not":', "}", 1),
        ('{"allOf":[', "]}", 2),
        ('{"items":', "}", 1),
        ('{"additionalProperties":', "}", 1),
        ('{"anyOf":[{"type":"string"},', "]}", 2),
    ],
)
def test_nesting_up_to_the_limit_is_parsed_and_compared(opening: str, closing: str, levels_each: int) -> None:
    levels = DEPTH_LEVELS_MAX // levels_each - 1
    one = parse(nested(levels, opening, closing, '{"type":"string"}'), {})
    other = parse(nested(levels, opening, closing, '{"type":"number","maximum":1.5}'), {})
    assert check(one, one) == []
    assert check(one, other) != []
    assert one.normalized()
    assert list(other.validator().faults({"a": [1]})) is not None


@pytest.mark.parametrize("text", ['"' + '\\"' * 600_000, "[" * 600 + '"\\', '{"a":"' + "\\" * 999_999, "[" * 600 + '"'])
def test_unterminated_strings_are_scanned_once(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text + "[" * 600, {})


def test_brackets_inside_strings_do_not_count_as_nesting() -> None:
    assert parse(json.dumps({"title": "[{" * 5_000 + '\\"'}), {}).canonical


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json_are_rejected(constant: str) -> None:
    with pytest.raises(InvalidSchema, match=constant):
        parse(f'{{"default":{constant}}}', {})


@pytest.mark.parametrize(
    "number", ["9" * 100_000, "1e999999999", "1e-999999999", "1e99999999999999999999", "0." + "1" * 99_999]
)
def test_numbers_outside_the_limits_are_rejected(number: str) -> None:
    with pytest.raises(InvalidSchema, match="a number"):
        parse(f'{{"multipleOf":{number}}}', {})


@pytest.mark.parametrize(
    "text", [r'{"title":"\ud800"}', r'{"\udc00":1}', '{"title":"\ud800"}', r'{"default":["\ud83d\ud83d"]}']
)
def test_unpaired_surrogates_are_rejected(text: str) -> None:
    with pytest.raises(InvalidSchema, match="surrogate"):
        parse(text, {})
    with pytest.raises(InvalidSchema, match="surrogate"):
        parse("{}", {"other.json": text})


def test_too_many_subschemas_are_rejected() -> None:
    with pytest.raises(InvalidSchema, match="subschemas"):
        parse('{"allOf":[' + "{}," * 250_000 + "{}]}", {})


def test_a_large_schema_is_parsed() -> None:
    large = {
        "properties": {f"property_{index}": {"type": "string", "description": "x" * 400} for index in range(20_000)}
    }
    one = schema(large)
    assert len(one.canonical) > 8_000_000
    assert check(one, one) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 5_000 + ")" * 5_000,
        "a" * 100_000,
        "(?P<1>a)",
        "a{99999999999}",
        "\\",
        "(?<n>a)(?<n>b)",
        "[z-a]",
        "*",
        "\\p{Nope}",
    ],
)
def test_unusual_patterns_are_accepted_or_rejected(pattern: str) -> None:
    values: list[dict[str, Any]] = [{"pattern": pattern}, {"patternProperties": {pattern: {}}}]
    for value in values:
        try:
            schema(value)
        except InvalidSchema:
            continue


def test_a_pattern_with_excessive_backtracking_does_not_block_the_comparison() -> None:
    evil = r"^(\w+\s?)*(x+x+)+y$"
    writer = schema({"type": "object", "patternProperties": {evil: {"type": "string"}}, "additionalProperties": False})
    reader = schema(
        {
            "type": "object",
            "properties": {"x" * 5_000 + "!": {"type": "string"}},
            "patternProperties": {evil: {"type": "string"}},
            "additionalProperties": False,
        }
    )
    assert [each.kind for each in check(reader, writer)] == ["COMPARISON_TOO_COSTLY"]


@pytest.mark.parametrize(
    ("extra", "length"),
    [({}, 10_000), ({"$schema": MODERN}, 10_000), ({"$schema": MODERN, "type": "object"}, 200)],
)
def test_long_chains_of_references_are_followed(extra: dict[str, Any], length: int) -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {"$ref": f"#/definitions/d{index + 1}"} | {key: extra[key] for key in extra if key != "$schema"}
        for index in range(length)
    }
    one = schema({**extra, "$ref": "#/definitions/d0", "definitions": definitions | {f"d{length}": {"type": "object"}}})
    other = schema(
        {**extra, "$ref": "#/definitions/d0", "definitions": definitions | {f"d{length}": {"type": "array"}}}
    )
    assert check(one, one) == []
    assert check(other, one) != []


def test_long_chains_of_properties_are_followed() -> None:
    length = 3_000
    definitions: dict[str, Any] = {
        f"d{index}": {"properties": {"p": {"$ref": f"#/definitions/d{index + 1}"}}} for index in range(length)
    }
    one = schema({"$ref": "#/definitions/d0", "definitions": definitions | {f"d{length}": {"type": "string"}}})
    other = schema({"$ref": "#/definitions/d0", "definitions": definitions | {f"d{length}": {"type": "number"}}})
    assert [each.kind for each in check(other, one)] == ["TYPE_CHANGED"]


def entangled(branches: int, circular: int, kind: str = "string") -> dict[str, Any]:
    """Alternatives whose properties refer to all alternatives."""
    types: dict[str, Any] = {
        f"type{branch}": {
            "type": "object",
            "properties": {
                "tag": {"type": kind if branch == branches - 1 else "string", "const": branch},
                **{
                    f"ref{index}": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/any"}]}
                    for index in range(circular)
                },
            },
        }
        for branch in range(branches)
    }
    any_of = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in types]}
    return {"definitions": {**types, "any": any_of}, "$ref": "#/definitions/any"}


def test_mutual_references_are_compared_in_limited_steps() -> None:
    assert check(schema(entangled(12, 5) | {"x-new": 1}), schema(entangled(12, 5))) == []
    changed = check(schema(entangled(12, 5, "number")), schema(entangled(12, 5)))
    assert [each.kind for each in changed] == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


def test_schemas_that_are_too_complex_have_a_clear_result() -> None:
    def alternatives(count: int, seed: int) -> dict[str, Any]:
        branches = list(range(count))
        random.Random(seed).shuffle(branches)
        return {
            "anyOf": [
                {"properties": {f"p{index}": {"minLength": 2 * branch + index + seed} for index in range(20)}}
                for branch in branches
            ],
        }

    # Half of the members have no match at the same position, and many matches elsewhere.
    found = check(schema(alternatives(400, 1)), schema(alternatives(400, 2)))
    assert [each.kind for each in found] == ["COMPARISON_TOO_COSTLY"]
    assert found[0].path == "#/"


def events(count: int, kind: str, form: str) -> dict[str, Any]:
    def member(number: int) -> dict[str, Any]:
        properties: dict[str, Any] = {"value": {"type": kind}, "note": {"type": "string"}}
        match form:
            case "constant":
                properties["type"] = {"const": f"event{number}"}
            case "title":
                return {"title": f"Event{number}", "type": "object", "properties": properties}
            case "names":
                properties[f"value{number}"] = {"type": kind}
            case _:
                return {"allOf": [{"required": ["type"]}, {"properties": {**properties, "type": {"enum": [number]}}}]}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    return {"oneOf": [member(number) for number in range(count)]}


@pytest.mark.parametrize("form", ["constant", "title", "names", "inside"])
def test_distinguishable_members_are_compared_in_linear_steps(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "STEPS_MAX", 200 * 300)  # all pairs of 300 members would take 90,000 steps
    narrow, wide = events(300, "integer", form), events(300, "number", form)
    wide["oneOf"].insert(100, {"type": "null"})
    assert check(schema(wide), schema(narrow)) == []
    found = check(schema(narrow), schema(wide))
    assert [each.kind for each in found] == ["SUM_TYPE_NARROWED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


@pytest.mark.parametrize(
    "member",
    [
        lambda branch: {"enum": [f"{branch} {index}" for index in range(300)]},
        lambda branch: {"properties": {f"{branch} {index}": {"type": "string"} for index in range(100)}},
        lambda branch: {
            "properties": {f"{branch} {index}": {} for index in range(50)},
            "patternProperties": {f"x{branch} {index}": {} for index in range(50)},
        },
        lambda branch: {"required": [f"{branch} {index}" for index in range(100)]},
        lambda branch: {"const": [f"{branch} {index}" for index in range(300)]},
    ],
)
def test_comparing_all_members_with_each_other_is_limited(member: Callable[[int], dict[str, Any]]) -> None:
    def alternatives(start: int) -> JsonSchema:
        return schema({"anyOf": [member(start + branch) for branch in range(100)]})

    found = check(alternatives(0), alternatives(1_000))
    assert {each.kind for each in found} <= {"COMPARISON_TOO_COSTLY", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"}


def test_one_comparison_of_huge_combinations_is_limited() -> None:
    def alternatives(count: int, seed: int) -> JsonSchema:
        lengths = [2 * index + seed for index in range(count)]
        random.Random(seed).shuffle(lengths)
        return schema({"anyOf": [{"minLength": length} for length in lengths]})

    found = check(alternatives(5_000, 1), alternatives(5_000, 2))
    assert [each.kind for each in found] == ["COMPARISON_TOO_COSTLY"]


def test_one_comparison_of_many_names_with_many_patterns_is_limited() -> None:
    patterns: dict[str, Any] = {f"^{index}$": {} for index in range(2_000)}
    writer = schema({"type": "object", "patternProperties": patterns})
    reader = schema(
        {"type": "object", "patternProperties": patterns, "properties": {f"p{n}": {} for n in range(2_000)}}
    )
    assert [each.kind for each in check(reader, writer)] == ["COMPARISON_TOO_COSTLY"]


def test_too_many_patterns_are_rejected() -> None:
    with pytest.raises(InvalidSchema, match="patterns"):
        schema({"patternProperties": {f"{index:04}" + "a|b" * 100: {} for index in range(500)}})
    assert schema({"properties": {f"p{index}": {"pattern": "a|b" * 100} for index in range(500)}}).canonical


def test_shared_definitions_do_not_multiply_the_report() -> None:
    def diamond(kind: str) -> dict[str, Any]:
        definitions: dict[str, Any] = {
            f"d{level}": {"properties": {side: {"$ref": f"#/definitions/d{level + 1}"} for side in ("left", "right")}}
            for level in range(40)
        }
        return {"$ref": "#/definitions/d0", "definitions": definitions | {"d40": {"type": kind}}}

    assert 0 < len(check(schema(diamond("string")), schema(diamond("number")))) <= INCOMPATIBILITIES_MAX


def test_random_bytes_are_invalid_and_cause_no_other_error() -> None:
    chance = random.Random(20_260_101)
    seeds = [
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"http://e.com/a","$defs":{"x":{"type":"string"}},'
        '"properties":{"a":{"$ref":"#/$defs/x"},"b":{"enum":[1,2.5,null]}},"required":["a"],"additionalProperties":false}',
        '{"oneOf":[{"type":["string","null"],"pattern":"^a+$"},{"items":[{"minimum":1e3}],"additionalItems":{}}],"not":{}}',
    ]
    alphabet = string.printable + '{}[]",:$#/\\\x00\ud800é'
    for _ in range(3_000):
        text = list(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text))
            action = chance.randrange(3)
            if action == 0:
                text[at] = chance.choice(alphabet)
            elif action == 1:
                del text[at]
            else:
                text.insert(at, chance.choice(alphabet))
        try:
            parsed = parse("".join(text), {})
        except InvalidSchema:
            continue
        for policy in Policy:
            assert check(parsed, parsed, policy) == []
        assert parse(parsed.canonical, {}).canonical == parsed.canonical
        assert parse(parsed.normalized(), {}).normalized() == parsed.normalized()
