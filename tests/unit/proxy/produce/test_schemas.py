"""Encoders of payloads with a schema: the selected schema and the number of registry requests."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from headgate.proxy.errors import InvalidSchemaGiven, SchemaNotFound, SerializationFailed
from headgate.proxy.formats import Format, SchemaChoice
from headgate.proxy.schemas import SchemaEncoders
from headgate.serdes import AsyncDeserializer, AsyncRegistryClient, Decoded
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry

RECORD = json.dumps({"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]})
Result = TypeVar("Result")


def run(stub: StubRegistry, test: Callable[[AsyncRegistryClient], Awaitable[Result]]) -> Result:
    async def with_client() -> Result:
        async with AsyncRegistryClient(ADDRESS, transport=stub.transport) as client:
            return await test(client)

    return asyncio.run(with_client())


@pytest.fixture
def stub() -> StubRegistry:
    stub = StubRegistry()
    stub.add("orders-value", {"schema": RECORD})
    return stub


@pytest.mark.parametrize(
    ("choice", "subject", "version"),
    [
        (SchemaChoice(1, None, None, "orders-value"), "orders-value", 1),
        (SchemaChoice(None, 1, None, "orders-value"), "orders-value", 1),
        (SchemaChoice(None, None, None, "orders-value"), "orders-value", 1),
        (SchemaChoice(None, None, RECORD, "orders-value"), "orders-value", None),
        (SchemaChoice(None, None, RECORD, "orders-value", "RECORD_NAME", "orders"), "shop.Order", None),
        (SchemaChoice(None, None, RECORD, "orders-value", "TOPIC_RECORD_NAME", "orders"), "orders-shop.Order", None),
    ],
    ids=["id", "version", "latest", "text", "record name", "topic and record name"],
)
def test_a_choice_selects_the_schema_and_its_subject(
    stub: StubRegistry, choice: SchemaChoice, subject: str, version: int | None
) -> None:
    async def test(client: AsyncRegistryClient) -> None:
        encoders = SchemaEncoders(client)
        found = await encoders.find(Format.AVRO, choice)
        assert (found.format, found.schema_id, found.subject, found.version) == (Format.AVRO, 1, subject, version)
        assert found.encode({"id": 7}) == b"\0\0\0\0\x01\x0e"
        requests = len(stub.requests)
        assert await encoders.find(Format.AVRO, choice) is found
        assert encoders.cached(Format.AVRO, choice) is found
        assert len(stub.requests) == requests

    run(stub, test)


def test_an_id_is_checked_against_the_subject_of_its_record_name(stub: StubRegistry) -> None:
    choice = SchemaChoice(1, None, None, "orders-value", "RECORD_NAME", "orders")

    async def test(client: AsyncRegistryClient) -> None:
        with pytest.raises(SerializationFailed, match=r"not registered under subject shop\.Order"):
            await SchemaEncoders(client).find(Format.AVRO, choice)
        unchecked = await SchemaEncoders(client, subject_checked=False).find(Format.AVRO, choice)
        assert (unchecked.subject, unchecked.version) == ("shop.Order", None)

    run(stub, test)


def test_wrong_choices_are_rejected(stub: StubRegistry) -> None:
    nameless = json.dumps({"type": "array", "items": "long"})

    async def test(client: AsyncRegistryClient) -> None:
        encoders = SchemaEncoders(client)
        with pytest.raises(InvalidSchemaGiven, match="is avro, not protobuf"):
            await encoders.find(Format.PROTOBUF, SchemaChoice(1, None, None, "orders-value"))
        with pytest.raises(InvalidSchemaGiven, match="needs a schema that has a name"):
            await encoders.find(Format.AVRO, SchemaChoice(None, None, nameless, "s", "RECORD_NAME", "t"))
        with pytest.raises(InvalidSchemaGiven, match="not valid"):
            await encoders.find(Format.AVRO, SchemaChoice(None, None, "{", "s"))
        with pytest.raises(SchemaNotFound):
            await encoders.find(Format.AVRO, SchemaChoice(None, None, None, "nowhere-value"))

    run(stub, test)


def test_a_schema_of_type_bytes_is_written_as_serializers_write_it(stub: StubRegistry) -> None:
    """Confluent's serializers write these payloads without the length."""

    async def test(client: AsyncRegistryClient) -> None:
        found = await SchemaEncoders(client).find(Format.AVRO, SchemaChoice(None, None, '"bytes"', "raw-value"))
        payload = found.encode("abc")
        assert payload == b"\0\0\0\0\x02abc"
        assert await AsyncDeserializer(client).decode(payload) == Decoded(b"abc", 2)

    run(stub, test)
