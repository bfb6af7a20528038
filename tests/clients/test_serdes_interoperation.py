"""Headgate's and Confluent's serializers in both directions against a live registry: each reads the other's bytes.

The registry is Headgate's, or the one at the address in HEADGATE_TEST_REGISTRY.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

from headgate.registry.model import Reference
from headgate.serdes import (
    Decoded,
    Deserializer,
    DeserializerOptions,
    ReadOptions,
    RegistryClient,
    Serializer,
    SerializerOptions,
    avro_schema,
    json_schema,
    record_strategy,
    topic_record_strategy,
)
from tests.live.headgate_registry import HeadgateRegistry

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "com.acme",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "exact", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
            {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "extra", "type": {"type": "map", "values": ["null", "double", "boolean"]}},
            {"name": "parent", "type": ["null", "Order"], "default": None},
        ],
    }
)


def order(parent: object = None) -> dict[str, object]:
    return {
        "id": -7,
        "note": "für",
        "price": Decimal("-1234.50"),
        "at": datetime(2026, 11, 16, 6, 30, 0, 123000, UTC),
        "exact": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "day": date(1969, 7, 20),
        "clock": time(23, 59, 59, 999999),
        "local": datetime(2026, 2, 28, 1, 2, 3, 4000),
        "key": UUID(int=12345),
        "kind": "OLD",
        "hash": b"\x00\xff\x01\xfe",
        "tags": ["a", "", "ü"],
        "extra": {"x": 1.5, "y": None, "z": True},
        "parent": parent,
    }


JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["id"],
    }
)

PROTO = {
    "money.proto": 'syntax = "proto3";\npackage com.acme;\nmessage Money { int64 cents = 1; }\n',
    "order.proto": """syntax = "proto3";
package com.acme;
import "money.proto";
import "google/protobuf/timestamp.proto";
message First { int32 a = 1; }
message Order {
  message Line { string sku = 1; }
  int64 id = 1;
  repeated Line lines = 2;
  Money total = 3;
  google.protobuf.Timestamp at = 4;
  map<string, int32> counts = 5;
}
""",
}


@pytest.fixture(scope="module")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("HEADGATE_TEST_REGISTRY")
    if given:
        yield given
        return
    server = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def ours(registry_url: str) -> Iterator[RegistryClient]:
    with RegistryClient(registry_url) as client:
        yield client


@pytest.fixture
def theirs(registry_url: str) -> Iterator[SchemaRegistryClient]:
    client = SchemaRegistryClient({"url": registry_url})
    yield client
    client.close()


@pytest.fixture
def topic() -> str:
    return f"orders-{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def messages() -> dict[str, type[Message]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PROTO.items():
            (Path(folder) / name).write_text(text)
        out = Path(folder) / "set"
        well_known = str(Path(protoc.__file__).parent / "_proto")
        code = cast(Any, protoc).main(
            ["protoc", f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={out}", *PROTO]
        )
        assert code == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    names = ("com.acme.First", "com.acme.Order", "com.acme.Order.Line")
    return {name: GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def context(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def decoded(outcome: object) -> object:
    assert isinstance(outcome, Decoded), outcome
    return outcome.value


@pytest.mark.parametrize("value", [order(), order(order())], ids=["flat", "recursive"])
def test_avro_is_the_same_bytes_and_the_same_values(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str, value: dict[str, object]
) -> None:
    mine = Serializer(ours, avro_schema(AVRO)).serialize(value, topic=topic)
    other = AvroSerializer(theirs, AVRO)(value, context(topic))
    assert mine == other
    assert AvroDeserializer(theirs)(mine, context(topic)) == value
    assert decoded(Deserializer(ours).decode(other)) == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ('"string"', "text"),
        ('"long"', -1),
        ('"bytes"', b"\x00\x80raw"),
        ('{"type":"array","items":"int"}', [1, -2]),
        ('["null","string","int"]', 5),
        ('{"type":"enum","name":"E","symbols":["A","B"]}', "B"),
    ],
)
def test_avro_without_a_record_is_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str, schema: str, value: object
) -> None:
    mine = Serializer(ours, avro_schema(schema)).serialize(value, topic=topic)
    other = AvroSerializer(theirs, schema)(value, context(topic))
    assert mine == other
    assert decoded(Deserializer(ours).decode(other)) == value
    assert AvroDeserializer(theirs)(mine, context(topic)) == value


def test_avro_with_an_evolved_reader_is_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str
) -> None:
    writer = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'
    reader = (
        '{"type":"record","name":"R","fields":[{"name":"c","type":"int","default":9},'
        '{"name":"x","type":"double","aliases":["a"]}]}'
    )
    payload = AvroSerializer(theirs, writer)({"a": 3, "b": "s"}, context(topic))
    mine = Deserializer(ours, DeserializerOptions(reader=avro_schema(reader))).deserialize(payload)
    assert mine == AvroDeserializer(theirs, reader)(payload, context(topic)) == {"c": 9, "x": 3.0}


def test_json_schema_is_read_both_ways(ours: RegistryClient, theirs: SchemaRegistryClient, topic: str) -> None:
    value = {"id": 7, "note": "für"}
    mine = Serializer(ours, json_schema(JSON)).serialize(value, topic=topic)
    other = JSONSerializer(JSON, theirs)(value, context(topic))
    assert mine is not None
    assert other is not None
    assert mine[:5] == other[:5]
    assert JSONDeserializer(JSON, schema_registry_client=theirs)(mine, context(topic)) == value
    assert decoded(Deserializer(ours).decode(other)) == value


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("com.acme.First", {"a": 5}),
        ("com.acme.Order", {"id": 9, "counts": {"x": 1}}),
        ("com.acme.Order.Line", {"sku": "s"}),
    ],
)
def test_protobuf_is_the_same_bytes(
    ours: RegistryClient,
    theirs: SchemaRegistryClient,
    topic: str,
    messages: dict[str, type[Message]],
    name: str,
    fields: dict[str, Any],
) -> None:
    message = messages[name](**fields)
    mine = Serializer(ours, messages[name]).serialize(message, topic=topic)
    other = ProtobufSerializer(cast(Any, messages[name]), theirs)(message, context(topic))
    assert mine == other
    assert (
        ProtobufDeserializer(cast(Any, messages[name]), schema_registry_client=theirs)(mine, context(topic)) == message
    )
    as_class = DeserializerOptions(read=ReadOptions(protobuf_class=messages[name]))
    assert decoded(Deserializer(ours, as_class).decode(other)) == message
    dynamic = decoded(Deserializer(ours).decode(other))
    assert isinstance(dynamic, Message)
    assert dynamic.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@pytest.mark.parametrize("headers", [[], {}], ids=["list", "dict"])
def test_the_header_form_is_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str, headers: Any
) -> None:
    mine_headers: list[tuple[str, bytes]] = []
    serializer = Serializer(ours, avro_schema(AVRO), SerializerOptions(id_in_header=True))
    mine = serializer.serialize(order(), topic=topic, headers=mine_headers)
    other = AvroSerializer(theirs, AVRO, conf={"schema.id.serializer": header_schema_id_serializer})(
        order(), context(topic, headers)
    )
    assert mine == other
    their_headers = list(headers.items()) if isinstance(headers, dict) else headers
    assert mine_headers == their_headers
    assert AvroDeserializer(theirs)(mine, context(topic, mine_headers)) == order()
    assert decoded(Deserializer(ours).decode(other, headers=their_headers)) == order()


def test_the_header_form_of_protobuf_is_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str, messages: dict[str, type[Message]]
) -> None:
    line = messages["com.acme.Order.Line"]
    headers: list[tuple[str, bytes]] = []
    their_headers: list[tuple[str, bytes]] = []
    mine = Serializer(ours, line, SerializerOptions(id_in_header=True)).serialize(
        line(sku="s"), topic=topic, headers=headers
    )
    other = ProtobufSerializer(cast(Any, line), theirs, conf={"schema.id.serializer": header_schema_id_serializer})(
        line(sku="s"), context(topic, their_headers)
    )
    assert (mine, headers) == (other, their_headers)
    value = decoded(Deserializer(ours).decode(other, headers=their_headers))
    assert isinstance(value, Message)
    assert value.SerializeToString() == other


@pytest.mark.parametrize(
    ("strategy", "their_strategy"),
    [(record_strategy, record_subject_name_strategy), (topic_record_strategy, topic_record_subject_name_strategy)],
)
def test_the_subjects_are_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str, strategy: Any, their_strategy: Any
) -> None:
    Serializer(ours, avro_schema(AVRO), SerializerOptions(subject_strategy=strategy)).serialize(order(), topic=topic)
    options = {"auto.register.schemas": False, "subject.name.strategy": their_strategy}
    assert AvroSerializer(theirs, AVRO, conf=options)(order(), context(topic)) is not None


def test_the_latest_version_and_normalisation_are_the_same(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str
) -> None:
    AvroSerializer(theirs, AVRO)(order(), context(topic))
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    other = AvroSerializer(theirs, AVRO, conf=latest)(order(), context(topic))
    assert Serializer(ours, options=SerializerOptions(use_latest=True)).serialize(order(), topic=topic) == other
    spaced = json.dumps(json.loads(AVRO), indent=2)
    mine = Serializer(ours, avro_schema(spaced), SerializerOptions(normalize=True)).serialize(order(), topic=topic)
    assert mine == other


def test_references_registered_by_either_are_used_by_both(
    ours: RegistryClient, theirs: SchemaRegistryClient, topic: str
) -> None:
    inner = '{"type":"record","name":"Inner","namespace":"com.acme","fields":[{"name":"a","type":"int"}]}'
    outer = '{"type":"record","name":"Outer","namespace":"com.acme","fields":[{"name":"i","type":"com.acme.Inner"}]}'
    subject = f"inner-{topic}"
    assert ours.register(subject, avro_schema(inner)).id is not None
    value = {"i": {"a": 4}}
    mine = Serializer(ours, avro_schema(outer, (Reference("com.acme.Inner", subject, 1),))).serialize(
        value, topic=topic
    )
    references = [SchemaReference("com.acme.Inner", subject, 1)]
    other = AvroSerializer(theirs, Schema(outer, "AVRO", references))(value, context(topic))
    assert mine == other
    assert decoded(Deserializer(ours).decode(other)) == AvroDeserializer(theirs)(mine, context(topic)) == value
