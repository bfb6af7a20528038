"""The fast path agrees with the validator and never overflows the stack."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema import JsonSchema, parse
from headgate.registry.formats.json_schema.acceptance import IN_PLACE_LEVELS_MAX, VALUE_LEVELS_MAX, compiled, is_plain
from tests.unit.registry.json_schema.schemas import SCHEMAS, VALUES, examples


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def schema(value: Any) -> JsonSchema:
    return parse(json.dumps(value), {})


@examples(150)
@given(SCHEMAS, st.lists(VALUES, min_size=4, max_size=8))
def test_both_libraries_accept_the_same_values(value: Any, instances: list[Any]) -> None:
    try:
        parsed = schema(value)
    except InvalidSchema:
        return
    surely_accepts = compiled(parsed.root, value)
    assert surely_accepts is not None
    slow = parsed.validator()._validator
    for instance in instances:
        assert surely_accepts(instance) is slow.is_valid(instance)


@pytest.mark.parametrize(
    "value", [2**70, -(2**70), 0.1, 1e300, True, "\ud800", (1, 2), {1: 2}, b"x", object(), {"a": {1}}]
)
def test_unusual_values_have_a_result(value: Any) -> None:
    for keywords in ({"type": "integer"}, {"maximum": 5}, {"enum": [1, "a"]}, {"maxLength": 1}, {}):
        assert isinstance(schema(keywords).validator().accepts(value), bool)


def test_the_fast_path_checks_the_size_of_values_first() -> None:
    assert is_plain(nested(VALUE_LEVELS_MAX))
    assert not is_plain(nested(VALUE_LEVELS_MAX + 1))
    assert not is_plain(nested(200_000))
    surely_accepts = compiled(schema({"items": {"$ref": "#"}}).root, {"items": {"$ref": "#"}})
    assert surely_accepts is not None
    assert surely_accepts(nested(VALUE_LEVELS_MAX))
    assert not surely_accepts(nested(200_000))


def test_the_fast_path_checks_the_size_of_schemas_first() -> None:
    long_chain: Any = {
        f"d{index}": {"properties": {"p": {"$ref": f"#/definitions/d{index + 1}"}}} for index in range(2_000)
    }
    long_chain = {"$ref": "#/definitions/d0", "definitions": long_chain | {"d2000": {}}}
    stacked: Any = {"type": "string"}
    for _ in range(IN_PLACE_LEVELS_MAX):
        stacked = {"allOf": [stacked]}
    assert compiled(schema(long_chain).root, long_chain) is None
    assert compiled(schema(stacked).root, stacked) is None
    assert compiled(schema(stacked["allOf"][0]).root, stacked["allOf"][0]) is not None


def test_values_within_the_limits_fit_a_small_stack() -> None:
    """Half a megabyte: less than the stack of a thread on any supported system."""
    stacked: Any = {"items": {"$ref": "#"}}
    for _ in range(IN_PLACE_LEVELS_MAX - 2):
        stacked = {"allOf": [stacked]}
    surely_accepts = compiled(schema(stacked).root, stacked)
    assert surely_accepts is not None
    answers = []
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=lambda: answers.append(surely_accepts(nested(VALUE_LEVELS_MAX))))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert answers == [True]


@pytest.mark.parametrize("url", ["http://example.com/own", "http://json-schema.org/draft-07/schema#"])
def test_no_uri_is_fetched(url: str) -> None:
    value = {"$schema": url, "type": "integer"}
    assert schema(value).validator().accepts(1)
    assert not schema(value).validator().accepts("1")
