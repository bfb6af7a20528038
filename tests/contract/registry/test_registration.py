"""Ids, versions, lookups and lists, as in Confluent's registry."""

import json

from tests.contract.registry.schemas import defaulted, distinct, record
from tests.live.registry import RegistryApi, error_of


def test_the_first_schema_gets_id_1_and_version_1(api: RegistryApi) -> None:
    answer = api.try_register("s", record("a"))
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["version"]) == (1, 1)
    assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"


def test_registering_again_returns_the_same_id(free_api: RegistryApi) -> None:
    schemas = distinct(5)
    ids = [free_api.register("s", schema) for schema in schemas]
    assert ids == [1, 2, 3, 4, 5]
    assert [free_api.register("s", schema) for schema in schemas] == ids
    assert free_api.get("/subjects/s/versions").json() == [1, 2, 3, 4, 5]


def test_the_same_schema_has_one_id_in_every_subject(api: RegistryApi) -> None:
    assert api.register("s1", record("a")) == api.register("s2", record("a"))
    assert api.get("/schemas/ids/1/subjects").json() == ["s1", "s2"]
    assert api.get("/schemas/ids/1/versions").json() == [
        {"subject": "s1", "version": 1},
        {"subject": "s2", "version": 1},
    ]


def test_white_space_does_not_make_another_schema(api: RegistryApi) -> None:
    assert api.register("s", '{   "type":   "string"}') == 1
    assert api.register("s", '"string"') == 1
    assert api.post("/subjects/s", {"schema": '{"type":"string"}'}).json()["id"] == 1
    assert api.get("/schemas/ids/1").json()["schema"] == '"string"'


def test_a_version_has_all_fields(api: RegistryApi) -> None:
    api.register("s", record("a"))
    version = api.get("/subjects/s/versions/1").json()
    assert version["subject"] == "s"
    assert (version["id"], version["version"], version["deleted"]) == (1, 1, False)
    assert version["schema"] == record("a")
    assert version["ts"] > 0
    assert version["schemaType"] == "AVRO"
    assert api.get("/subjects/s/versions/latest").json() == version
    assert api.get("/subjects/s/versions/-1").json() == version
    assert api.post("/subjects/s", {"schema": record("a")}).json() == version
    by_id = api.get("/schemas/ids/1").json()
    assert by_id == {key: value for key, value in version.items() if key != "id"}
    by_guid = api.get(f"/schemas/guids/{version['guid']}").json()
    assert by_guid["schema"] == version["schema"]
    assert "subject" not in by_guid
    assert api.get(f"/schemas/guids/{version['guid']}/ids").json() == [{"context": ".", "id": 1}]


def test_responses_have_the_fields_of_confluents_current_release(api: RegistryApi) -> None:
    api.register("s", record("a"))
    shared = {"subject", "version", "guid", "schemaType", "schema", "ts", "deleted"}
    for place in ("/schemas/ids/1", "/schemas/ids/1?subject=s"):
        assert api.get(place).json().keys() == shared
    assert api.get("/schemas/ids/1?fetchMaxId=true").json().keys() == {*shared, "maxId"}
    for place in ("/subjects/s/versions/1", "/subjects/s/versions/latest"):
        assert api.get(place).json().keys() == {*shared, "id"}
    assert api.get("/schemas").json()[0].keys() == {*shared, "id"}


def test_a_version_can_be_sent_as_it_was_received(api: RegistryApi) -> None:
    api.register("s", record("a"))
    version = api.get("/subjects/s/versions/1").json()
    body = {key: value for key, value in version.items() if key not in ("id", "version")}
    assert api.post("/subjects/t/versions", {**body, "createTs": 1}).json()["id"] == 1


def test_the_raw_schema_is_not_escaped(api: RegistryApi) -> None:
    api.register("s", record("a"))
    assert api.get("/subjects/s/versions/1/schema").text == record("a")
    assert api.get("/schemas/ids/1/schema").text == record("a")


def test_every_schema_has_a_schema_type(free_api: RegistryApi) -> None:
    free_api.register("s", '{"type":"object"}', schemaType="JSON")
    free_api.register("s", 'syntax = "proto3"; message A { int32 a = 1; }', schemaType="PROTOBUF")
    free_api.register("s", record("a"))
    assert [free_api.get(f"/schemas/ids/{id}").json()["schemaType"] for id in (1, 2, 3)] == ["JSON", "PROTOBUF", "AVRO"]
    assert [one["schemaType"] for one in free_api.get("/schemas").json()] == ["JSON", "PROTOBUF", "AVRO"]
    assert free_api.post("/subjects/s", {"schema": record("a")}).json()["schemaType"] == "AVRO"
    assert sorted(free_api.get("/schemas/types").json()) == ["AVRO", "JSON", "PROTOBUF"]


def test_the_level_none_allows_a_change_of_language(free_api: RegistryApi) -> None:
    free_api.register("s", record("a"))
    body = {"schema": '{"type":"object"}', "schemaType": "JSON"}
    assert free_api.post("/compatibility/subjects/s/versions/latest", body).json() == {"is_compatible": True}


def test_another_language_is_incompatible(api: RegistryApi) -> None:
    api.register("s", record("a"))
    answer = api.try_register("s", '{"type":"object"}', schemaType="JSON")
    assert error_of(answer) == (409, 409)
    assert "Incompatible because of different schema type" in answer.json()["message"]


def test_an_incompatible_schema_is_rejected_with_all_reasons(api: RegistryApi) -> None:
    api.register("s", record("a", ("b", "int")))
    answer = api.try_register("s", record("a", ("b", "string"), "c"))
    assert error_of(answer) == (409, 409)
    message = answer.json()["message"]
    assert message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: ['
    )
    assert "errorType:'TYPE_MISMATCH', description:'The type (path '/fields/1/type')" in message
    assert "reader type: STRING not compatible with writer type: INT" in message
    assert "The field 'c' at path '/fields/2' in the new schema has no default value" in message
    assert "{oldSchemaVersion: 1}" in message
    assert message.endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")


def test_the_maximum_id_is_returned_on_request(free_api: RegistryApi) -> None:
    for schema in distinct(3):
        free_api.register("s", schema)
    assert "maxId" not in free_api.get("/schemas/ids/1").json()
    assert free_api.get("/schemas/ids/1?fetchMaxId=true").json()["maxId"] == 3


def test_an_unknown_format_returns_the_default_one(api: RegistryApi) -> None:
    api.register("s", record("a"))
    assert api.get("/schemas/ids/1?format=bad-format").json()["schema"] == record("a")


def test_protobuf_is_returned_serialized_on_request(api: RegistryApi) -> None:
    api.register("s", 'syntax = "proto3"; message A { int32 a = 1; }', schemaType="PROTOBUF")
    text = api.get("/schemas/ids/1?format=serialized").json()["schema"]
    assert api.post("/subjects/s", {"schema": text, "schemaType": "PROTOBUF"}).json()["id"] == 1


def test_lists_have_pages(free_api: RegistryApi) -> None:
    for index, schema in enumerate(distinct(6)):
        free_api.register(f"s{index // 2}", schema)
    assert free_api.get("/subjects").json() == ["s0", "s1", "s2"]
    assert free_api.get("/subjects?offset=1&limit=1").json() == ["s1"]
    assert free_api.get("/subjects?subjectPrefix=s2").json() == ["s2"]
    assert free_api.get("/subjects/s0/versions?offset=1").json() == [2]
    listed = free_api.get("/schemas").json()
    assert [(one["subject"], one["version"]) for one in listed] == [
        (f"s{subject}", version) for subject in range(3) for version in (1, 2)
    ]
    assert [one["id"] for one in free_api.get("/schemas?latestOnly=true").json()] == [2, 4, 6]
    assert [one["id"] for one in free_api.get("/schemas?offset=2&limit=2").json()] == [3, 4]
    assert [one["id"] for one in free_api.get("/schemas?subjectPrefix=s1").json()] == [3, 4]


def test_unknown_objects_have_their_own_error_codes(api: RegistryApi) -> None:
    assert error_of(api.get("/subjects/x/versions")) == (404, 40401)
    assert error_of(api.get("/subjects/x/versions/1")) == (404, 40401)
    assert error_of(api.post("/subjects/x", {"schema": record("a")})) == (404, 40401)
    assert error_of(api.get("/schemas/ids/100")) == (404, 40403)
    assert error_of(api.get("/schemas/ids/100/subjects")) == (404, 40403)
    assert error_of(api.get("/schemas/ids/100/versions")) == (404, 40403)
    assert error_of(api.get("/schemas/guids/00000000-0000-0000-0000-000000000000")) == (404, 40403)
    assert error_of(api.get("/schemas/guids/nonsense/ids")) == (404, 40403)
    api.register("s", record("a"))
    assert error_of(api.get("/subjects/s/versions/200")) == (404, 40402)
    assert error_of(api.post("/subjects/s", {"schema": record("z")})) == (404, 40403)
    assert api.get("/subjects/s/versions/200").json()["message"] == "Version 200 not found."
    assert api.get("/subjects/x/versions").json()["message"] == "Subject 'x' not found."
    assert api.get("/schemas/ids/100").json()["message"] == "Schema 100 not found"
    assert api.post("/subjects/s", {"schema": record("z")}).json()["message"] == "Schema not found"


def test_invalid_versions_are_rejected(api: RegistryApi) -> None:
    api.register("s", record("a"))
    for version in ("0", "-2", "earliest", "1.0", "2147483648", "99999999999999999999", "%20", "٣"):
        answer = api.get(f"/subjects/s/versions/{version}")
        assert error_of(answer) == (422, 42202), version
        assert "is not a valid version id. Allowed values are between [1, 2^31-1]" in answer.json()["message"]


def test_normalization_sorts_unordered_parts(api: RegistryApi) -> None:
    first = {"type": "record", "name": "R", "fields": [{"type": {"type": "int"}, "name": "a"}], "x": {"a": 1, "b": 2}}
    other = {"x": {"b": 2, "a": 1}, "fields": [{"name": "a", "type": "int"}], "name": "R", "type": "record"}
    id = api.register("s", first, query="?normalize=true")
    assert api.register("s", other, query="?normalize=true") == id
    assert api.post("/subjects/s?normalize=true", {"schema": json.dumps(other)}).json()["version"] == 1
    assert error_of(api.post("/subjects/s", {"schema": json.dumps(other)})) == (404, 40403)


def test_normalizing_can_be_configured(api: RegistryApi) -> None:
    api.config(normalize=True)
    id = api.register("s", '{"type":"int","b":1,"a":2}')
    assert api.register("s", '{"type":"int","a":2,"b":1}') == id


def test_an_invalid_schema_is_reported_with_its_position(api: RegistryApi) -> None:
    answer = api.try_register("s", record("a", ("b", "str")))
    assert error_of(answer) == (422, 42201)
    assert answer.json()["message"] == (
        "Invalid schema of type AVRO, details: Undefined schema: str (at /fields/1/type)"
    )
    assert error_of(api.try_register("s", record(defaulted("a", None)))) == (422, 42201)
    assert error_of(api.try_register("s", record("a"), schemaType="XML")) == (422, 42201)


def test_an_empty_schema_is_rejected_in_an_empty_subject(api: RegistryApi) -> None:
    answer = api.post("/subjects/s/versions", {})
    assert error_of(answer) == (422, 42201)
    assert answer.json()["message"] == "Empty schema"


def test_responses_are_cached_until_they_change(free_api: RegistryApi) -> None:
    free_api.register("s", record("a"))
    body = {"schema": record("a")}
    for _ in range(3):
        assert free_api.post("/subjects/s/versions", body).json()["version"] == 1
        assert free_api.get("/subjects/s/versions/latest").json()["version"] == 1
        assert free_api.get("/schemas/ids/1").json()["deleted"] is False
    free_api.register("s", record("b"))
    assert free_api.get("/subjects/s/versions/latest").json()["version"] == 2
    free_api.delete("/subjects/s/versions/1")
    assert free_api.get("/schemas/ids/1").json()["deleted"] is True
    assert free_api.post("/subjects/s/versions", body).json()["version"] == 3
    free_api.delete("/subjects/s")
    free_api.delete("/subjects/s?permanent=true")
    assert error_of(free_api.get("/schemas/ids/1")) == (404, 40403)
    assert error_of(free_api.get("/subjects/s/versions/latest")) == (404, 40401)


def test_a_subject_may_contain_any_character_except_control_characters(api: RegistryApi) -> None:
    for index, name in enumerate(("a%2Fb", "%C3%A9", "a%20b", "a%2Bb", "%25", "a%3Fb", "%F0%9F%A6%86")):
        api.register(name, record(f"f{index}"))
        assert api.get(f"/subjects/{name}/versions").json() == [1], name
    assert set(api.get("/subjects").json()) == {"a/b", "é", "a b", "a+b", "%", "a?b", "🦆"}
    for name in ("%0Dbad%0A", "a%00b", "%7F", "__GLOBAL", "x" * 2000):
        assert error_of(api.try_register(name, record("a"))) == (422, 42208), name


def test_long_and_short_requests_are_interleaved(api: RegistryApi) -> None:
    """A transitive comparison with many versions does not run on the event loop."""
    api.config("long", compatibility="FULL_TRANSITIVE")
    fields = [defaulted(f"f{number}") for number in range(40)]
    for count in range(1, 40):
        assert api.register("long", record(*fields[:count])) == count * 2 - 1
        assert api.register(f"short{count}", record("x", name=f"N{count}")) == count * 2
    answer = api.try_register("long", record(*fields, ("g", "int")))
    assert error_of(answer) == (409, 409)
    assert answer.json()["message"].count("oldSchemaVersion") == 39
