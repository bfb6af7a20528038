"""Mode IMPORT accepts the content of another registry without changes."""

import pytest

from tests.live.registry import RegistryApi, error_of

META = 'syntax = "proto3"; import "confluent/meta.proto"; '
ACCEPTED_ELSEWHERE = [
    ("PROTOBUF", 'syntax = "proto3"; message M { string a = 1; string b = 1; }'),
    ("PROTOBUF", 'syntax = "proto3"; enum E { A = 1; } message M { E e = 1; }'),
    ("JSON", '{"allOf": []}'),
    ("JSON", '{"$schema":"http://json-schema.org/draft-04/schema#","type":"object", "required":[]}'),
]
ACCEPTED_ALWAYS = [
    ("PROTOBUF", META + 'message M { string a = 1 [(confluent.field_meta).tags = ["PII"]]; }'),
    ("JSON", '{"$schema":"https://json-schema.org/draft/2020-12/schema", "properties":{"a":{"$id":"#id1"}}}'),
    ("JSON", '{"properties":{"a":{"$ref":"#/$defs/X"}}, "definitions":{"X":{"type":"string"}}}'),
    ("AVRO", '{"type": "record", "name": "R", "fields": []}'),
]


@pytest.mark.parametrize(("kind", "text"), [*ACCEPTED_ELSEWHERE, *ACCEPTED_ALWAYS])
def test_an_imported_schema_keeps_its_text(api: RegistryApi, kind: str, text: str) -> None:
    api.put("/config", {"normalize": True})
    api.put("/mode", {"mode": "IMPORT"})
    body = {"schema": text, "schemaType": kind, "id": 7, "version": 3}
    answer = api.post("/subjects/s/versions", body)
    assert answer.status_code == 200, answer.text
    found = api.get("/subjects/s/versions/3").json()
    assert (found["id"], found["schema"]) == (7, text)
    assert api.post("/subjects/s/versions", body).json()["id"] == 7
    assert api.post("/subjects/s", {"schema": text, "schemaType": kind}).json()["version"] == 3


@pytest.mark.parametrize(("kind", "text"), ACCEPTED_ELSEWHERE)
def test_a_new_schema_is_checked_by_all_rules(api: RegistryApi, kind: str, text: str) -> None:
    assert error_of(api.post("/subjects/s/versions", {"schema": text, "schemaType": kind})) == (422, 42201)


@pytest.mark.parametrize(("kind", "text"), ACCEPTED_ALWAYS)
def test_a_new_schema_may_contain_the_output_of_converters(api: RegistryApi, kind: str, text: str) -> None:
    assert api.post("/subjects/s/versions", {"schema": text, "schemaType": kind}).status_code == 200
