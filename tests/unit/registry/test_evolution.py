"""Changes between two schemas: their names, their positions and what they break."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.levels import EarlierVersion, check
from headgate.registry.evolution import Evolution, compare
from headgate.registry.evolution.difference import DIFFERENCES_MAX
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Level, SchemaType

CASES = Path(__file__).parents[2] / "cases"
LANGUAGES = Languages()
TABLES = [("avro", SchemaType.AVRO), ("json_schema", SchemaType.JSON), ("protobuf", SchemaType.PROTOBUF)]


def parse(type: SchemaType, schema: Any, case: Mapping[str, Any] = {}, side: str = "") -> ParsedSchema:
    references = case.get("references") or case.get(f"{side}_references") or {}
    return LANGUAGES.parse(
        type, text(type, schema), {n: text(type, each) for n, each in references.items()}, strict=False
    )


def text(type: SchemaType, schema: Any) -> str:
    return str(schema) if type is SchemaType.PROTOBUF else json.dumps(schema)


def evolution(type: SchemaType, old: Any, new: Any) -> Evolution:
    return compare(LANGUAGES, parse(type, old), parse(type, new))


def told(found: Evolution) -> list[str]:
    """`kind path`, with b and f for broken directions."""
    marks = [("b" if one.backward else "") + ("f" if one.forward else "") for one in found.changes]
    return [f"{one.kind} {one.path} {mark}".strip() for one, mark in zip(found.changes, marks, strict=True)]


@pytest.mark.parametrize(("table", "type"), TABLES)
def test_every_incompatibility_of_the_tables_belongs_to_a_change(table: str, type: SchemaType) -> None:
    for case in json.loads((CASES / f"{table}.json").read_text("utf-8")):
        old, new = (parse(type, case[side], case, side) for side in ("original", "update"))
        found = compare(LANGUAGES, old, new)
        for direction, reader, writer in (("backward", new, old), ("forward", old, new)):
            expected = {(one.kind, one.path) for one in LANGUAGES.check(reader, writer, Policy.STRICT)}
            attributed = {(one.kind, one.path) for change in found.changes for one in getattr(change, direction)}
            assert attributed == expected, (case["name"], direction)
        assert found.changes or old.canonical == new.canonical, case["name"]


def order(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": list(fields), **more}


def field(name: str, type: Any = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
ADDRESS = {"type": "record", "name": "Address", "fields": [field("zip", "int")]}
WIDER_ADDRESS = {**ADDRESS, "fields": [field("zip", "long")]}

AVRO = [
    ("field added", order(), order(field("a")), ["field added a b"]),
    ("field with default added", order(), order(field("a", default="")), ["field added a"]),
    ("field removed", order(field("a")), order(), ["field removed a f"]),
    (
        "field renamed with an alias",
        order(field("a")),
        order(field("b", aliases=["a"])),
        ["field renamed with alias b f"],
    ),
    ("type widened", order(field("a", "int")), order(field("a", "long")), ["type widened a f"]),
    ("type narrowed", order(field("a", "double")), order(field("a", "float")), ["type narrowed a b"]),
    ("made nullable", order(field("a")), order(field("a", ["null", "string"])), ["union branch added a f"]),
    ("default changed", order(field("a", default="x")), order(field("a", default="y")), ["default changed a"]),
    ("default removed", order(field("a", default="x")), order(field("a")), ["default removed a"]),
    ("doc only", order(field("a", doc="x"), doc="y"), order(field("a")), ["doc changed Order", "doc changed a"]),
    ("order of fields", order(field("a"), field("b")), order(field("b"), field("a")), ["fields reordered Order"]),
    (
        "symbols",
        order(field("a", COLOUR)),
        order(field("a", {**COLOUR, "symbols": ["RED", "GREEN"]})),
        ["symbols added a f", "symbols removed a b"],
    ),
    (
        "nested in an array, a map and a union",
        order(field("a", {"type": "array", "items": {"type": "map", "values": ["null", ADDRESS]}})),
        order(field("a", {"type": "array", "items": {"type": "map", "values": [WIDER_ADDRESS, "null"]}})),
        ["union reordered a[]{}", "type widened a[]{}.zip f"],
    ),
    (
        "logical type",
        order(field("a", "long")),
        order(field("a", {"type": "long", "logicalType": "timestamp-millis"})),
        ["logical type changed a"],
    ),
    ("type renamed", order(), {**order(), "name": "Purchase"}, ["type renamed Purchase bf"]),
    ("aliases", order(), order(aliases=["Purchase"]), ["aliases changed Order"]),
]  # fmt: skip

CLOSED = {"type": "object", "additionalProperties": False}
JSON = [
    (
        "property added to a closed object",
        {**CLOSED, "properties": {}},
        {**CLOSED, "properties": {"a": {"type": "string"}}},
        ["property added #/properties/a f"],
    ),
    (
        "required property added",
        {**CLOSED, "properties": {}},
        {**CLOSED, "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ["required property added #/properties/a bf"],
    ),
    (
        "made required",
        {"properties": {"a": {"type": "string"}}},
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        ["property made required #/required/a b"],
    ),
    (
        "limits and annotations",
        {"type": "string", "maxLength": 5, "title": "x"},
        {"type": "string", "maxLength": 3, "title": "y"},
        ["maxLength changed #/maxLength b", "title changed #/title"],
    ),
    ("type widened", {"type": "integer"}, {"type": "number"}, ["type widened #/type f"]),
    (
        "through a reference",
        {"properties": {"a": {"$ref": "#/definitions/t"}}, "definitions": {"t": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#/definitions/t"}}, "definitions": {"t": {"type": "integer"}}},
        ["type changed #/properties/a/type bf"],
    ),
    (
        "a recursive schema",
        {"properties": {"next": {"$ref": "#"}, "a": {"maxLength": 3, "type": "string"}}},
        {"properties": {"next": {"$ref": "#"}, "a": {"maxLength": 5, "type": "string"}}},
        ["maxLength changed #/properties/a/maxLength f"],
    ),
    (
        "a member of a combination",
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"type": "integer"}]},
        ["oneOf member removed #/oneOf/0 b"],
    ),
]

PROTO = 'syntax = "proto3"; message Order { %s }'
PROTOBUF = [
    ("field added", PROTO % "", PROTO % "int32 a = 1;", ["field added #/Order/1"]),
    ("field renamed", PROTO % "int32 a = 1;", PROTO % "int32 b = 1;", ["field renamed #/Order/1"]),
    ("type widened", PROTO % "int32 a = 1;", PROTO % "int64 a = 1;", ["field type changed #/Order/1"]),
    ("type changed", PROTO % "int32 a = 1;", PROTO % "string a = 1;", ["field scalar kind changed #/Order/1 bf"]),
    (
        "option only",
        PROTO % "int32 a = 1;",
        PROTO % "int32 a = 1 [deprecated = true];",
        ["field options changed #/Order/1"],
    ),
]
TOLD = [
    *(pytest.param(SchemaType.AVRO, *case[1:], id=f"Avro, {case[0]}") for case in AVRO),
    *(pytest.param(SchemaType.JSON, *case[1:], id=f"JSON Schema, {case[0]}") for case in JSON),
    *(pytest.param(SchemaType.PROTOBUF, *case[1:], id=f"Protobuf, {case[0]}") for case in PROTOBUF),
]


@pytest.mark.parametrize(("type", "old", "new", "expected"), TOLD)
def test_a_change_has_a_name_a_position_and_its_effect(
    type: SchemaType, old: Any, new: Any, expected: list[str]
) -> None:
    assert told(evolution(type, old, new)) == expected


def test_a_change_breaks_only_levels_of_its_direction() -> None:
    found = evolution(SchemaType.AVRO, order(field("a")), order())
    assert [level for level in Level if found.breaks(level)] == [
        *(Level.FORWARD, Level.FORWARD_TRANSITIVE, Level.FULL, Level.FULL_TRANSITIVE)
    ]


def test_another_language_breaks_both_directions() -> None:
    found = compare(LANGUAGES, parse(SchemaType.AVRO, order()), parse(SchemaType.JSON, {}))
    assert told(found) == ["language changed  bf"]


def test_the_number_of_changes_is_limited() -> None:
    many = order(*(field(f"f{number}", default="") for number in range(DIFFERENCES_MAX + 1)))
    found = evolution(SchemaType.AVRO, order(), many)
    assert (len(found.changes), found.is_complete) == (DIFFERENCES_MAX, False)


def test_mutual_references_of_json_schemas_do_not_multiply_the_work() -> None:
    def schema(**more: Any) -> dict[str, Any]:
        names = [f"t{number}" for number in range(12)]
        properties = {name: {"$ref": f"#/definitions/{name}"} for name in names}
        return {"properties": properties, "definitions": {n: {**more, "properties": properties} for n in names}}

    assert not evolution(SchemaType.JSON, schema(maxLength=1), schema(maxLength=2)).is_complete
    (change,) = evolution(SchemaType.JSON, schema(), {**schema(), "title": "x"}).changes[-1:]
    assert (change.kind, change.new) == ("not compared further", "the references have too many paths")


def test_a_changed_import_is_a_change() -> None:
    text = 'syntax = "proto3"; import "b.proto"; message A { B b = 1; }'
    imported = 'syntax = "proto3"; message B { %s c = 1; }'
    old, new = (LANGUAGES.parse(SchemaType.PROTOBUF, text, {"b.proto": imported % type}) for type in ("int32", "int64"))
    assert told(compare(LANGUAGES, old, new)) == ["referenced file changed b.proto"]


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        (order(field("a")), order(), "keep the field a, or first register"),
        (COLOUR, {**COLOUR, "symbols": ["RED", "BLUE", "GREEN"]}, r"do not add the symbols \[GREEN\]"),
        (order(field("a", "int")), order(field("a", "long")), "undo this change"),
    ],
)
def test_forward_advice_is_about_the_new_schema(old: Any, new: Any, advice: str) -> None:
    one, other = (parse(SchemaType.AVRO, schema) for schema in (old, new))
    checked = check(LANGUAGES, Level.FORWARD, Policy.STRICT, other, [EarlierVersion(1, one)])
    (found,) = [each.as_json() for each in checked.found]
    assert re.match(advice, found["advice"])
    assert (found["direction"], found["version"]) == ("old-reads-new", 1)
