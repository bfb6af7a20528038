"""Decimals in Avro's JSON encoding whose text looks like a number."""

import json
from typing import Any

import pytest

from headgate.serdes.avro import DecimalMistakes, parse

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}


def mistakes(*kinds: Any) -> DecimalMistakes:
    fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(kinds)]
    return DecimalMistakes(parse(json.dumps({"type": "record", "name": "R", "fields": fields})))


@pytest.mark.parametrize("text", ["9.99", "12", "-3.5", "+7"])
@pytest.mark.parametrize("kind", [DECIMAL, FIXED])
def test_the_text_of_a_number_is_a_mistake(kind: Any, text: str) -> None:
    found = mistakes("string", kind).find({"f0": "1.5", "f1": text})
    assert found is not None
    assert found.startswith(f"f1: '{text}' is stored as the bytes of this text")
    assert "logical=native" in found


@pytest.mark.parametrize("value", ["\x04Ò", "", "1.", "1.2.3", "1e5", "²", 5, None])
def test_other_values_are_no_mistakes(value: Any) -> None:
    assert mistakes(DECIMAL).find({"f0": value}) is None


def test_decimals_inside_other_types_are_found() -> None:
    inside = mistakes({"type": "array", "items": ["null", DECIMAL]}, {"type": "map", "values": FIXED})
    assert inside.find({"f0": [None, {"bytes": "9.99"}], "f1": {}}) is not None
    assert inside.find({"f0": [], "f1": {"a": "9.99"}}) is not None
    assert inside.find({"f0": [None], "f1": {"a": "\0"}}) is None


def test_a_schema_without_decimals_is_not_searched() -> None:
    assert mistakes(DECIMAL).is_possible
    assert mistakes("string", FIXED).is_possible
    plain = mistakes("string", DATE, ENUM, "bytes", {"type": "fixed", "name": "F", "size": 2})
    assert not plain.is_possible
    assert plain.find({"f0": "9.99"}) is None


def test_an_invalid_document_is_left_to_the_encoder() -> None:
    assert mistakes(DECIMAL, "int").find({"other": 1}) is None
    assert mistakes(DECIMAL, "int").find([]) is None
    assert mistakes(DECIMAL, "int").find({"f0": "9.99"}) is not None
