"""Tags of records and fields, by path."""

import json
from typing import Any

import pytest

from headgate.registry.errors import InvalidSchema
from headgate.registry.model import SchemaType
from headgate.registry.service.schema_tags import FIELD, RECORD, TagChange, retagged, tags_of, with_tags_of

TAGS = "confluent:tags"
AVRO, JSON, PROTOBUF = SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF


def record(name: str, *fields: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def field(name: str, kind: Any = "int", *tags: str) -> dict[str, Any]:
    return {"name": name, "type": kind, **({TAGS: list(tags)} if tags else {})}


def paths(kind: SchemaType, schema: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return [(one.path, one.entity_type, one.tags) for one in tags_of(kind, text)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (record("R", field("a")), []),
        (record("R", field("a", "int", "X", "Y")), [("R.a", FIELD, ("X", "Y"))]),
        (record("R", field("a"), **{TAGS: ["X"]}), [("R", RECORD, ("X",))]),
        (record("R", field("a"), **{TAGS: []}), []),
        (record("R", field("a"), **{TAGS: "X"}), []),
        (record("R", field("a", "int", "X"), namespace="ns"), [("ns.R.a", FIELD, ("X",))]),
        (record("own.R", field("a", "int", "X"), namespace="ns"), [("own.R.a", FIELD, ("X",))]),
        # Nested records inherit the namespace.
        (record("R", field("a", record("I", field("b", "int", "X"))), namespace="ns"), [("ns.I.b", FIELD, ("X",))]),
        (record("own.R", field("a", record("I", field("b", "int", "X")))), [("own.I.b", FIELD, ("X",))]),
        (
            record("R", field("a", record("I", field("b", "int", "X"), namespace=""), "Y"), namespace="ns"),
            [("ns.R.a", FIELD, ("Y",)), ("I.b", FIELD, ("X",))],
        ),
        (
            [
                record("R", field("a", {"type": "array", "items": record("I", field("b", "int", "X"))})),
                record("S", field("a", ["null", {"type": "map", "values": record("J", field("b", "int", "Y"))}])),
            ],
            [("I.b", FIELD, ("X",)), ("J.b", FIELD, ("Y",))],
        ),
        ({"type": record("R", field("a", "int", "X"))}, [("R.a", FIELD, ("X",))]),
        ({"type": "error", "name": "E", "fields": [field("a", "int", "X")]}, [("E.a", FIELD, ("X",))]),
    ],
)
def test_tags_of_avro_schemas(schema: Any, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert paths(AVRO, schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({TAGS: ["X"]}, [("object", RECORD, ("X",))]),
        ({"properties": {"a": {TAGS: ["X"]}, "b": True}}, [("object.a", FIELD, ("X",))]),
        (
            {"properties": {"a": {"properties": {"b": {TAGS: ["X"]}}, TAGS: ["Y"]}}},
            [("object.a", FIELD, ("Y",)), ("object.a.object", RECORD, ("Y",)), ("object.a.object.b", FIELD, ("X",))],
        ),
        ({"properties": [TAGS]}, []),
        ([TAGS], []),
    ],
)
def test_tags_of_json_schemas(schema: Any, expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert paths(JSON, schema) == expected


def test_tags_are_added_once_and_removed() -> None:
    text = json.dumps(record("R", field("a", "int", "X"), field("b")))
    added = retagged(AVRO, text, (TagChange("R.a", FIELD, ("X", "Y")), TagChange("R", RECORD, ("Z",))), ())
    assert paths(AVRO, added) == [("R", RECORD, ("Z",)), ("R.a", FIELD, ("X", "Y"))]
    removed = retagged(AVRO, added, (), (TagChange("R.a", FIELD, ("X", "other")), TagChange("R", RECORD, ("Z",))))
    assert paths(AVRO, removed) == [("R.a", FIELD, ("Y",))]
    assert TAGS not in json.loads(removed)
    assert paths(AVRO, retagged(AVRO, text, (), (TagChange("R.b", FIELD, ("X",)),))) == [("R.a", FIELD, ("X",))]
    for wrong in (TagChange("R.c", FIELD, ("X",)), TagChange("R.a", RECORD, ("X",))):
        with pytest.raises(InvalidSchema, match="No matching path"):
            retagged(AVRO, text, (wrong,), ())
        with pytest.raises(InvalidSchema, match="No matching path"):
            retagged(AVRO, text, (), (wrong,))


PROTO = 'syntax = "proto3"; message M { string a = 1; int32 b = 2; }'


def test_tags_of_protobuf_schemas() -> None:
    assert paths(PROTOBUF, PROTO) == []
    added = retagged(PROTOBUF, PROTO, (TagChange(".M.a", FIELD, ("X", "Y")), TagChange("M", RECORD, ("Z",))), ())
    assert paths(PROTOBUF, added) == [("M", RECORD, ("Z",)), ("M.a", FIELD, ("X", "Y"))]
    again = retagged(
        PROTOBUF,
        added,
        (TagChange("M.a", FIELD, ("X", "W")),),
        (TagChange("M.a", FIELD, ("Y",)), TagChange("M", RECORD, ("Z",))),
    )
    assert paths(PROTOBUF, again) == [("M.a", FIELD, ("X", "W"))]
    for wrong in (TagChange("M.c", FIELD, ("X",)), TagChange("M.a", RECORD, ("X",))):
        with pytest.raises(InvalidSchema, match="No matching path"):
            retagged(PROTOBUF, PROTO, (wrong,), ())
        with pytest.raises(InvalidSchema, match="No matching path"):
            retagged(PROTOBUF, PROTO, (), (wrong,))


@pytest.mark.parametrize(("kind", "text"), [(AVRO, json.dumps(record("M", field("a"), field("b")))), (PROTOBUF, PROTO)])
def test_tags_of_an_earlier_version_are_kept_where_their_entity_exists(kind: SchemaType, text: str) -> None:
    earlier = (TagChange("M.a", FIELD, ("X",)), TagChange("M.gone", FIELD, ("Y",)), TagChange("M", RECORD, ("Z",)))
    assert paths(kind, with_tags_of(kind, text, earlier)) == [("M", RECORD, ("Z",)), ("M.a", FIELD, ("X",))]
    assert with_tags_of(kind, text, earlier[1:2]) == text
