"""Configuration: scopes, merging, clearing, groups, aliases."""

import pytest

from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryApi, error_of


def test_the_level_is_backward_by_default(api: RegistryApi) -> None:
    assert api.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize("level", ["NONE", "BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE", "backward_transitive"])
def test_a_level_is_set_and_returned(api: RegistryApi, level: str) -> None:
    assert api.put("/config", {"compatibility": level}).json() == {"compatibility": level.upper()}
    assert api.get("/config").json() == {"compatibilityLevel": level.upper()}
    assert api.put("/config/s", {"compatibility": level}).json() == {"compatibility": level.upper()}
    assert api.get("/config/s").json() == {"compatibilityLevel": level.upper()}


def test_an_unknown_level_is_rejected(api: RegistryApi) -> None:
    answer = api.put("/config", {"compatibility": "SIDEWARD"})
    assert error_of(answer) == (422, 42203)
    assert answer.json()["message"] == (
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive"
    )


def test_a_subject_without_configuration_is_404_or_returns_the_wider_one(api: RegistryApi) -> None:
    answer = api.get("/config/s")
    assert error_of(answer) == (404, 40408)
    assert answer.json()["message"] == "Subject 's' does not have subject-level compatibility configured"
    assert api.get("/config/s?defaultToGlobal=true").json() == {"compatibilityLevel": "BACKWARD"}
    api.config(compatibility="FORWARD", normalize=True)
    assert api.get("/config/s?defaultToGlobal=true").json() == {"compatibilityLevel": "FORWARD", "normalize": True}


def test_a_subjects_configuration_is_merged_over_the_global_one(api: RegistryApi) -> None:
    api.config(compatibility="NONE", normalize=True)
    api.config("s", compatibilityGroup="g")
    merged = api.get("/config/s?defaultToGlobal=true").json()
    assert merged == {"compatibilityLevel": "NONE", "normalize": True, "compatibilityGroup": "g"}
    assert api.get("/config/s").json() == {"compatibilityGroup": "g"}


def test_null_clears_a_setting_and_an_absent_field_keeps_it(api: RegistryApi) -> None:
    api.config(compatibilityGroup="g", validateFields=True)
    assert api.put("/config", {"compatibilityGroup": None}).json() == {"validateFields": True}
    assert api.put("/config", {"alias": "a"}).json() == {"validateFields": True, "alias": "a"}


def test_deleting_configuration_returns_the_old_one(api: RegistryApi) -> None:
    api.config(compatibility="FULL")
    api.config("s", compatibility="FORWARD")
    assert api.delete("/config/s").json() == {"compatibilityLevel": "FORWARD"}
    assert api.get("/config/s?defaultToGlobal=true").json() == {"compatibilityLevel": "FULL"}
    assert error_of(api.delete("/config/s")) == (404, 40401)
    assert api.delete("/config").json() == {"compatibilityLevel": "FULL"}
    assert api.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


def test_all_contexts_inherit_from_the_global_context(api: RegistryApi) -> None:
    api.register("s", record("a"))
    assert error_of(api.try_register("s", record("b"))) == (409, 409)
    api.config(":.__GLOBAL:", compatibility="NONE")
    assert api.get("/config?defaultToGlobal=true").json()["compatibilityLevel"] == "NONE"
    assert api.register("s", record("b")) == 2
    api.register(":.c:s", record("a"))
    api.register(":.c:s", record("b"))


def test_the_default_context_has_two_forms(api: RegistryApi) -> None:
    api.config(compatibility="FORWARD")
    assert api.get("/config/:.:?defaultToGlobal=true").json()["compatibilityLevel"] == "FORWARD"
    api.config(":.:", compatibility="FULL")
    assert api.get("/config").json()["compatibilityLevel"] == "FULL"
    api.delete("/config/:.:")
    assert api.get("/config").json()["compatibilityLevel"] == "BACKWARD"


def test_a_context_has_its_own_level(api: RegistryApi) -> None:
    api.config(":.c:", compatibility="NONE")
    api.register(":.c:s", record("a"))
    api.register(":.c:s", record("b"))
    api.register("s", record("a"))
    assert error_of(api.try_register("s", record("b"))) == (409, 409)


def test_only_versions_of_the_same_group_are_compared(api: RegistryApi) -> None:
    api.config(compatibilityGroup="application.version")
    one = {"properties": {"application.version": "1"}}
    two = {"properties": {"application.version": "2"}}
    api.register("s", record("a"), metadata=one)
    assert error_of(api.try_register("s", record("a", "b"), metadata=one)) == (409, 409)
    assert error_of(api.try_register("s", record("a", "b"))) == (409, 409)
    assert api.register("s", record("a", "b"), metadata=two) == 2
    assert api.register("s", record("a", defaulted("c")), metadata=one) == 3


def test_reserved_fields_are_enforced_where_configured(api: RegistryApi) -> None:
    reserved = {"properties": {"confluent:reserved": "a, x"}}
    api.config(validateFields=True)
    answer = api.try_register("s", record("a", "b"), metadata=reserved)
    assert error_of(answer) == (409, 409)
    assert "The new schema has field that conflicts with the reserved field a." in answer.json()["message"]
    api.register("s", record("b"), metadata=reserved)
    answer = api.try_register("s", record("b", defaulted("c")), metadata={"properties": {}})
    assert "reserved field x removed from its metadata" in answer.json()["message"]
    api.config("t", validateFields=False)
    api.register("t", record("a", "b"), metadata=reserved)


def test_names_are_checked_unless_configured_otherwise(api: RegistryApi) -> None:
    odd = record("a", namespace="a-bad.namespace")
    assert error_of(api.try_register("s", odd)) == (422, 42201)
    api.config(validateNames=False)
    assert api.register("s", odd) == 1


def test_an_alias_resolves_to_its_subject(api: RegistryApi) -> None:
    api.register("real", record("a"))
    assert api.put("/config/al%2Fias", {"alias": "real"}).json() == {"alias": "real"}
    assert api.get("/subjects/al%2Fias/versions/1").json()["subject"] == "real"
    assert api.get("/schemas/ids/1?subject=al%2Fias").json()["subject"] == "real"
    assert api.register("al%2Fias", record("a", defaulted("b"))) == 2
    assert api.get("/subjects/real/versions").json() == [1, 2]
    assert api.get("/config/real?defaultToGlobal=true").json() == {"compatibilityLevel": "BACKWARD"}


def test_an_alias_may_be_in_another_context(api: RegistryApi) -> None:
    api.register(":.one:real", record("a"))
    api.config(":.two:alias", alias=":.one:real")
    assert api.get("/contexts/.two/subjects/alias/versions/1").json()["subject"] == ":.one:real"


def test_a_global_alias_has_no_effect(api: RegistryApi) -> None:
    api.register("s", record("a"))
    api.config(alias="other")
    assert api.get("/subjects/s/versions/1").json()["subject"] == "s"


def test_listed_schemas_show_their_aliases(free_api: RegistryApi) -> None:
    for subject, field in (("testSubject", "a"), ("noTestSubject", "b"), (":.myctx:testSubject", "c")):
        free_api.register(subject, record(field))
    free_api.config("testAlias", alias="testSubject")
    free_api.config("testAlias2", alias="testSubject")
    free_api.config(":.myctx:testAlias3", alias="testSubject")
    assert free_api.get("/schemas?subjectPrefix=testAlias").json() == []

    def listed(prefix: str) -> list[tuple[str, list[str] | None]]:
        answer = free_api.get(f"/schemas?subjectPrefix={prefix}&aliases=true").json()
        return [(one["subject"], one.get("aliases")) for one in answer]

    assert listed("testAl") == [("testSubject", ["testAlias", "testAlias2"])]
    assert listed("test") == [("testSubject", ["testAlias", "testAlias2"])]
    assert listed(":*:") == [
        (":.myctx:testSubject", [":.myctx:testAlias3"]),
        ("noTestSubject", None),
        ("testSubject", ["testAlias", "testAlias2"]),
    ]


def test_the_newest_fields_are_stored_inherited_and_cleared(api: RegistryApi) -> None:
    fields = {"validateNewSchemas": True, "compatibilityPolicy": "LOGICAL", "aliasForDeks": "keys"}
    assert api.put("/config", {**fields, "compatibilityPolicy": "logical"}).json() == fields
    assert api.get("/config").json() == {**fields, "compatibilityLevel": "BACKWARD"}
    inherited = {"validateNewSchemas": True, "compatibilityPolicy": "LOGICAL", "compatibilityLevel": "BACKWARD"}
    assert api.get("/config/s?defaultToGlobal=true").json() == inherited
    cleared = dict.fromkeys(fields)
    assert api.put("/config", cleared).json() == {}
    assert error_of(api.put("/config", {"compatibilityPolicy": "FUZZY"})) == (422, 422)


@pytest.mark.parametrize("level", ["FORWARD", "FORWARD_TRANSITIVE"])
def test_the_logical_policy_excludes_forward_levels(api: RegistryApi, level: str) -> None:
    answer = api.put("/config", {"compatibility": level, "compatibilityPolicy": "LOGICAL"})
    assert error_of(answer) == (422, 42203)
    assert answer.json()["message"] == (
        f"compatibilityPolicy=LOGICAL cannot be combined with compatibilityLevel={level}: "
        "Iceberg only supports backward-compatible schema evolution"
    )
    api.config(compatibilityPolicy="LOGICAL")
    assert error_of(api.put("/config/s", {"compatibility": level})) == (422, 42203)
    # A change of the global policy does not check the subjects, so the next registration finds the conflict.
    api.config(compatibilityPolicy=None)
    api.config("s", compatibility=level)
    api.register("s", record("a"))
    api.config(compatibilityPolicy="LOGICAL")
    refused = api.try_register("s", record("a", defaulted("b")))
    assert error_of(refused) == (409, 409)
    assert "compatibilityPolicy=LOGICAL cannot be combined" in refused.json()["message"]


def test_the_logical_policy_compares_as_the_strict_one(api: RegistryApi) -> None:
    api.config(compatibilityPolicy="LOGICAL")
    api.register("s", '{"type": "object", "properties": {}}', schemaType="JSON")
    changed = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    assert error_of(api.try_register("s", changed, schemaType="JSON")) == (409, 409)


def test_new_schemas_are_validated_unless_configured_otherwise(api: RegistryApi) -> None:
    odd = record("a", namespace="a-bad.namespace")
    reserved = 'syntax = "proto3"; message M { reserved 1; string a = 1; }'
    api.config(validateNames=False, validateNewSchemas=True)
    assert error_of(api.try_register("s", odd)) == (422, 42201)
    assert error_of(api.try_register("p", reserved, schemaType="PROTOBUF")) == (422, 42201)
    api.config(validateNames=True, validateNewSchemas=False)
    assert api.register("s", odd) == 1


def test_an_unknown_field_in_a_request_is_named_without_its_content(api: RegistryApi) -> None:
    body = {"schema": record("a"), "references": [{"name": "n", "subject": "s", "version": 1, "where": "here"}]}
    answer = api.post("/subjects/s/versions", body)
    assert error_of(answer) == (422, 422)
    assert answer.json()["message"] == "Unrecognized field: where"
    assert api.put("/config", {"strange`": 1}).json()["message"] == "Unrecognized field: strange`"


def test_messages_about_a_body_of_the_wrong_form_are_plain_text(api: RegistryApi) -> None:
    answer = api.post("/subjects/s/versions", {"schema": ["a"]})
    assert answer.status_code == 400
    assert "$.schema" in answer.json()["message"]
    assert "`" not in answer.json()["message"]
    assert "`" not in api.send("POST", "/import", '{"kind": []}').json()["message"]


def test_force_has_no_effect_on_a_registration(api: RegistryApi) -> None:
    """Confluent reads `force` only with a mode: an incompatible schema stays incompatible."""
    api.register("s", record("a"))
    answer = api.post("/subjects/s/versions?force=true", {"schema": record("a", "b")})
    assert error_of(answer) == (409, 409)


def test_a_deleted_configuration_is_returned_with_a_level(api: RegistryApi) -> None:
    api.config("s", normalize=True)
    assert api.delete("/config/s").json() == {"normalize": True, "compatibilityLevel": "BACKWARD"}
    api.config("s", normalize=True, compatibility="NONE")
    assert api.delete("/config/s").json() == {"normalize": True, "compatibilityLevel": "NONE"}
