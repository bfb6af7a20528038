"""Properties of all schemas."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.json_schema import check
from headgate.registry.compatibility.json_schema.comparison import Comparison
from headgate.registry.compatibility.json_schema.pair_comparison import compare_pair
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema import JsonSchema, parse
from tests.unit.registry.json_schema.schemas import SCHEMAS, examples


def parsed(schema: Any) -> JsonSchema:
    try:
        return parse(json.dumps(schema), {})
    except InvalidSchema:
        assume(False)  # duplicate values in an enum of draft-06, or a reference directly to itself
        raise


@examples(80)
@given(SCHEMAS, st.sampled_from(Policy))
def test_every_schema_reads_its_own_data(schema: Any, policy: Policy) -> None:
    one = parsed(schema)
    assert Comparison(policy, compare_pair).run(one.root, one.root) == []


@examples(40)
@given(SCHEMAS, SCHEMAS)
def test_the_lenient_policy_never_finds_more_than_the_strict_one(first: Any, second: Any) -> None:
    reader, writer = parsed(first), parsed(second)
    if check(reader, writer, Policy.STRICT) == []:
        assert check(reader, writer, Policy.LENIENT) == []


@examples(50)
@given(SCHEMAS)
def test_canonical_and_normalized_texts_are_stable_and_equivalent(schema: Any) -> None:
    one = parsed(schema)
    again = parse(one.canonical, {})
    sorted_one = parse(one.normalized(), {})
    assert again.canonical == one.canonical
    assert sorted_one.normalized() == one.normalized()
    assert json.loads(one.canonical) == json.loads(one.normalized()) == schema
    assert check(sorted_one, one) == check(one, sorted_one) == []


# The subset in which Confluent's rules are exact: each keyword is next to its type, objects are closed, required names
# have a schema, and alternatives are in anyOf.
def _typed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    count = st.none() | st.integers(0, 3)
    return st.one_of(
        st.builds(lambda **keywords: _said("string", keywords), minLength=count, maxLength=count),
        st.builds(
            lambda **keywords: _said("number", keywords),
            minimum=count,
            maximum=count,
            exclusiveMaximum=count,
            multipleOf=st.none() | st.sampled_from([1, 2, 4]),
        ),
        st.builds(lambda **keywords: _said("integer", keywords), minimum=count, maximum=count),
        st.builds(
            lambda **keywords: _said("array", keywords),
            items=st.none() | inner,
            minItems=count,
            maxItems=count,
            uniqueItems=st.booleans(),
        ),
        st.builds(_closed, st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.sets(st.sampled_from("abc"))),
        st.builds(
            lambda values: {"enum": values}, st.lists(st.sampled_from(["a", 1, 2, None]), min_size=1, unique=True)
        ),
        st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3)),
    )


def _said(name: str, keywords: dict[str, Any]) -> dict[str, Any]:
    return {"type": name, **{key: value for key, value in keywords.items() if value is not None}}


def _closed(properties: dict[str, Any], required: set[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(required & set(properties)),
        "additionalProperties": False,
    }


SOUND = st.recursive(st.sampled_from([{"type": "null"}, {"type": "boolean"}, True, False]), _typed, max_leaves=5)
INSTANCES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from([0.5, 1.5, "", "a", "ab", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and an edited copy: two random schemas are seldom compatible."""
    writer = draw(SOUND)
    return writer, _edited(draw, writer)


def _edited(draw: st.DrawFn, schema: Any) -> Any:
    if not isinstance(schema, dict) or draw(st.integers(0, 5)) == 0:
        return draw(SOUND) if draw(st.booleans()) else schema
    edited = dict(schema)
    for keyword, value in schema.items():
        if keyword == "properties":
            edited[keyword] = {name: _edited(draw, each) for name, each in value.items() if draw(st.integers(0, 6))}
            if draw(st.booleans()):
                edited[keyword].setdefault(draw(st.sampled_from("abc")), draw(SOUND))
        elif keyword == "items":
            edited[keyword] = _edited(draw, value)
        elif keyword == "anyOf":
            members = [_edited(draw, each) for each in value]
            edited[keyword] = draw(st.permutations(members)) + draw(st.lists(SOUND, max_size=1))
        elif keyword == "enum":
            kept = [each for each in value if draw(st.integers(0, 3))] or value
            edited[keyword] = kept + [each for each in ["a", 1, 2, None] if each not in kept and draw(st.booleans())]
        elif isinstance(value, int) and not isinstance(value, bool) and draw(st.booleans()):
            edited[keyword] = max(value + draw(st.sampled_from([-1, 1])), 1)
    return edited


def _instance(draw: st.DrawFn, schema: Any) -> Any:
    """A value near the limits that the schema probably accepts."""
    if isinstance(schema, bool):
        return draw(INSTANCES)
    if "anyOf" in schema:
        return _instance(draw, draw(st.sampled_from(schema["anyOf"])))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    match schema["type"]:
        case "null":
            return None
        case "boolean":
            return draw(st.booleans())
        case "string":
            return "abcdef"[: draw(st.sampled_from([0, schema.get("minLength", 1), schema.get("maxLength", 5)]))]
        case "number" | "integer":
            return draw(st.integers(-1, 6) | st.sampled_from([0.5, 2.5, 4.0]))
        case "array":
            count = draw(st.sampled_from([0, schema.get("minItems", 0), schema.get("maxItems", 3)]))
            return [_instance(draw, schema.get("items", True)) for _ in range(count)]
    chosen = (name for name in schema["properties"] if name in schema["required"] or draw(st.booleans()))
    return {name: _instance(draw, schema["properties"][name]) for name in chosen}


@st.composite
def pairs_with_instances(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    writer, reader = draw(pairs())
    return writer, reader, [_instance(draw, writer) for _ in range(5)]


@examples(800)
@given(pairs_with_instances())
def test_a_compatible_reader_accepts_all_values_of_the_writer(drawn: tuple[Any, Any, list[Any]]) -> None:
    writer, reader = parsed(drawn[0]), parsed(drawn[1])
    if check(reader, writer) == []:
        accepts, accepted = reader.validator(), writer.validator()
        for instance in drawn[2]:
            assert not accepted.accepts(instance) or accepts.accepts(instance)


@examples(100)
@given(SOUND, st.data())
def test_a_loosened_schema_is_compatible(schema: Any, data: st.DataObject) -> None:
    """Removing a limit of the top level, or adding an alternative, stays compatible."""
    assume(isinstance(schema, dict) and "anyOf" not in schema)
    removable = sorted(set(schema) & {"minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems"})
    looser = dict(schema)
    if removable:
        del looser[data.draw(st.sampled_from(removable))]
    else:
        looser = {"anyOf": [{"type": "null"}, schema]}
    assert check(parsed(looser), parsed(schema)) == []
