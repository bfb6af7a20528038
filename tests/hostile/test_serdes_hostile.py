"""Hostile payloads: every payload gets a verdict, with little time and memory."""

import io
import json
import random
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import fastavro
import httpx
import pytest

from headgate.serdes import (
    Decoded,
    Deserializer,
    EncodeError,
    Poison,
    Reason,
    RegistryClient,
    RegistrySettings,
    Serializer,
    avro_schema,
)
from headgate.serdes.avro import Decoder, Encoder, parse
from tests.contract.serdes_languages import LANGUAGES, Language
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry

RICH = {
    "type": "record",
    "name": "Rich",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "flag", "type": "boolean"},
        {"name": "name", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "nothing", "type": {"type": "array", "items": "null"}},
        {"name": "attributes", "type": {"type": "map", "values": ["null", "long", "string"]}},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 4}},
        {"name": "children", "type": {"type": "array", "items": "Rich"}},
    ],
}


def rich(depth: int = 1) -> dict[str, Any]:
    return {
        "id": 1 << 40,
        "flag": True,
        "name": "näme",
        "kind": "B",
        "price": b"\x04\xd2",
        "at": 1_700_000_000_000_000,
        "day": 19_000,
        "tags": ["a", "bb"],
        "nothing": [None],
        "attributes": {"x": None, "y": 7, "z": "s"},
        "key": b"abcd",
        "children": [rich(depth - 1)] if depth else [],
    }


def mutations(body: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Yield damaged bodies: bit flips, truncation, insertions, repetitions, and wrong lengths."""
    dice = random.Random(seed)
    lies = [
        b"\xfe\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x01",
        b"\x80" * 11,
        b"\xfe\xff\x03",
    ]
    for _ in range(count):
        mutated = bytearray(body)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(mutated) + 1)
            match dice.randrange(5):
                case 0 if at < len(mutated):
                    mutated[at] ^= 1 << dice.randrange(8)
                case 1:
                    del mutated[at:]
                case 2:
                    mutated[at:at] = dice.randbytes(dice.randint(1, 4))
                case 3:
                    mutated[at : at + 1] = dice.choice(lies)
                case _:
                    mutated[at:at] = mutated[at : at + dice.randint(1, 8)]
        yield bytes(mutated)


def test_mutated_avro_is_either_poison_or_a_value() -> None:
    schema = parse(json.dumps(RICH))
    encoder, decoder = Encoder(schema), Decoder(schema)
    lax: Any = fastavro.parse_schema(json.loads(json.dumps(RICH)))
    body = encoder.encode(rich())
    reasons: set[Reason] = set()
    accepted = 0
    for mutated in mutations(body, seed=5, count=20_000):
        outcome = decoder.decode(mutated)
        if isinstance(outcome, Poison):
            reasons.add(outcome.reason)
        else:
            accepted += 1
            assert decoder.decode(encoder.encode(outcome)) == outcome
            assert fastavro.schemaless_reader(io.BytesIO(mutated), lax) == outcome
    assert reasons == {Reason.TRUNCATED, Reason.CORRUPT, Reason.TRAILING_BYTES, Reason.INVALID_VALUE}
    assert accepted > 100


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_mutated_payloads_of_each_language_get_a_verdict(language: Language) -> None:
    stub = StubRegistry()
    with RegistryClient(
        RegistrySettings((ADDRESS,), unknown_ttl_seconds=1e9), transport=stub.transport, sleep=lambda seconds: None
    ) as client:
        payload = Serializer(client, language.schema).serialize(language.value, topic="t")
        assert payload is not None
        deserializer = Deserializer(client)
        for body in mutations(payload[5:], seed=11, count=3_000):
            assert isinstance(deserializer.decode(payload[:5] + body), (Decoded, Poison))
        for mutated in mutations(payload, seed=12, count=1_000):
            assert isinstance(deserializer.decode(mutated), (Decoded, Poison))


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ({"type": "array", "items": "long"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": {"type": "array", "items": "null"}}, b"\x80\xa0\x06" + b"\xfe\x3f\x00" * 50_000),
        ({"type": "map", "values": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "fixed", "name": "F", "size": (1 << 31) - 1}, b"abc"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5}, b"\x80\x89\x7a" + b"\x7f" * 1_000_000),
    ],
    ids=["array", "nulls", "nulls-in-arrays", "map", "bytes", "fixed", "decimal"],
)
def test_a_lying_count_costs_no_memory(schema: Any, body: bytes) -> None:
    decoder = Decoder(parse(json.dumps(schema)))
    tracemalloc.start()
    try:
        outcome = decoder.decode(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Poison)
    assert peak < 5_000_000


def test_a_message_of_messages_is_too_deep() -> None:
    proto = next(language for language in LANGUAGES if language.name == "protobuf")
    inner = b""
    for _ in range(150):
        inner = b"\x1a" + _varint(len(inner)) + inner
    stub = StubRegistry()
    stub.add("t-value", {"schema": proto.schema.text, "schemaType": "PROTOBUF"})
    with RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport) as client:
        outcome = Deserializer(client).decode(struct.pack(">bI", 0, 1) + b"\x00" + inner)
    assert isinstance(outcome, Poison)
    assert outcome.reason == Reason.TOO_DEEP


def test_a_topic_of_garbage_ids_does_not_become_load() -> None:
    stub = StubRegistry()
    with RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport) as client:
        deserializer = Deserializer(client)
        for number in range(1000):
            assert isinstance(deserializer.decode(struct.pack(">bI", 0, 500 + number % 10)), Poison)
    assert len(stub.requests) == 10


def test_a_registry_that_answers_nonsense_poisons_and_never_raises() -> None:
    answers = iter(
        [
            httpx.Response(200, content=b"\xff\xfe"),
            httpx.Response(200, json={"schema": "[" * 5000}),
            httpx.Response(
                200, json={"schema": '"int"', "references": [{"name": "x", "subject": "y", "version": "z"}]}
            ),
            httpx.Response(200, json={"schema": {"type": "int"}}),
            httpx.Response(302, headers={"Location": "http://elsewhere"}),
            httpx.Response(418, json={"error_code": "x"}),
            httpx.Response(200, json={"schema": "x" * 100, "schemaType": "PROTOBUF"}),
            httpx.Response(200, json={"schema": "7", "schemaType": "JSON"}),
        ]
    )
    stub = StubRegistry()
    stub.intercept = lambda request: next(answers)
    with RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport) as client:
        deserializer = Deserializer(client)
        for number in range(8):
            outcome = deserializer.decode(struct.pack(">bI", 0, number))
            assert isinstance(outcome, Poison)
            assert outcome.reason in (Reason.REGISTRY_UNAVAILABLE, Reason.UNRESOLVABLE)


def test_a_value_that_contains_itself_is_rejected() -> None:
    stub = StubRegistry()
    schema = avro_schema(json.dumps({"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}))
    value: dict[str, Any] = {}
    value["n"] = value
    client = RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport)
    with client, pytest.raises(EncodeError, match="100 levels"):
        Serializer(client, schema).serialize(value, topic="t")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
