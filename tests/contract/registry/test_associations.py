"""Associations have Confluent's routes, fields, rules, error codes and messages."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.registry import limits
from tests.live.registry import RegistryApi, error_of


def record(*fields: str) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in fields]})


A, B = record("a"), record("a", "b")
RESOURCE = {"resourceName": "orders", "resourceNamespace": "lkc-1", "resourceId": "id-1", "resourceType": "topic"}


def body(*associations: dict[str, Any], **resource: Any) -> dict[str, Any]:
    return {**RESOURCE, **resource, "associations": list(associations)}


def value(subject: str | None = "s", **fields: Any) -> dict[str, Any]:
    return {"subject": subject, "associationType": "value", **fields}


def key(subject: str | None = "k", **fields: Any) -> dict[str, Any]:
    return {"subject": subject, "associationType": "key", **fields}


def create(api: RegistryApi, *associations: dict[str, Any], **resource: Any) -> httpx.Response:
    return api.post("/associations", body(*associations, **resource))


def upsert(api: RegistryApi, *associations: dict[str, Any], id: str = "id-1", **resource: Any) -> httpx.Response:
    return api.put(f"/associations/resources/{id}", body(*associations, resourceId=id, **resource))


def reason(answer: httpx.Response) -> tuple[int, str]:
    message: str = answer.json()["message"]
    prefix = "The association specified an invalid value for property: "
    assert answer.status_code == 422, answer.text
    assert message.startswith(prefix), message
    return answer.json()["error_code"], message.removeprefix(prefix)


def test_associations_are_created_and_found_by_subject_id_and_name(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("k", B)
    made = create(api, key(lifecycle="WEAK"), value(lifecycle="STRONG", frozen=False))
    assert made.status_code == 200, made.text
    assert made.json() == {
        **RESOURCE,
        "associations": [
            {"subject": "k", "associationType": "key", "lifecycle": "WEAK", "frozen": False},
            {"subject": "s", "associationType": "value", "lifecycle": "STRONG", "frozen": False},
        ],
    }
    [of_subject] = api.get("/associations/subjects/s").json()
    assert {**RESOURCE, "subject": "s", "associationType": "value", "lifecycle": "STRONG", "frozen": False}.items() <= (
        of_subject.items()
    )
    assert of_subject["guid"]
    assert of_subject["createTs"] == of_subject["updateTs"] > 0
    by_id = api.get("/associations/resources/id-1").json()
    assert [one["associationType"] for one in by_id] == ["key", "value"]
    assert api.get("/associations/resources/lkc-1/orders").json() == by_id
    assert api.get("/associations/resources/-/orders").json() == by_id
    assert api.get("/associations/resources/other/orders").json() == []
    assert api.get("/associations/resources/-/orders?resourceType=topic&associationType=value").json() == [of_subject]
    assert len(api.get("/associations/resources/id-1?associationType=key&associationType=value").json()) == 2
    assert api.get("/associations/resources/id-1?lifecycle=STRONG").json() == [of_subject]
    assert api.get("/associations/resources/id-1?offset=1&limit=1").json() == [of_subject]
    assert api.get("/associations/resources/id-1?resourceType=table").json() == []
    assert error_of(api.get("/associations/resources/id-1?lifecycle=NONE")) == (400, 400)
    assert api.get("/associations/resources/unknown").json() == []


def test_a_list_of_schemas_shows_associations_when_asked_for_them(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("k", A)
    create(api, key(), value(lifecycle="STRONG"))

    def shown(query: str) -> list[list[str]]:
        listed = api.get(f"/schemas{query}").json()
        return [[found["associationType"] for found in one.get("associations", ())] for one in listed]

    assert shown("") == [[], []]
    assert shown("?resourceType=topic") == [["key"], ["value"]]
    assert shown("?associationType=value") == [[], ["value"]]
    assert shown("?lifecycle=WEAK&subjectPrefix=k") == [["key"]]


def test_a_dry_run_checks_and_stores_nothing(api: RegistryApi) -> None:
    assert error_of(api.post("/associations?dryRun=true", body(value(), resourceId=None))) == (409, 40907)
    api.register("s", A)
    answer = api.post("/associations?dryRun=true", body(value(), resourceId=None))
    assert answer.json() == {name: RESOURCE[name] for name in RESOURCE if name != "resourceId"}
    new = api.post("/associations?dryRun=true", body(value(None, schema={"schema": A})))
    assert new.json() == RESOURCE
    assert api.get("/associations/resources/id-1").json() == []
    assert api.get("/subjects").json() == ["s"]


def test_a_schema_makes_a_frozen_association_with_the_default_subject(api: RegistryApi) -> None:
    made = create(api, value(None, schema={"schema": A})).json()
    [info] = made["associations"]
    assert (info["subject"], info["lifecycle"], info["frozen"]) == (":.lkc-1:orders-value", "STRONG", True)
    assert (info["schema"]["version"], info["schema"]["subject"]) == (1, ":.lkc-1:orders-value")
    assert api.get("/subjects/:.lkc-1:orders-value/versions").json() == [1]
    assert create(api, value(None, schema={"schema": A})).status_code == 200
    assert error_of(create(api, value(None, schema={"schema": record("z")}))) == (409, 40903)
    assert create(api, key(None, schema={"schema": A})).status_code == 200
    assert error_of(api.delete("/associations/resources/id-1?associationType=value")) == (409, 40908)
    answer = upsert(api, value(None, lifecycle="STRONG", frozen=False))
    assert reason(answer)[1].startswith("'frozen', reason: all associations for a resource must be consistently")
    assert api.delete("/associations/resources/id-1?associationType=value&cascadeLifecycle=true").status_code == 204
    assert error_of(api.get("/subjects/:.lkc-1:orders-value/versions?deleted=true")) == (404, 40401)
    assert api.get("/subjects/:.lkc-1:orders-key/versions").json() == [1]


IMPOSSIBLE: list[tuple[dict[str, Any], str, str]] = [
    (value(lifecycle="WEAK", schema={"schema": A}), "lifecycle", "cannot be WEAK when schema is provided"),
    (value(frozen=False, schema={"schema": A}), "frozen", "cannot be false when schema is provided for create"),
    (value(lifecycle="WEAK", frozen=True), "frozen", "association with lifecycle of WEAK cannot be frozen"),
    (value(lifecycle="STRONG", frozen=True), "subject", "frozen associations must use subject"),
    (value(None, lifecycle="STRONG", frozen=True), "schema", "schema must be provided when creating a frozen"),
    (value(None), "subject", "subject ':.lkc-1:orders-value' is only allowed for strong associations"),
    (value(":.lkc-1:orders-value"), "subject", "subject ':.lkc-1:orders-value' is only allowed for strong"),
    (value(""), "subject", "must not be empty"),
    ({"subject": "s", "associationType": "header"}, "associationType", "must be either 'key' or 'value'"),
]


def test_an_impossible_association_is_rejected(api: RegistryApi) -> None:
    api.register("s", A)
    for association, field, text in IMPOSSIBLE:
        code, why = reason(create(api, association))
        assert code == 42212
        assert why.startswith(f"'{field}', reason: {text}"), why


IMPOSSIBLE_RESOURCES: list[tuple[dict[str, Any], str]] = [
    ({"resourceName": None}, "resourceName"),
    ({"resourceName": "a b"}, "resourceName"),
    ({"resourceName": "x" * 257}, "resourceName"),
    ({"resourceNamespace": ""}, "resourceNamespace"),
    ({"resourceId": None}, "resourceId"),
    ({"resourceId": "x" * 1025}, "resourceId"),
    ({"resourceType": "table"}, "resourceType"),
    ({"associations": []}, "associations"),
    ({"associations": [value(), value()]}, "associationType"),
]


def test_an_impossible_resource_is_rejected(api: RegistryApi) -> None:
    api.register("s", A)
    for resource, field in IMPOSSIBLE_RESOURCES:
        code, why = reason(api.post("/associations", {**body(value()), **resource}))
        assert code == 42212
        assert why.startswith(f"'{field}', reason: "), why


def test_a_frozen_association_needs_an_empty_subject(api: RegistryApi) -> None:
    api.register(":.lkc-1:orders-value", A)
    why = reason(create(api, value(None, schema={"schema": A})))[1]
    assert "cannot create a frozen association when schemas already exist in the subject" in why


def test_a_strong_association_without_a_subject_uses_the_default_one(api: RegistryApi) -> None:
    api.register(":.lkc-1:orders-value", A)
    [info] = create(api, value(None, lifecycle="STRONG")).json()["associations"]
    assert (info["subject"], info["frozen"]) == (":.lkc-1:orders-value", False)
    assert "cannot change to WEAK" in reason(upsert(api, value(None, lifecycle="WEAK")))[1]


def test_a_subject_has_one_strong_association_or_many_weak_ones(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("t", B)
    other = {"resourceName": "other", "resourceId": "id-2"}
    assert create(api, value(lifecycle="WEAK")).status_code == 200
    answer = create(api, value(lifecycle="STRONG"), **other)
    assert error_of(answer) == (409, 40904)
    assert answer.json()["message"] == "An association already exists for subject 's'"
    assert create(api, value(lifecycle="WEAK"), **other).status_code == 200
    assert create(api, key("t", lifecycle="STRONG")).status_code == 200
    assert error_of(create(api, key("t", lifecycle="WEAK"), **other)) == (409, 40905)
    mixed = create(api, key("t"), value("t"), resourceName="mixed", resourceId="id-3")
    assert error_of(mixed) == (409, 40905)


def test_an_association_exists_once_and_an_upsert_changes_it(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("t", A)
    create(api, value(lifecycle="WEAK"))
    assert create(api, value(lifecycle="WEAK")).status_code == 200
    answer = create(api, value(lifecycle="STRONG"))
    assert error_of(answer) == (409, 40903)
    assert answer.json()["message"] == "An association of type 'value' already exists for resource 'orders'"
    [before] = api.get("/associations/subjects/s").json()
    assert upsert(api, value(lifecycle="STRONG")).json()["associations"][0]["lifecycle"] == "STRONG"
    [after] = api.get("/associations/subjects/s").json()
    assert (after["lifecycle"], after["guid"], after["createTs"]) == ("STRONG", before["guid"], before["createTs"])
    assert after["updateTs"] >= before["updateTs"]
    assert upsert(api, value(lifecycle="WEAK")).status_code == 200
    assert "subject of association cannot be changed" in reason(upsert(api, value("t")))[1]
    assert reason(upsert(api, value(lifecycle="WEAK", frozen=True)))[1].startswith("'frozen'")
    assert upsert(api, value(schema={"schema": B}, lifecycle="STRONG")).status_code == 409
    added = upsert(api, value(schema={"schema": record()}, lifecycle="STRONG")).json()
    assert added["associations"][0]["schema"]["version"] == 2
    wrong = api.put("/associations/resources/id-9", body(value()))
    assert "does not match the resource ID in the request body" in reason(wrong)[1]
    assert upsert(api, key("t"), id="id-7", resourceName="seven").status_code == 200
    assert reason(upsert(api, key("t"), id="id-7", resourceName="eight"))[1].startswith("'resourceName'")


def test_a_failed_request_stores_no_part_of_it(api: RegistryApi) -> None:
    wanted = create(api, key(None, schema={"schema": A}), value(None, schema={"schema": "no schema"}))
    assert error_of(wanted) == (422, 42201)
    assert api.get("/subjects").json() == []
    assert api.get("/associations/resources/id-1").json() == []


def test_a_recreated_resource_replaces_the_weak_association_of_its_name(api: RegistryApi) -> None:
    api.register("s", A)
    create(api, value())
    create(api, value(), resourceId="id-2")
    assert [one["resourceId"] for one in api.get("/associations/resources/-/orders").json()] == ["id-2"]


def test_associations_are_deleted_by_type_and_keep_their_subject(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("k", A)
    create(api, key(), value(lifecycle="STRONG"))
    assert api.delete("/associations/resources/id-1?dryRun=true").status_code == 204
    assert len(api.get("/associations/resources/id-1").json()) == 2
    assert api.delete("/associations/resources/id-1?associationType=value").status_code == 204
    assert api.get("/subjects/s/versions").json() == [1]
    assert [one["associationType"] for one in api.get("/associations/resources/id-1").json()] == ["key"]
    assert api.delete("/associations/resources/id-1?cascadeLifecycle=true").status_code == 204
    assert api.get("/subjects/k/versions").json() == [1]
    answer = api.delete("/associations/resources/id-1")
    assert error_of(answer) == (404, 40410)
    assert answer.json()["message"] == "Association for 'id-1' not found."


def test_an_associated_subject_keeps_a_live_version(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("s", record())
    create(api, value())
    assert error_of(api.delete("/subjects/s")) == (409, 40904)
    assert api.delete("/subjects/s/versions/1").status_code == 200
    assert error_of(api.delete("/subjects/s/versions/1?permanent=true")) == (409, 40904)
    assert error_of(api.delete("/subjects/s/versions/2")) == (409, 40907)
    api.delete("/associations/resources/id-1")
    assert api.delete("/subjects/s").json() == [2]


def test_a_cascade_that_a_reference_blocks_deletes_nothing(api: RegistryApi) -> None:
    api.register("s", json.dumps({"type": "record", "name": "Ref", "fields": []}))
    user = {"type": "record", "name": "U", "fields": [{"name": "r", "type": "Ref"}]}
    api.register("u", user, references=[{"name": "Ref", "subject": "s", "version": 1}])
    create(api, value(lifecycle="STRONG"))
    assert error_of(api.delete("/associations/resources/id-1?cascadeLifecycle=true")) == (422, 42206)
    assert len(api.get("/associations/resources/id-1").json()) == 1


def test_read_only_mode_forbids_changes_of_associations(api: RegistryApi) -> None:
    api.register("s", A)
    create(api, value())
    api.mode("READONLY", "s")
    assert error_of(upsert(api, value(lifecycle="STRONG"))) == (422, 42205)
    assert error_of(api.delete("/associations/resources/id-1")) == (422, 42205)


def test_import_mode_registers_no_schema_of_an_association(api: RegistryApi) -> None:
    api.mode("IMPORT", ":.lkc-1:")
    [info] = create(api, value(None, schema={"schema": A})).json()["associations"]
    assert "schema" not in info
    assert api.get("/subjects").json() == []


def test_bare_subjects_belong_to_the_context_of_the_path(api: RegistryApi) -> None:
    api.register(":.lab:s", A)
    made = api.post("/contexts/lab/associations", body(value()))
    assert made.json()["associations"][0]["subject"] == ":.lab:s"
    assert len(api.get("/contexts/lab/associations/subjects/s").json()) == 1
    assert api.get("/associations/subjects/s").json() == []
    assert (
        api.post("/associations?context=.lab", body(value(), resourceId="id-2", resourceName="o2")).status_code == 200
    )


def test_a_batch_changes_each_resource_independently(api: RegistryApi) -> None:
    api.register("s", A)
    api.register("k", A)
    batch = {
        "requests": [
            body({"opType": "CREATE", **value()}, {"opType": "CREATE", **key(lifecycle="STRONG")}),
            body({"opType": "CREATE", **value("missing")}, resourceId="id-2", resourceName="two"),
            body({"opType": "UPSERT", **value(None, schema={"schema": "no"})}, resourceId="id-3", resourceName="three"),
            body({"opType": "MAYBE", **value()}, resourceId="id-4"),
        ]
    }
    assert error_of(api.post("/associations:batchMutate", batch)) == (400, 400)
    del batch["requests"][-1]
    first, second, third = api.post("/associations:batchMutate", batch).json()["results"]
    assert [one["associationType"] for one in first["result"]["associations"]] == ["key", "value"]
    assert second["error"]["error_code"] == 40907
    assert third["error"]["error_code"] == 42212
    mixed = body(
        {"opType": "UPSERT", **value(lifecycle="STRONG")},
        {"opType": "DELETE", "associationType": "value", "cascadeLifecycle": True},
        {"opType": "DELETE", "associationType": "value"},
    )
    dry = api.post("/associations:batchMutate?dryRun=true", {"requests": [mixed]}).json()
    assert dry == {"results": [{"result": RESOURCE}]}
    [result] = api.post("/associations:batchMutate", {"requests": [mixed]}).json()["results"]
    assert [one["subject"] for one in result["result"]["associations"]] == ["k"]
    assert error_of(api.get("/subjects/s/versions")) == (404, 40401)
    assert error_of(api.post("/associations:batchMutate", {"requests": []})) == (422, 42212)


def test_a_batch_reads_resources_by_id_and_by_name_with_their_schemas(api: RegistryApi) -> None:
    id = api.register("s", A)
    create(api, value())
    batch = {
        "requests": [
            {"resourceId": "id-1"},
            {"resourceName": "orders", "resourceNamespace": "-", "lifecycle": "STRONG"},
            {"resourceId": "unknown"},
            {},
        ]
    }
    found, filtered, unknown, wrong = api.post("/associations:batchGet?includeSchemas=true", batch).json()["results"]
    assert RESOURCE.items() <= found["result"].items()
    assert found["result"]["associations"][0]["schema"]["id"] == id
    assert "associations" not in filtered["result"]
    assert unknown["result"] == {"resourceId": "unknown", "resourceType": "topic"}
    assert wrong["error"]["error_code"] == 42212
    plain = api.post("/associations:batchGet", {"requests": [{"resourceId": "id-1"}]}).json()["results"]
    assert "schema" not in plain[0]["result"]["associations"][0]


def test_batches_and_associations_are_limited(api: RegistryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ASSOCIATION_BATCH_MAX", 1)
    monkeypatch.setattr(limits, "ASSOCIATIONS_MAX", 1)
    api.register("s", A)
    two = {"requests": [{"resourceId": "a"}, {"resourceId": "b"}]}
    assert error_of(api.post("/associations:batchGet", two)) == (422, 42213)
    assert error_of(api.post("/associations:batchMutate", two)) == (422, 42213)
    assert create(api, value()).status_code == 200
    assert error_of(create(api, value(), resourceName="b", resourceId="b")) == (409, 40902)


def test_a_damaged_association_is_reported_and_not_returned(api: RegistryApi, tmp_path: Path) -> None:
    api.register("s", A)
    create(api, value())
    with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as connection:
        connection.execute("UPDATE associations SET subject = 't'")
    assert error_of(api.get("/associations/resources/id-1")) == (500, 50001)
