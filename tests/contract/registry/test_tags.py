"""Tags inside schemas: added, removed, found and propagated."""

from typing import Any

from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryApi, error_of


def tags(path: str, kind: str, *names: str) -> list[dict[str, Any]]:
    return [{"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(names)}]


TAGGED = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}],"confluent:tags":["T1","T2"]}'


def test_tags_are_added_and_removed_with_a_registration(api: RegistryApi) -> None:
    api.register("s", record("a"))
    added = tags("R", "sr_record", "T1", "T2")
    assert api.register("s", record("a"), version=2, schemaTagsToAdd=added) == 2
    latest = api.get("/subjects/s/versions/latest?findTags=*").json()
    assert latest["schema"] == TAGGED
    assert latest["metadata"]["properties"]["confluent:version"] == "2"
    assert latest["schemaTags"] == added
    removed = tags("R", "sr_record", "T2")
    assert api.register("s", TAGGED, schemaTagsToRemove=removed) == 3
    latest = api.get("/subjects/s/versions/latest?findTags=T1").json()
    assert latest["schemaTags"] == tags("R", "sr_record", "T1")
    assert latest["version"] == 3
    assert api.get("/schemas/ids/3?findTags=T1").json()["schemaTags"] == tags("R", "sr_record", "T1")
    assert api.get("/schemas/ids/3?findTags=T9").json()["schemaTags"] == []


def test_tags_are_propagated_on_request(api: RegistryApi) -> None:
    api.register("s", TAGGED)
    api.register("s", record("a", defaulted("b")), propagateSchemaTags=True)
    latest = api.get("/subjects/s/versions/latest?findTags=*").json()
    assert latest["schemaTags"] == tags("R", "sr_record", "T1", "T2")
    assert latest["version"] == 2


def test_tags_of_removed_entities_are_not_propagated(api: RegistryApi) -> None:
    api.register(
        "s", record("a", "b"), schemaTagsToAdd=[*tags("R.a", "sr_field", "T1"), *tags("R.b", "sr_field", "T2")]
    )
    api.register("s", record("b"), propagateSchemaTags=True)
    latest = api.get("/subjects/s/versions/latest?findTags=*").json()
    assert latest["schemaTags"] == tags("R.b", "sr_field", "T2")


def test_tags_of_a_field_are_changed_through_the_tags_resource(api: RegistryApi) -> None:
    api.register("s", record("a"))
    body = {"newVersion": 2, "tagsToAdd": tags("R.a", "sr_field", "PII"), "metadata": {"properties": {"k": "v"}}}
    answer = api.post("/subjects/s/versions/1/tags", body)
    assert answer.status_code == 200, answer.text
    latest = api.get("/subjects/s/versions/latest?findTags=PII").json()
    assert latest["schemaTags"] == tags("R.a", "sr_field", "PII")
    assert latest["metadata"]["properties"] == {"confluent:version": "2", "k": "v"}


def test_rules_are_changed_through_the_tags_resource(api: RegistryApi) -> None:
    def rule(name: str) -> dict[str, Any]:
        return {"name": name, "mode": "READ", "type": "CEL"}

    api.register("s", record("a"), ruleSet={"domainRules": [rule("one"), rule("two")]})
    body = {"newVersion": 2, "rulesToMerge": {"domainRules": [rule("three")]}, "rulesToRemove": ["one"]}
    answer = api.post("/subjects/s/versions/latest/tags", body)
    assert answer.status_code == 200, answer.text
    shown = api.get("/subjects/s/versions/2").json()["ruleSet"]["domainRules"]
    assert [one["name"] for one in shown] == ["two", "three"]


def test_tags_of_json_schemas(api: RegistryApi) -> None:
    text = '{"type":"object","properties":{"a":{"type":"string"}}}'
    api.register("s", text, schemaType="JSON", schemaTagsToAdd=tags("object.a", "sr_field", "PII"))
    found = api.get("/schemas/ids/1?findTags=*").json()
    assert found["schemaTags"] == tags("object.a", "sr_field", "PII")


def test_tags_of_unknown_entities_are_rejected(api: RegistryApi) -> None:
    api.register("s", record("a"))
    answer = api.try_register("s", record("a"), schemaTagsToAdd=tags("no.such", "sr_field", "T"))
    assert error_of(answer) == (422, 42201)
    assert "No matching path 'no.such'" in answer.json()["message"]
    assert error_of(api.try_register("s", record("a"), schemaTagsToAdd=[{"tags": ["T"]}])) == (422, 42201)
    assert error_of(api.post("/subjects/s/versions/9/tags", {"newVersion": 2})) == (404, 40402)
    assert error_of(api.post("/subjects/t/versions/1/tags", {"newVersion": 2})) == (404, 40401)
    assert error_of(api.post("/subjects/s/versions/1/tags", {"newVersion": 7})) == (422, 42201)


MESSAGE = """syntax = "proto3";
package shop;

message Order {
  string id = 1;
  oneof payment {
    string card = 2;
  }

  message Item {
    string name = 1;
  }
}
"""


def test_tags_of_protobuf_schemas_are_options_in_the_text(api: RegistryApi) -> None:
    api.register("s", MESSAGE, schemaType="PROTOBUF")
    added = [
        *tags("Order.id", "sr_field", "PII"),
        *tags(".Order.id", "sr_field", "KEY"),
        *tags("Order.card", "sr_field", "PCI"),
        *tags("Order.Item", "sr_record", "LINE"),
    ]
    assert api.register("s", MESSAGE, schemaType="PROTOBUF", schemaTagsToAdd=added) == 2
    latest = api.get("/subjects/s/versions/latest?findTags=*").json()
    id_with_tags = """  string id = 1 [(confluent.field_meta) = {
    tags: [
      "PII",
      "KEY"
    ]
  }];
"""
    assert id_with_tags in latest["schema"]
    assert latest["metadata"]["properties"]["confluent:version"] == "2"
    card_and_item = [*tags("Order.card", "sr_field", "PCI"), *tags("Order.Item", "sr_record", "LINE")]
    assert latest["schemaTags"] == [*tags("Order.id", "sr_field", "PII", "KEY"), *card_and_item]
    answer = api.post("/subjects/s/versions/latest/tags", {"tagsToRemove": tags("Order.id", "sr_field", "PII", "KEY")})
    assert answer.status_code == 200, answer.text
    latest = api.get("/subjects/s/versions/latest?findTags=*").json()
    assert latest["schemaTags"] == card_and_item
    assert "  string id = 1;\n" in latest["schema"]
    nowhere = tags("Order.nothing", "sr_field", "T")
    assert error_of(api.post("/subjects/s/versions/latest/tags", {"tagsToAdd": nowhere})) == (422, 42201)


def test_all_forms_of_protobuf_tags_are_found_and_other_options_are_kept(api: RegistryApi) -> None:
    spelled = """syntax = "proto3";
import "confluent/meta.proto";
message M {
  option (confluent.message_meta).tags = "A";
  option (confluent.message_meta).tags = "B";
  string f = 1 [(confluent.field_meta) = { doc: "a field", tags: "C" }, deprecated = true];
}
"""
    api.register("s", spelled, schemaType="PROTOBUF")
    found = api.get("/subjects/s/versions/latest?findTags=*").json()["schemaTags"]
    assert found == [*tags("M", "sr_record", "A", "B"), *tags("M.f", "sr_field", "C")]
    api.register("s", spelled, schemaType="PROTOBUF", schemaTagsToAdd=tags("M.f", "sr_field", "D"))
    latest = api.get("/subjects/s/versions/latest?findTags=D").json()
    assert latest["schemaTags"] == tags("M.f", "sr_field", "C", "D")
    assert 'doc: "a field"' in latest["schema"]
    assert "deprecated = true" in latest["schema"]
