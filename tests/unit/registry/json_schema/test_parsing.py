"""Valid and invalid JSON Schemas, and the positions of errors."""

import json
from typing import Any

import pytest

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema import parse
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.model import SchemaType

DRAFT_URLS = {
    Draft.DRAFT_4: "http://json-schema.org/draft-04/schema#",
    Draft.DRAFT_6: "http://json-schema.org/draft-06/schema#",
    Draft.DRAFT_7: "http://json-schema.org/draft-07/schema#",
    Draft.DRAFT_2019: "https://json-schema.org/draft/2019-09/schema",
    Draft.DRAFT_2020: "https://json-schema.org/draft/2020-12/schema",
}


def fault(schema: Any, references: dict[str, str] | None = None) -> InvalidSchema:
    with pytest.raises(InvalidSchema) as caught:
        parse(schema if isinstance(schema, str) else json.dumps(schema), references or {})
    return caught.value


def test_the_canonical_form_drops_spaces_and_keeps_the_order() -> None:
    schema = parse('{ "type" : "object",\n "properties" : { "b" : {}, "a" : true } }', {})
    assert schema.canonical == '{"type":"object","properties":{"b":{},"a":true}}'
    assert schema.type is SchemaType.JSON


def test_normalizing_sorts_members_but_no_arrays() -> None:
    schema = parse('{"type":"object","required":["b","a"],"properties":{"b":{"type":"string"},"a":true}}', {})
    assert schema.normalized() == (
        '{"properties":{"a":true,"b":{"type":"string"}},"required":["b","a"],"type":"object"}'
    )


def test_normalizing_sorts_as_java_does_by_utf_16() -> None:
    schema = parse('{"\uff61":1,"\U0001f600":2}', {})
    assert schema.normalized() == '{"\U0001f600":2,"\uff61":1}'


@pytest.mark.parametrize(
    ("number", "canonical"),
    [
        ("1", "1"),
        ("1.0", "1.0"),
        ("1.50", "1.50"),
        ("1e2", "1E+2"),
        ("1E-7", "1E-7"),
        ("-0", "0"),
        ("-0.0", "0.0"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("0.1000000000000000000000000000000000001", "0.1000000000000000000000000000000000001"),
    ],
)
def test_numbers_keep_their_digits(number: str, canonical: str) -> None:
    assert parse(f'{{"default":{number}}}', {}).canonical == f'{{"default":{canonical}}}'


def test_strings_are_escaped_only_where_json_needs_it() -> None:
    text = r'{"title":"\u00e9\u0001\u001f\/\"\\\n\t\ud83d\ude00"}'
    expected = '{"title":"é\\u0001\\u001F/\\"\\\\\\n\\t😀"}'
    assert parse(text, {}).canonical == expected
    assert parse(text.replace("}", ',"default":1.0}'), {}).canonical == expected.replace("}", ',"default":1.0}')


def test_the_last_of_duplicate_members_wins() -> None:
    assert parse('{"type":"string","title":"a","type":"number"}', {}).canonical == '{"type":"number","title":"a"}'


@pytest.mark.parametrize(("draft", "url"), DRAFT_URLS.items())
def test_the_draft_is_the_one_the_schema_names(draft: Draft, url: str) -> None:
    for spelling in (url, url.rstrip("#"), url.replace("http://", "https://")):
        assert parse(json.dumps({"$schema": spelling}), {}).draft is draft


@pytest.mark.parametrize("schema", ["{}", "true", "false", '{"$schema":"http://example.com/my-own"}'])
def test_the_default_draft_is_07(schema: str) -> None:
    assert parse(schema, {}).draft is Draft.DRAFT_7


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1", '"text"', "1", "null", "[]", "{}{}", "{'a':1}", "\ufeff{}", "undefined"]
)
def test_a_schema_must_be_an_object_or_a_boolean(text: str) -> None:
    assert fault(text).reason


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "text"}, "/type"),
        ({"type": []}, "/type"),
        ({"type": ["string", "string"]}, "/type"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a": 1}}, "/properties"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
        ({"properties": {"a/b": {"minLength": 1.5}}}, "/properties/a~1b/minLength"),
        ({"items": [{"maximum": "1"}]}, "/items/0/maximum"),
        ({"allOf": []}, "/allOf"),
        ({"anyOf": {}}, "/anyOf"),
        ({"required": "a"}, "/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"enum": "a"}, "/enum"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"pattern": "("}, "/pattern"),
        ({"patternProperties": {"[": {}}}, "/patternProperties"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_4], "exclusiveMinimum": 1}, "/exclusiveMinimum"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_4], "exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_4], "properties": {"a": True}}, "/properties"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_2020], "items": [{}]}, "/items"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_2020], "$id": "a#b"}, "/$id"),
        ({"$schema": DRAFT_URLS[Draft.DRAFT_2020], "$anchor": "#a"}, "/$anchor"),
        ({"$schema": 7}, "/$schema"),
        ({"$ref": 7}, "/$ref"),
        ({"definitions": {"unused": {"type": 1}}}, "/definitions/unused/type"),
    ],
)
def test_an_invalid_keyword_is_reported_with_its_position(schema: dict[str, Any], path: str) -> None:
    assert fault(schema).path == path


@pytest.mark.parametrize(
    "reference",
    ["#/definitions/none", "#none", "other.json", "http://example.com/x", "#/title", "#/enum/0/9", "http://[", "#/%zz"],
)
def test_an_unresolved_reference_is_reported_with_its_position(reference: str) -> None:
    found = fault({"title": "t", "enum": ["a"], "properties": {"a": {"$ref": reference}}})
    assert found.path.startswith("/properties/a")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {
            "$ref": "#/definitions/a",
            "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        },
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"type": "string"}, {"not": {"$ref": "#"}}]},
        {"$schema": DRAFT_URLS[Draft.DRAFT_2020], "type": "object", "$ref": "#"},
    ],
)
def test_a_reference_that_endlessly_applies_to_the_same_value_is_rejected(schema: dict[str, Any]) -> None:
    assert "endlessly" in fault(schema).reason


def test_a_reference_may_point_anywhere_in_the_document() -> None:
    schema = {"x-types": [{"id": {"type": "integer"}}], "properties": {"a": {"$ref": "#/x-types/0/id"}}}
    assert parse(json.dumps(schema), {}).validator().accepts({"a": 1})


def test_a_schema_that_only_a_reference_reaches_is_checked() -> None:
    assert fault({"x": {"type": 1}, "properties": {"a": {"$ref": "#/x"}}}).path == "/x/type"


def test_pointers_are_unescaped() -> None:
    schema = {"definitions": {"a/b~c d%": {"type": "integer"}}, "$ref": "#/definitions/a~1b~0c%20d%25"}
    validator = parse(json.dumps(schema), {}).validator()
    assert validator.accepts(1)
    assert not validator.accepts("1")


@pytest.mark.parametrize("url", DRAFT_URLS.values())
def test_a_schema_may_refer_to_the_meta_schema(url: str) -> None:
    validator = parse(json.dumps({"$schema": url, "properties": {"s": {"$ref": url}}}), {}).validator()
    assert validator.accepts({"s": {"type": "string"}})
    assert not validator.accepts({"s": {"type": 1}})


@pytest.mark.parametrize(
    "name", ["address.json", "http://acme.example/address.json", "com.acme.Address", "a b", "./x.json"]
)
@pytest.mark.parametrize("identifier", [None, "http://acme.example/order.json", "urn:acme:order"])
def test_a_reference_of_the_registry_is_found_by_its_name(name: str, identifier: str | None) -> None:
    schema: dict[str, Any] = {"properties": {"a": {"$ref": name}}}
    if identifier is not None:
        schema["$id"] = identifier
    validator = parse(json.dumps(schema), {name: '{"type":"integer"}'}).validator()
    assert validator.accepts({"a": 1})
    assert not validator.accepts({"a": "1"})


def test_a_reference_of_the_registry_is_found_by_its_own_identifier() -> None:
    references = {"addr": '{"$id":"http://acme.example/v1/address","type":"integer"}'}
    validator = parse('{"properties":{"a":{"$ref":"http://acme.example/v1/address"}}}', references).validator()
    assert validator.accepts({"a": 1})
    assert not validator.accepts({"a": "1"})


def test_references_of_references_are_followed() -> None:
    references = {"c.json": '{"type":"integer"}', "b.json": '{"items":{"$ref":"c.json"}}'}
    validator = parse('{"properties":{"a":{"$ref":"b.json"}}}', references).validator()
    assert validator.accepts({"a": [1]})
    assert not validator.accepts({"a": ["1"]})


def test_references_may_be_circular_through_values() -> None:
    references = {
        "b.json": '{"properties":{"c":{"$ref":"c.json"}}}',
        "c.json": '{"properties":{"b":{"$ref":"b.json"}}}',
    }
    assert parse('{"$ref":"b.json"}', references).canonical


def test_an_error_in_a_reference_names_the_reference() -> None:
    assert fault({}, {"b.json": '{"properties":{"a":{"type":1}}}'}).path == "b.json#/properties/a/type"
    assert fault({}, {"b.json": "{"}).path == "b.json#"
    assert fault({}, {"b.json": "3"}).path == "b.json#"
    assert fault({}, {"b.json": '{"$ref":"none"}'}).path == "b.json#/$ref"


def test_an_unused_reference_is_allowed() -> None:
    assert parse("{}", {"b.json": "{}"}).canonical == "{}"
