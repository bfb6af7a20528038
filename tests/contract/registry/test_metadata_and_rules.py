"""Metadata and rule sets: stored, inherited, merged and compared; the version in the metadata."""

from typing import Any

import pytest

from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryApi, error_of

RULE = {"name": "foo", "kind": "TRANSFORM", "mode": "UPGRADE", "type": "JSONATA"}
SHOWN_RULE = {**RULE, "disabled": False}


def properties(**pairs: str) -> dict[str, Any]:
    return {"properties": pairs}


def test_different_metadata_makes_a_different_schema(api: RegistryApi) -> None:
    first = api.try_register("s", record("a"), metadata=properties(k="1")).json()
    assert first["metadata"] == properties(k="1")
    assert api.register("s", record("a"), metadata=properties(k="2")) == 2
    assert api.register("t", record("a")) == 3
    assert api.register("s", record("a"), metadata=properties(k="1")) == 1
    assert api.get("/schemas/ids/2").json()["metadata"] == properties(k="2")
    guids = {api.get(f"/schemas/ids/{id}").json()["guid"] for id in (1, 2, 3)}
    assert len(guids) == 3


CONDITION = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
COLLISIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("metadata", properties(a="bc"), properties(ab="c")),
    ("metadata", properties(PII="x"), {"tags": {"PII": ["x"]}}),
    ("ruleSet", {"domainRules": [CONDITION]}, {"encodingRules": [CONDITION]}),
    ("ruleSet", {"domainRules": [{**CONDITION, "doc": "x"}]}, {"domainRules": [{**CONDITION, "name": "rx"}]}),
]


@pytest.mark.parametrize(("field", "first", "second"), COLLISIONS)
def test_contents_with_the_same_hash_in_confluents_registry_are_different_schemas(
    api: RegistryApi, field: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Confluent's hash has no separators. A rule that moves to another section must not be ignored."""
    for subject in ("s", "t"):
        one, two, again = (
            api.post(f"/subjects/{subject}/versions", {"schema": record("a"), field: content}).json()
            for content in (first, second, second)
        )
        assert [(each["id"], each["version"]) for each in (one, two, again)] == [(1, 1), (2, 2), (2, 2)]
        assert one["guid"] != two["guid"] == again["guid"]
        assert two[field].keys() == second.keys()
        assert api.get(f"/schemas/guids/{two['guid']}").json()[field] == two[field]
        found = api.post(f"/subjects/{subject}", {"schema": record("a"), field: second}).json()
        assert (found["id"], found["version"]) == (2, 2)


def test_metadata_is_inherited_from_the_latest_version(api: RegistryApi) -> None:
    api.register("s", record("a"), metadata=properties(k="v"))
    assert api.register("s", record("a")) == 1
    answer = api.try_register("s", record("a", defaulted("b"))).json()
    assert answer["metadata"] == properties(k="v")
    assert api.post("/subjects/s", {"schema": record("a", defaulted("b"))}).json()["version"] == 2


def test_the_schema_is_inherited_if_only_metadata_is_sent(api: RegistryApi) -> None:
    api.register("s", record("a"))
    assert api.register("s", None, metadata=properties(k="v")) == 2
    found = api.get("/schemas/ids/2").json()
    assert (found["schema"], found["metadata"]) == (record("a"), properties(k="v"))


def test_configured_metadata_is_merged_under_and_over(api: RegistryApi) -> None:
    api.config(defaultMetadata=properties(a="default", b="default"), overrideMetadata=properties(c="override"))
    answer = api.try_register("s", record("a"), metadata=properties(b="own", c="own", d="own")).json()
    assert answer["metadata"] == properties(a="default", b="own", c="override", d="own")
    again = api.try_register("s", record("a"), metadata=properties(b="own", c="own", d="own")).json()
    assert (again["id"], again["metadata"]) == (1, answer["metadata"])


def test_rules_are_merged_by_name(api: RegistryApi) -> None:
    api.config(defaultRuleSet={"migrationRules": [RULE]})
    bar = {**RULE, "name": "bar", "type": "type1"}
    answer = api.try_register("s", record("a"), ruleSet={"migrationRules": [bar]}).json()
    assert [rule["name"] for rule in answer["ruleSet"]["migrationRules"]] == ["foo", "bar"]
    zap = {**RULE, "name": "zap", "type": "type2"}
    answer = api.try_register("s", record("a", defaulted("b")), ruleSet={"migrationRules": [zap]}).json()
    assert [rule["name"] for rule in answer["ruleSet"]["migrationRules"]] == ["foo", "zap"]
    assert [one["version"] for one in api.get("/schemas?ruleType=type1").json()] == [1]
    assert [one["version"] for one in api.get("/schemas?ruleType=type2").json()] == [2]
    assert api.get("/schemas?ruleType=type1&latestOnly=true").json() == []


def test_rule_sets_are_stored_and_shown(api: RegistryApi) -> None:
    rules = {
        "domainRules": [
            {
                "name": "check",
                "doc": "d",
                "kind": "CONDITION",
                "mode": "WRITE",
                "type": "CEL",
                "tags": ["PII"],
                "params": {"k": "v"},
                "expr": "size(x) > 1",
                "onSuccess": "NONE",
                "onFailure": "DLQ",
                "disabled": True,
            }
        ]
    }
    api.register("s", record("a"))
    assert api.register("s", None, ruleSet=rules) == 2
    found = api.get("/subjects/s/versions/2").json()
    assert found["ruleSet"] == rules
    assert found["schema"] == record("a")
    assert api.post("/subjects/s", {"schema": record("a")}).json()["id"] == 1


def test_a_schema_without_rules_finds_the_latest_with_them(api: RegistryApi) -> None:
    api.register("s", record("a"), ruleSet={"domainRules": []})
    assert api.post("/subjects/s", {"schema": record("a")}).json()["id"] == 1
    api.register("s", None, ruleSet={"domainRules": [{**RULE, "mode": "READ"}]})
    assert api.post("/subjects/s", {"schema": record("a")}).json()["id"] == 2


@pytest.mark.parametrize(
    "rules",
    [
        {"migrationRules": [{**RULE, "mode": "READ"}]},
        {"domainRules": [RULE]},
        {"domainRules": [{**RULE, "mode": "READ"}, {**RULE, "mode": "READ"}]},
        {"migrationRules": [{**RULE, "name": ""}]},
        {"migrationRules": [{**RULE, "name": "1 bad"}]},
        {"migrationRules": [{"name": "foo", "mode": "UPGRADE"}]},
        {"migrationRules": [{"name": "foo", "type": "CEL"}]},
        {"migrationRules": [{**RULE, "kind": "NEITHER"}]},
        {"encodingRules": [{**RULE, "mode": "UPDOWN"}]},
    ],
)
def test_malformed_rules_are_rejected(api: RegistryApi, rules: dict[str, Any]) -> None:
    assert error_of(api.try_register("s", record("a"), ruleSet=rules)) == (422, 42210)
    assert error_of(api.put("/config", {"defaultRuleSet": rules})) == (422, 42210)


def test_the_latest_version_with_some_metadata(api: RegistryApi) -> None:
    api.register("s", record("a"), metadata=properties(k="1", x="y"))
    api.register("s", record("a", defaulted("b")), metadata=properties(k="2", x="y"))
    assert api.get("/subjects/s/metadata?key=k&value=1").json()["version"] == 1
    assert api.get("/subjects/s/metadata?key=x&value=y").json()["version"] == 2
    assert api.get("/subjects/s/metadata?key=x&value=y&key=k&value=1").json()["version"] == 1
    assert error_of(api.get("/subjects/s/metadata?key=k&value=3")) == (404, 40403)
    assert error_of(api.get("/subjects/t/metadata?key=k&value=3")) == (404, 40401)


def test_an_explicit_version_must_be_the_next(api: RegistryApi) -> None:
    api.register("s", record("a"))
    answer = api.try_register("s", record("a", defaulted("b")), version=3)
    assert error_of(answer) == (422, 42201)
    assert answer.json()["message"] == "Version is not one more than previous version"
    answer = api.try_register("s", record("a", defaulted("b")), version=2).json()
    assert (answer["id"], answer["version"]) == (2, 2)
    assert answer["metadata"] == {"properties": {"confluent:version": "2"}}


def test_the_version_in_the_metadata_is_compared_and_set(api: RegistryApi) -> None:
    text = record("f1")

    def register(expected: int, version: int | None = None, metadata: dict[str, Any] | None = None) -> None:
        fields: dict[str, Any] = {"version": version, "metadata": metadata}
        answer = api.try_register("s", text, **{k: v for k, v in fields.items() if v is not None})
        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == expected

    def named(version: str) -> dict[str, Any]:
        return {"properties": {"confluent:version": version}}

    def look_up(metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        body = {"schema": text} if metadata is None else {"schema": text, "metadata": metadata}
        found = api.post("/subjects/s", body).json()
        assert isinstance(found, dict)
        return found

    register(1)
    register(1, version=-1)
    register(2, version=2)
    register(2, version=-1)
    assert api.get("/subjects/s/versions/latest").json()["metadata"] == named("2")
    assert (look_up()["version"], look_up().get("metadata")) == (1, None)
    assert look_up(named("1"))["version"] == 1
    assert look_up(named("2"))["version"] == 2
    api.delete("/subjects/s/versions/1")
    assert look_up()["version"] == 2
    register(2)
    register(3, version=3)
    register(3, version=-1)
    assert error_of(api.try_register("s", text, version=3)) == (422, 42201)
    register(4, version=4)
    assert look_up()["version"] == 4
    register(5, metadata=named("-1"))
    assert api.get("/subjects/s/versions/latest").json()["metadata"] == named("5")
    register(2, metadata=named("2"))
    register(3, metadata=named("3"))
    register(6, metadata=named("0"))
    register(6, metadata={"properties": {}})
    register(7, metadata=properties(mykey="myvalue"))
    assert api.get("/subjects/s/versions/latest").json()["metadata"] == properties(mykey="myvalue")
    register(8, version=-1)
    latest = api.get("/subjects/s/versions/latest").json()
    assert latest["metadata"]["properties"] == {"confluent:version": "8", "mykey": "myvalue"}
    assert look_up(properties(mykey="myvalue"))["version"] == 7
    api.delete("/subjects/s/versions/7")
    assert look_up(properties(mykey="myvalue"))["version"] == 8
    other = {"schema": record("f1", doc="mydoc"), "version": -1}
    assert error_of(api.post("/subjects/s", other)) == (404, 40403)


def test_a_rule_set_contains_where_its_rules_run(api: RegistryApi) -> None:
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    api.register("s", record("a"), ruleSet={"domainRules": [rule], "enableAt": "GATEWAY"})
    shown = api.get("/subjects/s/versions/1").json()["ruleSet"]
    assert shown == {"domainRules": [{**rule, "disabled": False}], "enableAt": "GATEWAY"}
    assert api.register("s", record("a"), ruleSet={"domainRules": [rule], "enableAt": "CLIENT"}) == 2
    assert api.register("s", record("a"), ruleSet={"domainRules": [rule], "enableAt": "GATEWAY"}) == 1
    answer = api.try_register("s", record("a"), ruleSet={"domainRules": [rule], "enableAt": "2026-01-01"})
    assert error_of(answer) == (422, 42210)
    assert answer.json()["message"].endswith("Valid values are ALL, CLIENT, GATEWAY, SERVER, NONE")


def test_a_configured_enable_at_is_merged_into_rule_sets(api: RegistryApi) -> None:
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    override = {"enableAt": "SERVER"}
    assert api.put("/config/s", {"overrideRuleSet": override}).json() == {"overrideRuleSet": override}
    api.register("s", record("a"), ruleSet={"domainRules": [rule], "enableAt": "CLIENT"})
    assert api.get("/subjects/s/versions/1").json()["ruleSet"]["enableAt"] == "SERVER"
    assert error_of(api.put("/config", {"defaultRuleSet": {"enableAt": "never"}})) == (422, 42210)
