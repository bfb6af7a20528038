"""confluent-kafka's registry client and serializers with a live registry."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.contract.registry.schemas import defaulted, record
from tests.live.registry import RegistryProcess


@pytest.fixture
def client(live: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": live.url}) as client:
        yield client


def test_the_life_of_a_subject(client: SchemaRegistryClient) -> None:
    first, second = Schema(record("a"), "AVRO"), Schema(record("a", defaulted("b")), "AVRO")
    id = client.register_schema("life", first)
    assert client.register_schema("life", first) == id
    assert client.get_schema(id).schema_str == record("a")
    assert client.test_compatibility("life", second)
    assert not client.test_compatibility("life", Schema(record("a", "b"), "AVRO"))
    client.register_schema("life", second)
    assert client.get_versions("life") == [1, 2]
    latest = client.get_latest_version("life")
    assert (latest.version, latest.subject) == (2, "life")
    assert client.get_version("life", 1).schema.schema_str == record("a")
    found = client.lookup_schema("life", first)
    assert (found.version, found.schema_id) == (1, id)
    assert found.guid is not None
    assert client.get_schema_by_guid(found.guid).schema_str == record("a")
    assert "life" in client.get_subjects()
    assert client.delete_version("life", 2) == 2
    assert client.delete_subject("life") == [1]
    assert client.delete_subject("life", permanent=True) == [1, 2]


def test_refusals_carry_confluents_codes(client: SchemaRegistryClient) -> None:
    client.register_schema("refused", Schema(record("a"), "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("refused", Schema(record("b"), "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("refused", Schema('{"type":"nonsense"}', "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (422, 42201)
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_latest_version("nobody")
    assert (refused.value.http_status_code, refused.value.error_code) == (404, 40401)


def test_configuration_through_the_client(client: SchemaRegistryClient) -> None:
    client.set_config("configured", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config("configured").compatibility_level == "FULL"
    client.set_compatibility("configured", "NONE")
    assert client.get_compatibility("configured") == "NONE"


def test_metadata_and_references_through_the_client(client: SchemaRegistryClient) -> None:
    client.register_schema("child", Schema(record("x", name="Child", namespace="ns"), "AVRO"))
    schema = Schema(
        record(("c", "ns.Child"), name="Parent"),
        "AVRO",
        references=[SchemaReference("ns.Child", "child", 1)],
        metadata=Metadata(None, MetadataProperties({"owner": "us"}), None),
    )
    registered = client.register_schema_full_response("parent", schema)
    assert registered.version == 1
    found = client.get_latest_with_metadata("parent", {"owner": "us"})
    assert found.schema.references is not None
    assert found.schema.references[0].subject == "child"
    assert found.schema.metadata is not None


async def _async_life(url: str) -> tuple[int, int, list[int]]:
    async with AsyncSchemaRegistryClient({"url": url}) as client:
        id = await client.register_schema("async", Schema(record("a"), "AVRO"))
        latest = await client.get_latest_version("async")
        return id, latest.schema_id, await client.get_versions("async")


def test_the_asynchronous_client(live: RegistryProcess) -> None:
    id, latest, versions = asyncio.run(_async_life(live.url))
    assert (id, versions) == (latest, [1])


CONTEXT = SerializationContext("topic", MessageField.VALUE)


def test_avro_serializers_register_and_read(client: SchemaRegistryClient) -> None:
    serializer = AvroSerializer(client, record("a", ("n", "long")))
    data = serializer({"a": "x", "n": 2**40}, CONTEXT)
    assert data is not None
    assert AvroDeserializer(client)(data, CONTEXT) == {"a": "x", "n": 2**40}
    assert client.get_latest_version("topic-value").version == 1


def test_json_serializers_register_and_read(client: SchemaRegistryClient) -> None:
    context = SerializationContext("json-topic", MessageField.VALUE)
    schema = json.dumps({"type": "object", "title": "T", "properties": {"a": {"type": "integer"}}})
    data = JSONSerializer(schema, client)({"a": 1}, context)
    reader: Any = JSONDeserializer(schema, schema_registry_client=client)
    assert reader(data, context) == {"a": 1}


def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    kind = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_serializers_register_and_read(client: SchemaRegistryClient) -> None:
    context = SerializationContext("proto-topic", MessageField.VALUE)
    order = _message_class()
    data = ProtobufSerializer(order, client, {"use.deprecated.format": False})(order(id="x"), context)
    reader: Any = ProtobufDeserializer(order, {"use.deprecated.format": False}, client)
    assert reader(data, context).id == "x"
    assert client.get_latest_version("proto-topic-value").schema.schema_type == "PROTOBUF"
