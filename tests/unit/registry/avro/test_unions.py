"""Unions of many records: each branch is matched by name, so the work grows with the number of branches."""

import json
from typing import Any

import pytest

from headgate.registry import limits
from headgate.registry.compatibility.avro import check
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro import AvroSchema, parse

# A quarter of a second of work for 200 branches. The comparison of all pairs takes more than ten times as many steps.
STEPS_MAX = 250_000


def events(count: int, kind: str, *, nullable: int = 0, namespace: str = "shop") -> AvroSchema:
    fields: list[dict[str, Any]] = [{"name": "value", "type": kind}]
    fields += [{"name": f"optional{n}", "type": ["null", kind], "default": None} for n in range(nullable)]
    branches = [
        {"type": "record", "name": f"Event{n}", "namespace": namespace.format(n=n), "fields": fields}
        for n in range(count)
    ]
    return parse(json.dumps(branches), {})


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget for a thousand branches, which a quadratic algorithm exceeds."""
    monkeypatch.setattr(limits, "COMPATIBILITY_STEPS_MAX", 50_000)
    monkeypatch.setattr(limits, "COMPATIBILITY_PAIRS_MAX", 10_000)


@pytest.mark.usefixtures("linear")
@pytest.mark.parametrize("nullable", [0, 2])
def test_a_thousand_records_are_compared_in_linear_work(nullable: int) -> None:
    narrow, wide = events(1000, "int", nullable=nullable), events(1000, "long", nullable=nullable)
    assert check(wide, narrow) == []
    found = check(narrow, wide)
    assert [(one.kind, one.path) for one in found] == [("MISSING_UNION_BRANCH", f"/{n}") for n in range(1000)]


@pytest.mark.usefixtures("linear")
def test_branches_that_moved_to_another_namespace_are_found_by_their_unqualified_name() -> None:
    assert check(events(1000, "long", namespace="shop.v2"), events(1000, "int")) == []


@pytest.mark.usefixtures("linear")
def test_records_with_one_name_in_many_namespaces_are_compared_with_the_same_full_name_first() -> None:
    def schema(kind: str) -> AvroSchema:
        fields = [{"name": "value", "type": kind}]
        branches = [{"type": "record", "name": "Event", "namespace": f"n{n}", "fields": fields} for n in range(1000)]
        return parse(json.dumps(branches), {})

    assert check(schema("long"), schema("int")) == []


@pytest.mark.usefixtures("linear")
def test_mutually_recursive_records_are_compared_in_linear_work() -> None:
    def schema(kind: str) -> AvroSchema:
        branches = [
            {
                "type": "record",
                "name": f"Node{n}",
                "fields": [
                    {"name": "value", "type": kind},
                    {"name": "next", "type": ["null", f"Node{n}", *([f"Node{n - 1}"] if n else [])]},
                ],
            }
            for n in range(1000)
        ]
        return parse(json.dumps(branches), {})

    assert check(schema("long"), schema("int")) == []
    assert len(check(schema("int"), schema("long"))) == 1000


def test_a_branch_uses_the_next_match_if_the_first_one_fails_late() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "x", "fields": [{"name": "v", "type": ["null", "string"]}]}
    broken = {**inner, "fields": [{"name": "v", "type": ["null", "int"]}]}
    holder = {"type": "record", "name": "Holder", "namespace": "x", "fields": [{"name": "i", "type": inner}]}
    other = {"type": "record", "name": "Holder", "namespace": "y", "fields": [{"name": "i", "type": inner}]}
    writer = parse(json.dumps([holder]), {})
    only_the_namesake = parse(json.dumps([{**holder, "fields": [{"name": "i", "type": broken}]}]), {})
    with_another = [{**holder, "fields": [{"name": "i", "type": {**broken, "namespace": "z"}}]}, other]
    assert [one.kind for one in check(only_the_namesake, writer)] == ["MISSING_UNION_BRANCH"]
    assert check(parse(json.dumps(with_another), {}), writer) == []


def namesakes(count: int, kind: str, *, depth: int = 0, is_recursive: bool = False) -> AvroSchema:
    """Records with the same unqualified name. The different type is nested in `depth` records."""

    def fields(n: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [
            {"name": "value", "type": ["null", kind]},
            {"name": f"only{n}", "type": "int", "default": 0},
        ]
        if is_recursive:
            found.append({"name": "next", "type": ["null", f"n{n}.Event"]})
        for level in range(depth):
            inner = {"type": "record", "name": f"Inner{level}", "namespace": f"n{n}", "fields": found}
            found = [{"name": "inner", "type": inner}]
        return found

    branches = [{"type": "record", "name": "Event", "namespace": f"n{n}", "fields": fields(n)} for n in range(count)]
    return parse(json.dumps(branches), {})


@pytest.mark.parametrize("is_recursive", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_hundreds_of_incompatible_records_that_share_one_name_are_compared(depth: int, is_recursive: bool) -> None:
    narrow, wide = (namesakes(200, kind, depth=depth, is_recursive=is_recursive) for kind in ("int", "long"))
    found = check(narrow, wide, steps_max=STEPS_MAX)
    assert [(one.kind, one.path) for one in found] == [("MISSING_UNION_BRANCH", f"/{n}") for n in range(200)]
    assert check(wide, narrow) == []


def test_a_field_that_only_the_reader_has_is_found_among_hundreds_of_equal_names() -> None:
    def schema(*names: str) -> AvroSchema:
        fields = [{"name": name, "type": "int"} for name in (*(f"same{n}" for n in range(30)), *names)]
        branches = [{"type": "record", "name": "Event", "namespace": f"n{n}", "fields": fields} for n in range(400)]
        return parse(json.dumps(branches), {})

    assert len(check(schema("added"), schema())) == 400
    assert check(schema(), schema("added")) == []


def test_the_last_of_many_records_with_one_name_can_read_a_branch() -> None:
    reader = json.loads(namesakes(300, "int").canonical)
    fitting = {"type": "record", "name": "Event", "namespace": "fitting", "fields": [{"name": "value", "type": "long"}]}
    nullable = {**fitting, "fields": [{"name": "value", "type": ["null", "long"]}]}
    writer = namesakes(300, "long")
    assert check(parse(json.dumps([*reader, nullable]), {}), writer) == []
    assert len(check(parse(json.dumps([*reader, fitting]), {}), writer)) == 300


def test_an_alias_distinguishes_writers_of_equal_structure() -> None:
    def named(name: str, **more: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": "value", "type": ["null", "int"]}], **more}

    other = {**named("b.Other"), "fields": [{"name": "value", "type": ["null", "string"]}]}
    reader = parse(json.dumps([other, named("c.New", aliases=["a.Event"])]), {})
    writer = parse(json.dumps([named("b.Event"), named("a.Event"), named("d.Event")]), {})
    assert [one.path for one in check(reader, writer)] == ["/0", "/2"]


def test_unions_that_multiply_have_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = namesakes(50, "int"), namesakes(50, "long")
    assert len(check(narrow, wide)) == 50
    monkeypatch.setattr(limits, "COMPATIBILITY_STEPS_MAX", 1000)
    with pytest.raises(InvalidSchema, match="too complex"):
        check(narrow, wide)
    monkeypatch.setattr(limits, "COMPATIBILITY_STEPS_MAX", 1_000_000)
    deep, wider = namesakes(10, "int", depth=60), namesakes(10, "long", depth=60)
    assert len(check(deep, wider)) == 10
    monkeypatch.setattr(limits, "COMPATIBILITY_PAIRS_MAX", 1000)
    with pytest.raises(InvalidSchema, match="too complex"):
        check(deep, wider)


def test_fragments_of_large_types_are_truncated_without_writing_the_rest() -> None:
    def schema(kind: str) -> AvroSchema:
        fields = [{"name": f"field{n}", "type": kind} for n in range(100)]
        return parse(json.dumps({"type": "record", "name": "Wide", "fields": fields}), {})

    def wrapped(inner: AvroSchema) -> AvroSchema:
        return parse(f'[{inner.canonical},{{"type":"enum","name":"E","symbols":["A","B"]}}]', {})

    [found] = check(wrapped(schema("int")), wrapped(schema("long")))
    assert found.reader == f"{wrapped(schema('int')).canonical[:200]}..."
    assert found.writer == f"{wrapped(schema('long')).canonical[:200]}..."
