"""Avro schemas: accepted and rejected schemas, and the canonical and normalized forms of Java's Avro 1.12."""

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro import parse
from headgate.registry.formats.json_text import dump, load, number


def record(*fields: Any, **attributes: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **attributes})


def field(type: Any = "int", name: str = "a", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **attributes}


ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}

FORMS: dict[str, list[tuple[str, str]]] = json.loads((Path(__file__).parent / "forms.json").read_text("utf-8"))
"""Texts with the canonical form of Java's Avro 1.12.0 (`normalized`: of Confluent's registry)."""
CANONICAL = dict(FORMS["canonical"])
NORMALIZED = dict(FORMS["normalized"])


@pytest.mark.parametrize("text", CANONICAL)
def test_the_canonical_form_equals_javas(text: str) -> None:
    assert parse(text, {}).canonical == CANONICAL[text]
    assert parse(CANONICAL[text], {}).canonical == CANONICAL[text]


REFUSED = {
    record(field("str")): ("Undefined schema: str", "/fields/0/type"),
    record(field(default="foo")): ('Invalid default for field a: "foo" not a "int"', "/fields/0/default"),
    record(field(default=1.0)): ("Invalid default", "/fields/0/default"),
    record(field(default=3_000_000_000)): ("Invalid default", "/fields/0/default"),
    record(field("long", default=2**63)): ("Invalid default", "/fields/0/default"),
    record(field("string", default=None)): ("Invalid default", "/fields/0/default"),
    record(field("boolean", default=0)): ("Invalid default", "/fields/0/default"),
    record(field("int", default=True)): ("Invalid default", "/fields/0/default"),
    record(field(["null", "string"], default=1)): ("Invalid default", "/fields/0/default"),
    record(field({"type": "array", "items": "int"}, default=[1, "x"])): ("Invalid default", "/fields/0/default"),
    record(field({"type": "map", "values": "int"}, default={"k": "x"})): ("Invalid default", "/fields/0/default"),
    record(field(ENUM, default="B")): ("Invalid default", "/fields/0/default"),
    record(field({"type": "fixed", "name": "F", "size": 2}, default="abc")): ("Invalid default", "/fields/0/default"),
    record(field("bytes", default="\u0100")): ("Invalid default", "/fields/0/default"),
    record(field({"type": "record", "name": "S", "fields": [field(name="x")]}, default={})): (
        "Invalid default",
        "/fields/0/default",
    ),
    record(field("float", default="x")): ('For input string: "x"', "/fields/0/default"),
    record(field(), field("string")): ("Duplicate field a in record R", "/fields/1"),
    record(field(name="a-b")): ("Illegal character in: a-b", "/fields/0/name"),
    record(field(name="é")): ("Illegal initial character: é", "/fields/0/name"),
    record(field(name="")): ("Empty name", "/fields/0/name"),
    record({"type": "int"}): ("No field name", "/fields/0"),
    record({"name": "a"}): ("No field type", "/fields/0"),
    record(field(order="upward")): ("Unknown order", "/fields/0/order"),
    record(field(aliases="x")): ("aliases not an array", "/fields/0"),
    record(field(aliases=[1])): ("alias not a string", "/fields/0/aliases"),
    record(namespace="a-b"): ('Namespace part "a-b" is invalid: Illegal character in: a-b', "/namespace"),
    record(aliases=["x-y"]): ("Illegal character in: x-y", "/aliases"),
    record(field({"type": "record", "name": "R", "fields": []})): ("Can't redefine: R", "/fields/0/type/name"),
    record(field(ENUM), field({**ENUM, "symbols": ["B"]}, "b")): ("Can't redefine: E", "/fields/1/type/name"),
    '{"type":"enum","name":"E","symbols":["A","A"]}': ("Duplicate enum symbol: A", "/symbols/1"),
    '{"type":"enum","name":"E","symbols":["A-"]}': ("Illegal character in: A-", "/symbols/0"),
    '{"type":"enum","name":"E","symbols":["A"],"default":"B"}': ("The Enum Default: B is not in", "/default"),
    '{"type":"enum","name":"E"}': ("Enum has no symbols", ""),
    '{"type":"enum","name":"E","symbols":[1]}': ("Enum symbol is not a string", "/symbols/0"),
    '{"type":"fixed","name":"F"}': ("Invalid or no size", ""),
    '{"type":"fixed","name":"F","size":-1}': ("Length is negative: -1", "/size"),
    '{"type":"fixed","name":"F","size":"2"}': ("Invalid or no size", ""),
    '{"type":"record","fields":[]}': ("No name in schema", ""),
    '{"type":"record","name":"R"}': ("Record has no fields", ""),
    '{"type":"record","name":"int","fields":[]}': ("Schemas may not be named after primitives: int", "/name"),
    '["int","int"]': ("Duplicate in union:int", "/1"),
    '["int",["string"]]': ("Nested union", "/1"),
    '["null",{"type":"array","items":"int"},{"type":"array","items":"string"}]': ("Duplicate in union:array", "/2"),
    '{"type":"array"}': ("Array has no items type", ""),
    '{"type":"map"}': ("Map has no values type", ""),
    '{"type":"bytes","logicalType":"decimal"}': ("Invalid decimal precision: null", ""),
    '{"type":"bytes","logicalType":"decimal","precision":0}': ("Invalid decimal precision: 0", ""),
    '{"type":"bytes","logicalType":"decimal","precision":4,"scale":5}': ("Invalid decimal scale: 5", ""),
    '{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":5}': (
        "fixed(2) cannot store 5 digits",
        "",
    ),
    '{"type":{"type":"string"}}': ("No type", ""),
    '{"type":["null","int"]}': ("No type", ""),
    "{}": ("No type", ""),
    "null": ("Schema not yet supported: null", ""),
    "1": ("Schema not yet supported: 1", ""),
    '"nothing"': ("Undefined schema: nothing", ""),
    '{"type":"int"} x': ("not JSON", ""),
    "": ("not JSON", ""),
    "{'type':'int'}": ("not JSON", ""),
    record(field("string", default="\ud800")): ("an unpaired surrogate", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_an_invalid_schema_is_rejected_with_its_position(text: str) -> None:
    reason, path = REFUSED[text]
    with pytest.raises(InvalidSchema) as refused:
        parse(text, {})
    assert reason in refused.value.reason
    assert refused.value.path == path


@pytest.mark.parametrize("text", [t for t in REFUSED if "default" in t and "Enum" not in t and "x-y" not in t])
def test_a_stored_schema_keeps_its_defaults_and_names(text: str) -> None:
    reason, _ = REFUSED[text]
    if reason == "Invalid default":
        assert parse(text, {}, strict=False).canonical


def test_names_of_a_stored_schema_are_not_checked() -> None:
    assert parse(record(field(name="a-b"), namespace="x-y"), {}, strict=False).canonical


@pytest.mark.parametrize("text", NORMALIZED)
def test_normalization_sorts_unordered_parts(text: str) -> None:
    assert parse(text, {}).normalized() == NORMALIZED[text]


def test_references_are_written_by_name() -> None:
    child = f'{{"type":"record","name":"C","namespace":"o","fields":[{{"name":"e","type":{json.dumps(ENUM)}}}]}}'
    parent = '{"type":"record","name":"P","namespace":"o","fields":[{"name":"c","type":"C"},{"name":"e","type":"E"}]}'
    parsed = parse(parent, {"o.C": child})
    assert json.loads(parsed.canonical)["fields"][0]["type"] == "C"
    assert json.loads(parsed.resolved)["fields"][0]["type"]["name"] == "C"
    assert parse(parsed.resolved, {}).resolved == parsed.resolved


def test_an_invalid_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"reference o\.C"):
        parse('"o.C"', {"o.C": "{"})


@pytest.mark.parametrize("text", [t for t in CANONICAL if not t.startswith("/*") and t != "[]"])
def test_fastavro_reads_accepted_schemas(text: str) -> None:
    """The registry accepts only schemas that fastavro can use."""
    if "R2" in text or '"S"' in text:
        return  # fastavro does not support names before their definition
    fastavro.parse_schema(json.loads(parse(text, {}).canonical))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (1e7, "1.0E7"), (9999999.0, "9999999.0"),
        (1e-3, "0.001"), (9.999e-4, "9.999E-4"), (1.23456789e8, "1.23456789E8"), (1e20, "1.0E20"), (1e-5, "1.0E-5"),
        (-2.5e-10, "-2.5E-10"), (1.5e300, "1.5E300"), (float("inf"), '"Infinity"'), (123456.789, "123456.789"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert number(value) == text


def test_json_keeps_large_integers_and_control_characters() -> None:
    text = '{"a":123456789012345678901234567890,"b":"\\u001F\\n\\"\\\\é"}'
    assert dump(load(text)) == text
