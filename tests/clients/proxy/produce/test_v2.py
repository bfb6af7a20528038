"""v2 produce: Kafka clients read the written records, and invalid requests get the right error codes."""

import base64
import io
import json
from typing import Any

import fastavro
import pytest

from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import JSON_V2, World

AVRO = "application/vnd.kafka.avro.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "blob", "type": "bytes"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
    ],
}
ORDER = {"id": 9007199254740993, "note": {"string": "ü"}, "blob": "\u0000ÿ", "price": "\u0004Ò"}


def test_records_of_every_plain_format_arrive(any_world: World) -> None:
    topic = any_world.topic()
    any_world.produce(topic, {"key": "a", "value": {"n": 1, "s": "ü"}}, {"value": [1, 2]}, {"key": 1, "value": None})
    any_world.produce(topic, {"key": "aw==", "value": "AP8="}, media=BINARY)
    any_world.produce(topic, {"key": "k", "value": "text ü"}, media="application/vnd.kafka.text.v2+json")
    found = [(message.key(), message.value()) for message in any_world.read(topic, 5)]
    assert found == [
        (b'"a"', '{"n":1,"s":"ü"}'.encode()),
        (None, b"[1,2]"),
        (b"1", None),
        (b"k", b"\x00\xff"),
        (b"k", "text ü".encode()),
    ]


def test_key_and_value_can_have_different_formats(world: World) -> None:
    topic = world.topic()
    world.produce(
        topic, {"key": "plain", "value": {"a": 1}}, media="application/json", key_format="string", value_format="json"
    )
    (message,) = world.read(topic, 1)
    assert (message.key(), message.value()) == (b"plain", b'{"a":1}')


def test_headers_timestamps_and_partitions_are_kept(any_world: World) -> None:
    topic = any_world.topic(partitions=3)
    headers = [{"name": "a", "value": base64.b64encode(b"\x01").decode()}, {"name": "a", "value": None}]
    answer = any_world.produce(
        topic,
        {"value": 1, "partition": 2, "timestamp": 1_700_000_000_123, "headers": headers},
        {"value": 2, "partition": 0, "timestamp": "2026-01-31T12:00:00.5Z"},
    )
    assert [(row["partition"], row["offset"]) for row in answer["offsets"]] == [(2, 0), (0, 0)]
    (first,) = any_world.read(topic, 1, partition=2)
    assert first.headers() == [("a", b"\x01"), ("a", None)]
    assert first.timestamp()[1] == 1_700_000_000_123
    (second,) = any_world.read(topic, 1)
    assert second.timestamp()[1] == 1_769_860_800_500


def test_the_path_can_name_the_partition(world: World) -> None:
    topic = world.topic(partitions=2)
    answer = world.post(f"/topics/{topic}/partitions/1", {"records": [{"value": 1}, {"value": 2, "partition": 1}]})
    assert [row["partition"] for row in answer.json()["offsets"]] == [1, 1]
    assert world.values(topic, 2, partition=1) == [b"1", b"2"]
    for absent in ("-1", "99", "99999999999"):
        refused = world.post(f"/topics/{topic}/partitions/{absent}", {"records": [{"value": 1}]})
        assert error_of(refused) == (404, 40402)
    assert error_of(world.post(f"/topics/{topic}/partitions/one", {"records": [{"value": 1}]})) == (404, 404)
    other = world.post(f"/topics/{topic}/partitions/1", {"records": [{"value": 1, "partition": 0}]})
    assert error_of(other) == (422, 422)


def test_the_avro_json_encoding_is_exact(any_world: World) -> None:
    topic = any_world.topic()
    answer = any_world.produce(
        topic, {"value": ORDER}, {"value": {**ORDER, "note": None}}, media=AVRO, value_schema=json.dumps(SCHEMA)
    )
    assert answer["key_schema_id"] is None
    by_id = any_world.produce(topic, {"value": ORDER}, media=AVRO, value_schema_id=answer["value_schema_id"])
    assert by_id["value_schema_id"] == answer["value_schema_id"]
    first, second, third = any_world.values(topic, 3)
    assert first is not None
    assert first == third
    assert first[:5] == b"\x00" + answer["value_schema_id"].to_bytes(4, "big")
    schema: Any = {**SCHEMA, "fields": [*SCHEMA["fields"][:3], {"name": "price", "type": "bytes"}]}
    read = fastavro.schemaless_reader(io.BytesIO(first[5:]), schema, None)
    assert read == {"id": 9007199254740993, "note": "ü", "blob": b"\x00\xff", "price": b"\x04\xd2"}
    assert second is not None


def test_a_string_key_with_an_avro_value(world: World) -> None:
    topic = world.topic()
    world.produce(topic, {"key": "k", "value": ORDER}, media=AVRO, key_format="string", value_schema=json.dumps(SCHEMA))
    (message,) = world.read(topic, 1)
    assert message.key() == b"k"


def test_a_schema_id_can_be_a_string(world: World) -> None:
    topic = world.topic()
    registered = world.produce(topic, {"value": ORDER}, media=AVRO, value_schema=json.dumps(SCHEMA))
    schema_id = registered["value_schema_id"]
    assert (
        world.produce(topic, {"value": ORDER}, media=AVRO, value_schema_id=str(schema_id))["value_schema_id"]
        == schema_id
    )
    answer = world.post(f"/topics/{topic}", {"value_schema_id": "one", "records": [{"value": ORDER}]}, AVRO)
    assert error_of(answer) == (400, 400)


def test_json_schema_and_protobuf_values(world: World) -> None:
    topic = world.topic()
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    media = "application/vnd.kafka.jsonschema.v2+json"
    world.produce(topic, {"value": {"n": 5}}, media=media, value_schema=schema)
    bad = world.post(f"/topics/{topic}", {"value_schema": schema, "records": [{"value": {"n": "x"}}]}, media)
    assert error_of(bad) == (422, 42203)
    assert "records[0].value" in bad.json()["message"]
    assert "n" in bad.json()["message"]
    other = world.topic()
    proto = 'syntax = "proto3"; message M { int32 n = 1; }'
    world.produce(other, {"value": {"n": 5}}, media="application/vnd.kafka.protobuf.v2+json", value_schema=proto)
    (payload,) = world.values(other, 1)
    assert payload is not None
    assert payload[5:] == b"\x00\x08\x05"


def test_the_error_names_the_field_that_does_not_match_the_schema_and_nothing_is_written(any_world: World) -> None:
    topic = any_world.topic()
    body = {
        "value_schema": json.dumps(SCHEMA),
        "records": [{"value": ORDER}, {"value": {**ORDER, "note": {"string": 5}}}],
    }
    answer = any_world.post(f"/topics/{topic}", body, AVRO)
    assert error_of(answer) == (422, 42203)
    assert "records[1].value" in answer.json()["message"]
    assert "note" in answer.json()["message"]
    any_world.produce(topic, {"value": 1})
    assert any_world.values(topic, 1) == [b"1"]


def test_written_numbers_keep_all_digits(world: World) -> None:
    topic = world.topic()
    texts = ["123456789012345678901234567890", "-0.12345678901234567890123", "1e400", "18446744073709551616", "1.10"]
    rows = ",".join(f'{{"value": {{"n": {text}}}}}' for text in texts)
    world.post(f"/topics/{topic}", f'{{"records":[{rows}]}}')
    found = [value and value.decode() for value in world.values(topic, len(texts))]
    assert found == [f'{{"n":{text}}}' for text in texts]


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        ({"records": [{"value": 1}]}, "text/plain", (415, 415)),
        ({"records": [{"value": 1}]}, "application/vnd.kafka.xml.v2+json", (415, 415)),
        ("{", JSON_V2, (400, 400)),
        ("", JSON_V2, (422, 42206)),
        ([], JSON_V2, (422, 422)),
        ({}, JSON_V2, (422, 422)),
        ({"records": []}, JSON_V2, (422, 422)),
        ({"records": [{"value": 1}], "what": 1}, JSON_V2, (422, 422)),
        ({"records": [{"value": 1, "what": 1}]}, JSON_V2, (422, 422)),
        ({"records": [5]}, JSON_V2, (400, 400)),
        ({"records": [{"value": "%"}]}, BINARY, (422, 42203)),
        ({"records": [{"value": {"a": 1}}]}, BINARY, (422, 42203)),
        ({"records": [{"value": 1, "partition": -1}]}, JSON_V2, (400, 400)),
        ({"records": [{"value": 1, "partition": 99}]}, JSON_V2, (404, 40402)),
        ({"records": [{"value": 1, "timestamp": "soon"}]}, JSON_V2, (400, 400)),
        ({"records": [{"value": 1, "headers": [{"name": 1}]}]}, JSON_V2, (400, 400)),
        ({"records": [{"value": {"id": 1}}]}, AVRO, (422, 42202)),
        ({"records": [{"key": 1}]}, AVRO, (422, 42201)),
        ({"records": [{"value": 1}], "value_schema": "no schema"}, AVRO, (422, 42205)),
        ({"records": [{"value": 1}], "value_schema_id": 999999}, AVRO, (408, 40801)),
        ({"records": [{"value": "x" * 1_100_000}]}, JSON_V2, (422, 42206)),
        ({"records": [{"value": 1}], "key_format": "xml"}, JSON_V2, (422, 422)),
    ],
)
def test_each_error_has_its_code_and_nothing_is_written(
    world: World, body: Any, media: str, expected: tuple[int, int]
) -> None:
    topic = world.topic()
    assert error_of(world.post(f"/topics/{topic}", body, media)) == expected
    world.produce(topic, {"value": 0})
    assert world.values(topic, 1) == [b"0"]


def test_accept_selects_the_media_type_of_the_response(world: World) -> None:
    topic = world.topic()
    body = {"records": [{"value": 1}]}
    for accept, expected in (
        ("*/*", "application/vnd.kafka.v2+json"),
        ("application/json", "application/json"),
        ("application/vnd.kafka.v2+json; q=0.5, application/json; q=0.1", "application/vnd.kafka.v2+json"),
    ):
        assert world.post(f"/topics/{topic}", body, accept=accept).headers["content-type"] == expected
    assert error_of(world.post(f"/topics/{topic}", body, accept="text/html")) == (406, 406)


def test_a_rejected_record_has_an_error_row_and_later_records_are_written(any_world: World) -> None:
    topic = any_world.topic(max_message_bytes="2000")
    answer = any_world.post(f"/topics/{topic}", {"records": [{"value": "x" * 5000}]})
    assert answer.status_code == 200
    (row,) = answer.json()["offsets"]
    assert (row["partition"], row["offset"], row["error_code"]) == (None, None, 50002)
    assert row["error"]
    any_world.produce(topic, {"value": "small"})
    assert any_world.values(topic, 1) == [b'"small"']


def test_invalid_topic_names_are_not_found(world: World) -> None:
    for name in ("a%20b", "%2e%2e", "x" * 250, "%00", "a%2Fb", "%ff"):
        answer = world.post(f"/topics/{name}", {"records": [{"value": 1}]})
        assert answer.status_code == 404, answer.text
