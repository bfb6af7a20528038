"""References between schemas."""

import json

import pytest

from tests.contract.registry.schemas import record
from tests.live.registry import RegistryApi, error_of

CHILD = record("id", name="Child", namespace="ns")
PARENT = json.dumps(
    {"type": "record", "name": "Parent", "namespace": "ns", "fields": [{"name": "child", "type": "ns.Child"}]},
    separators=(",", ":"),
)
RESOLVED = json.dumps(
    {
        "type": "record",
        "name": "Parent",
        "namespace": "ns",
        "fields": [
            {"name": "child", "type": {"type": "record", "name": "Child", "fields": [{"name": "id", "type": "string"}]}}
        ],
    }
)


def reference(subject: str, version: int = 1, name: str = "ns.Child") -> list[dict[str, object]]:
    return [{"name": name, "subject": subject, "version": version}]


@pytest.mark.parametrize(("context", "target_context"), [("", ""), (":.c:", ":.c:"), ("", ":.c:")])
def test_a_schema_refers_to_another_subject(free_api: RegistryApi, context: str, target_context: str) -> None:
    child, parent = f"{target_context}child", f"{context}parent"
    free_api.register(child, CHILD)
    id = free_api.register(parent, PARENT, references=reference(child))
    found = free_api.get(f"/schemas/ids/{id}?subject={parent}").json()
    assert (found["subject"], found["version"]) == (parent, 1)
    assert found["references"] == reference(child)
    assert free_api.get(f"/subjects/{child}/versions/1/referencedby").json() == [id]
    assert free_api.post(f"/subjects/{parent}", {"schema": RESOLVED}).json()["id"] == id
    answer = free_api.delete(f"/subjects/{child}/versions/1")
    assert error_of(answer) == (422, 42206)
    assert answer.json()["message"] == (
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={child},version=1}}."
    )
    assert error_of(free_api.delete(f"/subjects/{child}")) == (422, 42206)
    assert free_api.delete(f"/subjects/{parent}/versions/1").json() == 1
    assert free_api.get(f"/subjects/{child}/versions/1/referencedby").json() == []
    assert free_api.delete(f"/subjects/{child}/versions/1").json() == 1
    assert error_of(free_api.delete(f"/subjects/{child}/versions/1?permanent=true")) == (422, 42206)
    free_api.delete(f"/subjects/{parent}?permanent=true")
    assert free_api.delete(f"/subjects/{child}/versions/1?permanent=true").json() == 1


def test_referrers_are_found_by_bare_and_qualified_subject(free_api: RegistryApi) -> None:
    free_api.register("s", record("a"))
    for spelling in ("referencedby", "referencedBy", "referencedBy/"):
        assert free_api.get(f"/subjects/s/versions/1/{spelling}").json() == []


def test_a_bare_reference_belongs_to_its_schemas_context(free_api: RegistryApi) -> None:
    free_api.register(":.c:child", CHILD)
    id = free_api.register(":.c:parent", PARENT, references=reference("child"))
    plain = free_api.get("/subjects/:.c:parent/versions/1").json()
    assert plain["references"][0]["subject"] == "child"
    shown = free_api.get("/subjects/:.c:parent/versions/1?referenceFormat=qualified").json()
    assert shown["references"][0]["subject"] == ":.c:child"
    shown = free_api.get(f"/schemas/ids/{id}?subject=:.c:parent&referenceFormat=qualified").json()
    assert shown["references"][0]["subject"] == ":.c:child"
    assert free_api.get("/subjects/:.c:child/versions/1/referencedby").json() == [id]


def test_references_are_inlined_on_request(api: RegistryApi) -> None:
    api.register("child", CHILD)
    api.register("parent", PARENT, references=reference("child"))
    resolved = api.get("/subjects/parent/versions/1?format=resolved").json()
    assert json.loads(resolved["schema"]) == json.loads(RESOLVED)
    assert resolved["guid"] == api.get("/subjects/parent/versions/1").json()["guid"]


def test_references_are_resolved_through_several_subjects(api: RegistryApi) -> None:
    enum = {"type": "enum", "name": "Currency", "namespace": "m.c", "symbols": ["EUR", "USD"]}
    api.register("shared", enum)
    for name in ("Decreased", "Updated"):
        text = record(("currency", {"type": "m.c.Currency"}), name=name, namespace="m")
        api.register(name, text, references=reference("shared", name="m.c.Currency"))
    union = '["m.Decreased","m.Updated"]'
    both = [*reference("Decreased", name="m.Decreased"), *reference("Updated", name="m.Updated")]
    id = api.register("root", union, references=both)
    found = api.get(f"/schemas/ids/{id}").json()
    assert found["schema"] == union
    assert found["references"] == both


def test_an_unknown_reference_is_rejected(api: RegistryApi) -> None:
    answer = api.try_register("parent", PARENT, references=reference("child"))
    assert error_of(answer) == (422, 42201)
    assert 'No schema reference found for subject "child" and version 1' in answer.json()["message"]
    assert error_of(api.try_register("parent", PARENT)) == (422, 42201)
    api.register("child", CHILD)
    assert error_of(api.try_register("parent", PARENT, references=reference("child", 2))) == (422, 42201)
    api.delete("/subjects/child")
    assert error_of(api.try_register("parent", PARENT, references=reference("child"))) == (422, 42201)


def test_minus_one_refers_to_the_latest_version(api: RegistryApi) -> None:
    api.register("child", CHILD)
    api.register("parent", PARENT, references=reference("child", -1))
    assert api.get("/subjects/parent/versions/1").json()["references"] == reference("child", 1)


@pytest.mark.parametrize(
    "broken", [{"name": "x"}, {"subject": "child", "version": 1}, {"name": "x", "subject": "child", "version": 0}]
)
def test_an_incomplete_reference_is_rejected(api: RegistryApi, broken: dict[str, object]) -> None:
    api.register("child", CHILD)
    assert error_of(api.try_register("parent", PARENT, references=[broken])) == (422, 42201)


def test_circular_references_are_rejected(free_api: RegistryApi) -> None:
    free_api.register("one", CHILD)
    free_api.register("two", record("x", name="Two"), references=reference("one"))
    free_api.mode("IMPORT", "", "?force=true")
    body = [{"name": "Two", "subject": "two", "version": 1}]
    answer = free_api.try_register("one", record("y", name="Child", namespace="ns"), references=body, id=9, version=1)
    assert answer.status_code in (200, 422)
    free_api.mode("READWRITE")
    answer = free_api.try_register("three", '"string"', references=body)
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert "is circular" in answer.json()["message"]


def test_json_and_protobuf_schemas_have_references_too(api: RegistryApi) -> None:
    api.register("c", '{"type":"string"}', schemaType="JSON")
    api.register(
        "j",
        '{"type":"object","properties":{"c":{"$ref":"child.json"}}}',
        schemaType="JSON",
        references=[{"name": "child.json", "subject": "c", "version": 1}],
    )
    api.register("pc", 'syntax = "proto3"; package p; message C { int32 a = 1; }', schemaType="PROTOBUF")
    api.register(
        "p",
        'syntax = "proto3"; package q; import "c.proto"; message P { p.C c = 1; }',
        schemaType="PROTOBUF",
        references=[{"name": "c.proto", "subject": "pc", "version": 1}],
    )
    assert api.get("/subjects/c/versions/1/referencedby").json() == [2]
    assert api.get("/subjects/pc/versions/1/referencedby").json() == [4]


def test_a_referenced_version_survives_the_registration_of_the_same_schema(free_api: RegistryApi) -> None:
    free_api.register("user", CHILD)
    order = free_api.register("order", PARENT, references=reference("user"))
    free_api.delete("/subjects/order")
    free_api.delete("/subjects/user")
    assert free_api.register("user", CHILD) == 1
    assert free_api.get("/subjects/user/versions").json() == [2]
    assert free_api.get("/subjects/user/versions/1?deleted=true").json()["id"] == 1
    answer = free_api.get(f"/schemas/ids/{order}?format=resolved")
    assert json.loads(answer.json()["schema"]) == json.loads(RESOLVED)
    # Without a reference, the old version is replaced, as in Confluent's registry.
    free_api.delete("/subjects/order?permanent=true")
    free_api.delete("/subjects/user")
    free_api.register("user", CHILD)
    assert free_api.get("/subjects/user/versions?deleted=true").json() == [3]


def test_references_within_a_subject_do_not_prevent_its_delete(free_api: RegistryApi) -> None:
    free_api.register("s", CHILD)
    free_api.register("s", PARENT, references=reference("s"))
    assert error_of(free_api.delete("/subjects/s/versions/1")) == (422, 42206)
    assert free_api.delete("/subjects/s").json() == [1, 2]
    assert free_api.delete("/subjects/s?permanent=true").json() == [1, 2]


def test_a_schema_that_another_subject_also_uses_prevents_the_delete(free_api: RegistryApi) -> None:
    free_api.register("s", CHILD)
    for subject in ("s", "t"):
        free_api.register(subject, PARENT, references=reference("s"))
    assert error_of(free_api.delete("/subjects/s")) == (422, 42206)
    free_api.delete("/subjects/t")
    assert free_api.delete("/subjects/s").json() == [1, 2]
    assert error_of(free_api.delete("/subjects/s?permanent=true")) == (422, 42206)


def test_soft_deleted_referrers_are_listed_on_request(free_api: RegistryApi) -> None:
    free_api.register("child", CHILD)
    id = free_api.register("parent", PARENT, references=reference("child"))
    free_api.delete("/subjects/parent")
    assert free_api.get("/subjects/child/versions/1/referencedby").json() == []
    assert free_api.get("/subjects/child/versions/1/referencedby?deleted=true").json() == [id]
