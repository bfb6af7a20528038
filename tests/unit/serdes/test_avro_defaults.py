"""Defaults of fields: JSON in a schema becomes a value of its type, or is rejected."""

import json
import math
from typing import Any

import pytest

from headgate.serdes.avro import parse
from headgate.serdes.avro.defaults import (
    DEFAULT_DEPTH_MAX,
    DEFAULT_VALUES_MAX,
    default_branch,
    default_value,
    missing_value,
)
from headgate.serdes.avro.schema import Field, Union
from headgate.serdes.errors import EncodeError

FIXED: Any = {"type": "fixed", "name": "F", "size": 2}
ENUM: Any = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
PAIR: Any = {
    "type": "record",
    "name": "P",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}],
}


def value_of(schema: Any, default: object) -> object:
    return default_value(parse(json.dumps(schema)), default)


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("int", 2**31 - 1, 2**31 - 1),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", -(2**63), -(2**63)),
        ("float", 0.1, 0.10000000149011612),
        ("double", 0.1, 0.1),
        ("double", 3, 3.0),
        ("float", "-Infinity", -math.inf),
        ("double", "Infinity", math.inf),
        ("string", "é", "é"),
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        (FIXED, "\u00ff\u0001", b"\xff\1"),
        (ENUM, "B", "B"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"k": 1}, {"k": 1}),
        (PAIR, {"a": 1}, {"a": 1, "b": "x"}),
        (PAIR, {"a": 1, "b": "y"}, {"a": 1, "b": "y"}),
        (["null", "int"], None, None),
        (["null", "int"], 5, 5),
    ],
)
def test_a_default_is_a_value_of_its_type(schema: Any, default: object, expected: object) -> None:
    found = value_of(schema, default)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ("null", 0),
        ("boolean", 1),
        ("int", 2**31),
        ("int", -(2**31) - 1),
        ("int", True),
        ("int", 1.0),
        ("int", "1"),
        ("long", 2**63),
        ("long", -(2**63) - 1),
        ("float", 1e300),
        ("float", True),
        ("double", 10**400),
        ("double", "infinity"),
        ("string", None),
        ("bytes", "\u0100"),
        (FIXED, "a"),
        (FIXED, "abc"),
        (ENUM, "C"),
        ({"type": "array", "items": "int"}, {"k": 1}),
        ({"type": "array", "items": "int"}, ["a"]),
        ({"type": "map", "values": "int"}, [1]),
        (PAIR, {"b": "y"}),
        (PAIR, [1]),
        (["null", "int"], "a"),
    ],
)
def test_a_default_of_another_type_is_rejected(schema: Any, default: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        value_of(schema, default)


def test_not_a_number_is_a_default() -> None:
    found = value_of("float", "NaN")
    assert isinstance(found, float)
    assert math.isnan(found)


def test_the_depth_of_a_default_is_limited() -> None:
    def nested(levels: int) -> object:
        schema: Any = "int"
        default: object = 1
        for _ in range(levels):
            schema, default = {"type": "array", "items": schema}, [default]
        return value_of(schema, default)

    assert nested(DEFAULT_DEPTH_MAX)
    with pytest.raises(ValueError, match="deeper than 100 levels"):
        nested(DEFAULT_DEPTH_MAX + 1)


def test_the_number_of_values_of_a_default_is_limited() -> None:
    array = {"type": "array", "items": "int"}
    # The array itself counts.
    assert value_of(array, [1] * (DEFAULT_VALUES_MAX - 1))
    with pytest.raises(ValueError, match="more than 10000 values"):
        value_of(array, [1] * DEFAULT_VALUES_MAX)


def test_a_record_that_contains_its_own_default_does_not_hide_in_a_union() -> None:
    fields = [{"name": "next", "type": ["Node", "string"], "default": {}}]
    with pytest.raises(ValueError, match="deeper than"):
        value_of({"type": "record", "name": "Node", "fields": fields}, {})


def test_the_branch_of_a_default_is_the_first_one_that_matches() -> None:
    union = parse('["null", "int", "long", "string"]')
    assert isinstance(union, Union)
    assert [default_branch(union, default) for default in (None, 5, 2**40, "a")] == [0, 1, 2, 3]


def test_a_field_without_a_value_needs_a_valid_default() -> None:
    schema = parse('"int"')
    assert missing_value(Field("a", schema, has_default=True, default=5)) == 5
    with pytest.raises(EncodeError, match="has no default"):
        missing_value(Field("a", schema, has_default=False, default=None))
    with pytest.raises(EncodeError, match="the default is not valid"):
        missing_value(Field("a", schema, has_default=True, default="x"))
