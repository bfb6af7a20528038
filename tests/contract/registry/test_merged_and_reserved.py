"""Merged metadata can be read back, and reserved names cannot be subjects."""

import json

import pytest

from tests.contract.registry.schemas import record
from tests.live.registry import RegistryApi, error_of


def test_merged_metadata_is_read_back_and_exported(api: RegistryApi) -> None:
    configured = {f"configured{index}": "x" for index in range(900)}
    own = {f"own{index}": "x" for index in range(900)}
    api.config(defaultMetadata={"properties": configured})
    api.register("s", record("a"), metadata={"properties": own})
    answer = api.get("/subjects/s/versions/latest")
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["properties"] == {**configured, **own}
    assert [listed["subject"] for listed in api.get("/schemas").json()] == ["s"]
    exported = api.get("/export").content
    answer = api.send("POST", "/import", exported, headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text


def test_a_configured_rule_may_share_its_name_with_one_of_another_list(api: RegistryApi) -> None:
    api.config(defaultRuleSet={"migrationRules": [{"name": "same", "mode": "UPGRADE", "type": "CEL"}]})
    api.register("s", record("a"), ruleSet={"domainRules": [{"name": "same", "mode": "READ", "type": "CEL"}]})
    answer = api.get("/subjects/s/versions/latest")
    assert answer.status_code == 200, answer.text
    rules = answer.json()["ruleSet"]
    assert [rule["name"] for kind in ("migrationRules", "domainRules") for rule in rules[kind]] == ["same", "same"]
    assert api.post("/subjects/s", {"schema": record("a")}).json()["version"] == 1


@pytest.mark.parametrize("subject", ["__GLOBAL", "__EMPTY", ":.x:__EMPTY", ":.__GLOBAL:s", ":.__GLOBAL:"])
def test_reserved_names_cannot_be_subjects(api: RegistryApi, subject: str) -> None:
    assert error_of(api.try_register(subject, record("a"))) == (422, 42208)


def test_the_global_context_can_be_configured_and_exported(api: RegistryApi) -> None:
    api.config(":.__GLOBAL:", compatibility="FULL")
    assert api.get("/config?defaultToGlobal=true").json() == {"compatibilityLevel": "FULL"}
    exported = api.get("/export").content
    answer = api.send("POST", "/import", exported, headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text


def test_a_schema_with_inlined_references_is_found_normalized(api: RegistryApi) -> None:
    part = record("x", name="Part", namespace="parts")
    api.register("part", part)
    reference = {"name": "parts.Part", "subject": "part", "version": 1}
    whole = record(("part", "parts.Part"), name="Whole", extra={"b": 2, "a": 1})
    api.register("whole", whole, query="?normalize=true", references=[reference])
    written_out = record(("part", json.loads(part)), name="Whole", extra={"b": 2, "a": 1})
    assert api.post("/subjects/whole?normalize=true", {"schema": written_out}).json()["version"] == 1


def test_the_deployment_has_no_attributes(api: RegistryApi) -> None:
    assert api.get("/v1/metadata/deployment").json() == {"attributes": []}
