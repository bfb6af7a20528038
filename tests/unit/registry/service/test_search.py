"""Fields of schemas, and pages of search results."""

import json
from typing import Any

import pytest

from headgate.registry.model import Content, Metadata, SchemaType
from headgate.registry.service.search import Query, fields_of, search_schemas
from headgate.registry.storage.base import Deleted, StoredVersion
from headgate.registry.subjects import Subject


def content(kind: SchemaType, schema: Any, **metadata: Any) -> Content:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Content(kind, text, (), Metadata(**metadata) if metadata else None, None)


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        ('"string"', []),
        (
            record(("a", "int"), ("b", ["null", "string"])),
            [("a", "a", "int"), ("b", "b", "null"), ("b", "b", "string")],
        ),
        (
            record(("a", record(("b", "int"), name="Inner"))),
            [("a", "a", "record"), ("a", "a", "Inner"), ("a.b", "b", "int")],
        ),
        (
            record(("a", {"type": "array", "items": record(("b", "int"), name="Inner")})),
            [("a", "a", "array"), ("a.b", "b", "int")],
        ),
        (
            record(("a", ["null", {"type": "map", "values": record(("b", "int"), name="Inner")}])),
            [("a", "a", "null"), ("a", "a", "map"), ("a.b", "b", "int")],
        ),
        ([record(("a", "int")), record(("b", "int"), name="S")], [("a", "a", "int"), ("b", "b", "int")]),
        ({"type": record(("a", "int"))}, [("a", "a", "int")]),
        ({"type": "record", "name": "R", "fields": None}, []),
        ({"type": "record", "name": "R", "fields": ["a", {"type": "int"}, {"name": 5}]}, []),
    ],
)
def test_fields_of_avro_schemas(schema: Any, fields: list[tuple[str, str, str]]) -> None:
    assert fields_of(content(SchemaType.AVRO, schema)) == fields


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (True, []),
        ({"properties": {"a": {"type": "integer"}, "b": True}}, [("a", "a", "integer"), ("b", "b", "any")]),
        ({"properties": {"a": {"type": ["null", "string"]}}}, [("a", "a", "null"), ("a", "a", "string")]),
        (
            {"properties": {"a": {"properties": {"b": {}}}}},
            [("a", "a", "any"), ("a.b", "b", "any")],
        ),
        ({"allOf": [{"properties": {"a": {}}}]}, [("a", "a", "any")]),
        ({"$defs": {"d": {"properties": {"a": {}}}}}, [("a", "a", "any")]),
        ({"properties": ["a"]}, []),
    ],
)
def test_fields_of_json_schemas(schema: Any, fields: list[tuple[str, str, str]]) -> None:
    assert fields_of(content(SchemaType.JSON, schema)) == fields


def test_fields_of_protobuf_schemas() -> None:
    text = 'syntax = "proto3"; message M { string a = 1; N b = 2; } message N { repeated int32 c = 1; }'
    assert fields_of(content(SchemaType.PROTOBUF, text)) == [
        ("M.a", "a", "string"),
        ("M.b", "b", "N"),
        ("N.c", "c", "int32"),
    ]


class FakeStore:
    """Versions of subjects. A search reads those that contain a text."""

    def __init__(self, *versions: StoredVersion) -> None:
        self.versions = versions

    def containing(self, text: str) -> list[StoredVersion]:
        return [each for each in self.versions if text.lower() in str(each.content).lower()]

    def walk(self, selection: Any, deleted: Deleted) -> list[StoredVersion]:
        assert (selection.context, deleted) == (None, Deleted.HIDDEN)
        return list(self.versions)

    def latest(self, subject: Subject) -> StoredVersion | None:
        found = [each for each in self.versions if each.subject == subject]
        return found[-1] if found and subject.name != "gone" else None


def version(subject: str, number: int, stored: Content) -> StoredVersion:
    return StoredVersion(Subject.parse(subject), number, 1, stored, b"", 0)


A = content(SchemaType.AVRO, record(("a", "int")))
B = content(SchemaType.AVRO, record(("b", "string")), tags={"R.b": ("PII",)})


def found(store: FakeStore, offset: int = 0, limit: int = 100, **query: Any) -> list[tuple[str, int]]:
    reader: Any = store
    matches = search_schemas(reader, Query(**query), offset, limit)
    return [(match.version.subject.name, match.version.version) for match in matches]


def test_only_the_latest_versions_are_searched_by_default() -> None:
    store = FakeStore(version("s", 1, A), version("s", 2, B), version("gone", 1, A))
    assert found(store) == [("s", 2)]
    assert found(store, all_versions=True) == [("s", 1), ("s", 2), ("gone", 1)]
    assert found(store, field="a") == []
    assert found(store, field="a", all_versions=True) == [("s", 1), ("gone", 1)]


def test_all_criteria_must_match() -> None:
    store = FakeStore(version("one", 1, A), version("two", 1, B))
    assert found(store, field="B") == [("two", 1)]
    assert found(store, field="b", field_type="INT") == []
    assert found(store, field_type="String") == [("two", 1)]
    assert found(store, text="NAME") == [("one", 1), ("two", 1)]
    assert found(store, text="name", subject="TW") == [("two", 1)]
    assert found(store, type=SchemaType.JSON) == []
    assert found(store, type=SchemaType.AVRO, tag="PII") == [("two", 1)]
    assert found(store, tag="pii") == []


@pytest.mark.parametrize(
    ("offset", "limit", "numbers"),
    [(0, 1, [0]), (0, 5, [0, 1, 2]), (1, 1, [1]), (2, 2, [2]), (3, 1, []), (0, 3, [0, 1, 2])],
)
def test_results_have_pages(offset: int, limit: int, numbers: list[int]) -> None:
    store = FakeStore(*(version(f"s{number}", 1, A) for number in range(3)), version("other", 1, B))
    assert found(store, offset, limit, field="a") == [(f"s{number}", 1) for number in numbers]


def test_matching_fields_are_reported() -> None:
    reader: Any = FakeStore(version("s", 1, content(SchemaType.AVRO, record(("a", record(("a", "int"), name="I"))))))
    assert [match.fields for match in search_schemas(reader, Query(field="a"), 0, 9)] == [("a", "a", "a.a")]
    assert [match.fields for match in search_schemas(reader, Query(text="a"), 0, 9)] == [()]
