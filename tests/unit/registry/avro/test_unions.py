"""Unions of many records: each branch is matched by name, so the work grows with the number of branches."""

import json
from typing import Any

import pytest

from headgate.registry import limits
from headgate.registry.compatibility.avro import check
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.avro import AvroSchema, parse


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
    """A budget for a thousand branches that anything quadratic exceeds."""
    monkeypatch.setattr(limits, "compatibility_steps_max", 50_000)
    monkeypatch.setattr(limits, "compatibility_pairs_max", 10_000)


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
def test_records_of_one_name_in_many_namespaces_are_compared_with_their_namesake_first() -> None:
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


def test_a_branch_moves_on_to_the_next_candidate_when_the_first_one_fails_late() -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "x", "fields": [{"name": "v", "type": ["null", "string"]}]}
    broken = {**inner, "fields": [{"name": "v", "type": ["null", "int"]}]}
    holder = {"type": "record", "name": "Holder", "namespace": "x", "fields": [{"name": "i", "type": inner}]}
    other = {"type": "record", "name": "Holder", "namespace": "y", "fields": [{"name": "i", "type": inner}]}
    writer = parse(json.dumps([holder]), {})
    only_the_namesake = parse(json.dumps([{**holder, "fields": [{"name": "i", "type": broken}]}]), {})
    with_another = [{**holder, "fields": [{"name": "i", "type": {**broken, "namespace": "z"}}]}, other]
    assert [one.kind for one in check(only_the_namesake, writer)] == ["MISSING_UNION_BRANCH"]
    assert check(parse(json.dumps(with_another), {}), writer) == []


def test_unions_that_multiply_end_with_a_clear_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def schema(kind: str) -> AvroSchema:
        fields = [{"name": "value", "type": ["null", kind]}]
        branches = [{"type": "record", "name": "Event", "namespace": f"n{n}", "fields": fields} for n in range(50)]
        return parse(json.dumps(branches), {})

    assert len(check(schema("int"), schema("long"))) == 50
    monkeypatch.setattr(limits, "compatibility_pairs_max", 1000)
    with pytest.raises(InvalidSchema, match="too intertwined"):
        check(schema("int"), schema("long"))
    monkeypatch.setattr(limits, "compatibility_pairs_max", 10_000)
    monkeypatch.setattr(limits, "compatibility_steps_max", 1000)
    with pytest.raises(InvalidSchema, match="too intertwined"):
        check(schema("int"), schema("long"))


def test_fragments_of_large_types_are_cut_without_writing_the_rest() -> None:
    def schema(kind: str) -> AvroSchema:
        fields = [{"name": f"field{n}", "type": kind} for n in range(100)]
        return parse(json.dumps({"type": "record", "name": "Wide", "fields": fields}), {})

    def wrapped(inner: AvroSchema) -> AvroSchema:
        return parse(f'[{inner.canonical},{{"type":"enum","name":"E","symbols":["A","B"]}}]', {})

    [found] = check(wrapped(schema("int")), wrapped(schema("long")))
    assert found.reader == f"{wrapped(schema('int')).canonical[:200]}..."
    assert found.writer == f"{wrapped(schema('long')).canonical[:200]}..."
