"""Serializers and deserializers in all languages."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import httpx
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from pydantic import BaseModel, Field

from headgate.registry.model import Reference
from headgate.serdes import (
    AsyncDeserializer,
    AsyncRegistryClient,
    AsyncSerializer,
    Decoded,
    Deserializer,
    DeserializerOptions,
    EncodeError,
    ModelError,
    Poison,
    PoisonError,
    ReadOptions,
    Reason,
    RegistryClient,
    RegistrySettings,
    RegistryUnavailable,
    SchemaDefinition,
    Serializer,
    SerializerOptions,
    UnknownSchema,
    avro_schema,
    json_schema,
    protobuf_schema,
    record_strategy,
    topic_record_strategy,
)
from tests.contract.serdes_languages import AVRO, JSON, LANGUAGES, PROTOBUF, Language
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry, error, guid


@pytest.fixture
def stub() -> StubRegistry:
    return StubRegistry()


@pytest.fixture
def client(stub: StubRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport, sleep=lambda seconds: None) as made:
        yield made


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.name)
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    return chosen


def plain(value: object) -> object:
    return MessageToDict(value, preserving_proto_field_name=True) if isinstance(value, Message) else value


def register(stub: StubRegistry, subject: str, schema: SchemaDefinition) -> int:
    body: dict[str, object] = {"schema": schema.text}
    if schema.type != "AVRO":
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return stub.add(subject, body)


def test_the_payload_equals_javas_byte_for_byte(client: RegistryClient, language: Language) -> None:
    payload = Serializer(client, language.schema).serialize(language.value, topic="orders")
    assert payload == b"\x00\x00\x00\x00\x01" + language.body


def test_serialized_values_are_deserialized(client: RegistryClient, language: Language) -> None:
    payload = Serializer(client, language.schema).serialize(language.value, topic="orders")
    outcome = Deserializer(client).decode(payload)
    assert isinstance(outcome, Decoded)
    assert (plain(outcome.value), outcome.schema_id) == (language.value, 1)


def test_each_schema_causes_one_request(client: RegistryClient, stub: StubRegistry, language: Language) -> None:
    serializer, deserializer = Serializer(client, language.schema), Deserializer(client)
    for _ in range(3):
        deserializer.decode(serializer.serialize(language.value, topic="orders"))
    assert stub.paths() == ["POST /subjects/orders-value/versions", "GET /schemas/ids/1"]


@pytest.mark.parametrize(
    ("strategy", "is_key", "subject"),
    [
        (None, False, "orders-value"),
        (None, True, "orders-key"),
        (record_strategy, False, "{record}"),
        (topic_record_strategy, False, "orders-{record}"),
    ],
)
def test_the_subject_follows_the_strategy(
    client: RegistryClient, stub: StubRegistry, language: Language, strategy: object, is_key: bool, subject: str
) -> None:
    options = SerializerOptions() if strategy is None else SerializerOptions(subject_strategy=strategy)  # type: ignore[arg-type]  # from a table
    Serializer(client, language.schema, options).serialize(language.value, topic="orders", is_key=is_key)
    assert list(stub.subjects) == [subject.format(record=language.record_name)]


def test_without_auto_register_the_schema_must_be_registered(
    client: RegistryClient, stub: StubRegistry, language: Language
) -> None:
    serializer = Serializer(client, language.schema, SerializerOptions(auto_register=False))
    with pytest.raises(UnknownSchema):
        serializer.serialize(language.value, topic="orders")
    assert register(stub, "other-value", language.schema) == 1
    payload = serializer.serialize(language.value, topic="other")
    assert payload == b"\x00\x00\x00\x00\x01" + language.body


def test_serializers_can_use_the_latest_version_a_version_or_an_id(
    client: RegistryClient, stub: StubRegistry, language: Language
) -> None:
    assert [register(stub, "orders-value", schema) for schema in (language.schema, language.later)] == [1, 2]
    for options, schema_id in (
        (SerializerOptions(use_latest=True), 2),
        (SerializerOptions(version=1), 1),
        (SerializerOptions(schema_id=2), 2),
    ):
        payload = Serializer(client, options=options).serialize(language.value, topic="orders")
        assert payload is not None
        assert payload[:5] == b"\x00\x00\x00\x00" + bytes([schema_id])


def test_mutually_exclusive_options_are_rejected(client: RegistryClient) -> None:
    with pytest.raises(ValueError, match="mutually exclusive"):
        Serializer(client, options=SerializerOptions(use_latest=True, schema_id=1))
    with pytest.raises(ValueError, match="a schema is required"):
        Serializer(client)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DeserializerOptions(reader=AVRO.schema, reader_subject="s")


def test_the_schema_guid_can_be_in_a_header(client: RegistryClient, language: Language) -> None:
    headers: list[tuple[str, bytes]] = []
    serializer = Serializer(client, language.schema, SerializerOptions(id_in_header=True))
    payload = serializer.serialize(language.value, topic="orders", headers=headers)
    path = b"\x00" if language is PROTOBUF else b""
    assert headers == [("__value_schema_id", b"\x01" + UUID(guid(1)).bytes + path)]
    assert payload == language.body.removeprefix(path)
    outcome = Deserializer(client).decode(payload, headers=headers)
    assert isinstance(outcome, Decoded)
    assert (plain(outcome.value), outcome.schema_id, outcome.schema_guid) == (language.value, None, UUID(guid(1)))
    with pytest.raises(ValueError, match="headers"):
        serializer.serialize(language.value, topic="orders")


def test_a_later_reader_reads_data_of_an_earlier_writer(
    client: RegistryClient, stub: StubRegistry, language: Language
) -> None:
    payload = Serializer(client, language.schema).serialize(language.value, topic="orders")
    register(stub, "orders-value", language.later)
    for options in (DeserializerOptions(reader=language.later), DeserializerOptions(reader_subject="orders-value")):
        outcome = Deserializer(client, options).decode(payload)
        assert isinstance(outcome, Decoded), outcome
        expected = language.value | ({"count": 1} if language is AVRO else {})
        assert plain(outcome.value) == expected


def test_a_value_of_another_schema_is_rejected(client: RegistryClient, language: Language) -> None:
    with pytest.raises(EncodeError):
        Serializer(client, language.schema).serialize(language.bad_value, topic="orders")


def test_each_bad_body_has_its_reason(client: RegistryClient, stub: StubRegistry, language: Language) -> None:
    register(stub, "orders-value", language.schema)
    deserializer = Deserializer(client)
    for body, reason in language.bad_bodies:
        payload = b"\x00\x00\x00\x00\x01" + body
        outcome = deserializer.decode(payload)
        assert isinstance(outcome, Poison), body
        assert (outcome.reason.name, outcome.schema_id, outcome.raw) == (reason, 1, payload), (body, outcome)
        assert outcome.detail


def test_poison_before_the_body_has_its_reason(client: RegistryClient, stub: StubRegistry) -> None:
    deserializer = Deserializer(client)

    def reason(payload: bytes | None) -> Reason:
        outcome = deserializer.decode(payload)
        assert isinstance(outcome, Poison)
        assert outcome.raw == payload
        return outcome.reason

    assert reason(None) == Reason.NULL
    assert reason(b"\x00\x00") == Reason.TOO_SHORT
    assert reason(b"\x05\x00\x00\x00\x01x") == Reason.BAD_MAGIC
    assert reason(b"\x00\x00\x00\x00\x63x") == Reason.UNKNOWN_SCHEMA
    stub.intercept = lambda request: error(503, 50301, "down")
    assert reason(b"\x00\x00\x00\x00\x64x") == Reason.REGISTRY_UNAVAILABLE
    stub.intercept = lambda request: error(401, 401, "who are you")
    assert reason(b"\x00\x00\x00\x00\x65x") == Reason.REGISTRY_UNAVAILABLE


def test_an_invalid_schema_or_one_of_another_language_is_unresolvable(
    client: RegistryClient, stub: StubRegistry
) -> None:
    stub.add("s", {"schema": "{nonsense"})
    register(stub, "s", JSON.schema)
    broken = Deserializer(client).decode(b"\x00\x00\x00\x00\x01x")
    other = Deserializer(client, DeserializerOptions(reader=AVRO.schema)).decode(b"\x00\x00\x00\x00\x02{}")
    missing = Deserializer(client, DeserializerOptions(reader_subject="nowhere")).decode(b"\x00\x00\x00\x00\x02{}")
    for outcome in (broken, other, missing):
        assert isinstance(outcome, Poison)
        assert outcome.reason == Reason.UNRESOLVABLE


def test_deserialize_raises_poison_error(client: RegistryClient) -> None:
    deserializer = Deserializer(client)
    assert deserializer.deserialize(None) is None
    with pytest.raises(PoisonError, match="TOO_SHORT") as caught:
        deserializer.deserialize(b"\x00")
    assert caught.value.poison.reason == Reason.TOO_SHORT


def test_none_stays_none_without_a_request(client: RegistryClient, stub: StubRegistry) -> None:
    assert Serializer(client, AVRO.schema).serialize(None, topic="orders") is None
    assert stub.requests == []


def test_the_async_classes_have_the_same_results(stub: StubRegistry, language: Language) -> None:
    async def main() -> None:
        async with AsyncRegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport) as client:
            payload = await AsyncSerializer(client, language.schema).serialize(language.value, topic="orders")
            assert payload == b"\x00\x00\x00\x00\x01" + language.body
            deserializer = AsyncDeserializer(client)
            outcome = await deserializer.decode(payload)
            assert isinstance(outcome, Decoded)
            assert plain(outcome.value) == language.value
            assert plain(await deserializer.deserialize(payload)) == language.value
            with pytest.raises(PoisonError):
                await deserializer.deserialize(b"\x00")

    asyncio.run(main())


def test_references_are_resolved_in_every_language(client: RegistryClient, stub: StubRegistry) -> None:
    inner = {
        "avro": avro_schema('{"type":"record","name":"Inner","fields":[{"name":"a","type":"int"}]}'),
        "json": json_schema('{"type":"object","properties":{"a":{"type":"integer"}}}'),
        "proto": protobuf_schema('syntax = "proto3";\nmessage Inner {\n  int32 a = 1;\n}\n'),
    }
    for name, schema in inner.items():
        register(stub, name, schema)
    outer = [
        avro_schema(
            '{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}', (Reference("Inner", "avro", 1),)
        ),
        json_schema(
            '{"type":"object","properties":{"i":{"$ref":"inner.json"}}}', (Reference("inner.json", "json", 1),)
        ),
        protobuf_schema(
            'syntax = "proto3";\nimport "inner.proto";\nmessage Outer {\n  Inner i = 1;\n}\n',
            (Reference("inner.proto", "proto", 1),),
        ),
    ]
    for number, schema in enumerate(outer):
        payload = Serializer(client, schema).serialize({"i": {"a": 7}}, topic=f"t{number}")
        assert plain(Deserializer(client).deserialize(payload)) == {"i": {"a": 7}}
        with pytest.raises(EncodeError):
            Serializer(client, schema).serialize({"i": {"a": "x"}}, topic=f"t{number}")


def test_a_schema_of_bytes_is_written_without_a_length(client: RegistryClient) -> None:
    payload = Serializer(client, avro_schema('"bytes"')).serialize(b"\x80raw", topic="t")
    assert payload == b"\x00\x00\x00\x00\x01\x80raw"
    assert Deserializer(client).deserialize(payload) == b"\x80raw"
    assert Deserializer(client).deserialize(b"\x00\x00\x00\x00\x01") == b""
    as_string = DeserializerOptions(reader=avro_schema('"string"'))
    outcome = Deserializer(client, as_string).decode(payload)
    assert isinstance(outcome, Poison)
    assert outcome.reason == Reason.CORRUPT


def test_options_of_a_language_are_passed_to_its_codec(client: RegistryClient) -> None:
    payload = Serializer(client, PROTOBUF.schema).serialize(PROTOBUF.value, topic="p")
    as_dict = DeserializerOptions(read=ReadOptions(protobuf_as_dict=True))
    assert Deserializer(client, as_dict).deserialize(payload) == PROTOBUF.value
    payload = Serializer(client, AVRO.schema).serialize(AVRO.value, topic="a")
    tagged = DeserializerOptions(read=ReadOptions(tag_unions=True))
    assert Deserializer(client, tagged).deserialize(payload) == {"id": 150, "note": ("string", "hi")}
    unchecked = DeserializerOptions(read=ReadOptions(validate_json=False))
    Serializer(client, JSON.schema).serialize(JSON.value, topic="j")
    assert Deserializer(client, unchecked).deserialize(b"\x00\x00\x00\x00\x03[1]") == [1]


def test_a_registry_without_guids_does_not_support_the_header_form(client: RegistryClient, stub: StubRegistry) -> None:
    stub.intercept = lambda request: (
        httpx.Response(200, json=stub.schemas[0]) if request.url.path == "/schemas/ids/1" else None
    )
    serializer = Serializer(client, AVRO.schema, SerializerOptions(id_in_header=True))
    with pytest.raises(RegistryUnavailable, match="guid"):
        serializer.serialize(AVRO.value, topic="orders", headers=[])


def test_a_payload_may_be_bytes_like_only(client: RegistryClient) -> None:
    payload = Serializer(client, AVRO.schema).serialize(AVRO.value, topic="t")
    assert payload is not None
    decode: Callable[[object], Decoded | Poison] = Deserializer(client).decode  # type: ignore[assignment]  # untyped
    for same in (payload, bytearray(payload), memoryview(payload)):
        assert isinstance(decode(same), Decoded)
    for other in (7, "text", [0, 0, 0, 0, 1]):
        with pytest.raises(TypeError):
            decode(other)


@dataclass
class Parcel:
    id: int
    weight: float | None = None


class HeavyParcel(BaseModel):
    id: int
    weight: float = Field(gt=10)


def test_dataclasses_are_written_and_read(client: RegistryClient) -> None:
    payload = Serializer(client, Parcel).serialize(Parcel(1, 20.5), topic="parcels")
    assert Deserializer(client, DeserializerOptions(model=Parcel)).deserialize(payload) == Parcel(1, 20.5)
    assert Deserializer(client).deserialize(payload) == {"id": 1, "weight": 20.5}
    heavy = Deserializer(client, DeserializerOptions(model=HeavyParcel)).deserialize(payload)
    assert heavy == HeavyParcel(id=1, weight=20.5)


def test_a_value_that_the_model_rejects_is_poison(client: RegistryClient) -> None:
    payload = Serializer(client, Parcel).serialize(Parcel(1, 0.5), topic="parcels")
    outcome = Deserializer(client, DeserializerOptions(model=HeavyParcel)).decode(payload)
    assert isinstance(outcome, Poison)
    assert (outcome.reason, outcome.raw) == (Reason.INVALID_VALUE, payload)
    assert "greater than 10" in outcome.detail


def test_a_class_that_is_no_schema_is_rejected(client: RegistryClient) -> None:
    with pytest.raises(ModelError, match="neither a Protobuf message, a dataclass nor a pydantic model"):
        Serializer(client, int)
    with pytest.raises(ValueError, match="mutually exclusive"):
        DeserializerOptions(model=Parcel, reader_subject="parcels-value")
