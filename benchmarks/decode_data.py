"""Schemas, payloads and record batches of `benchmarks.decode`."""

import io
import random
import struct
from collections.abc import Callable
from typing import Any

import fastavro
from aiokafka.record.default_records import DefaultRecordBatchBuilder

DISTINCT = 5_000
RECORDS = 200_000
RECORDS_PER_BATCH = 500

FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "score", "type": ["null", "double"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OPEN", "CLOSED"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "country", "type": "string"},
        {"name": "visits", "type": "long"},
    ],
}
NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "buyer",
            "type": {
                "type": "record",
                "name": "Buyer",
                "fields": [{"name": "name", "type": "string"}, {"name": "vip", "type": ["null", "boolean"]}],
            },
        },
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "price", "type": "double"},
                        {"name": "count", "type": "int"},
                    ],
                },
            },
        },
        {"name": "labels", "type": {"type": "map", "values": "string"}},
        {
            "name": "shipped",
            "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}],
        },
    ],
}
WIDE: dict[str, Any] = {
    "type": "record",
    "name": "Wide",
    "fields": [
        {"name": f"f{number}", "type": ("long", "string", "double", ["null", "string"], "int")[number % 5]}
        for number in range(100)
    ],
}
WIDE_ASKED = ["f0", "f21", "f42", "f63", "f84"]


def flat_value(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.getrandbits(40),
        "user": f"user-{rng.randrange(100_000)}",
        "amount": rng.random() * 1e4,
        "quantity": rng.randrange(1000),
        "paid": rng.random() < 0.5,
        "at": 1_700_000_000_000 + rng.randrange(10**10),
        "note": None if rng.random() < 0.6 else "left at the door",
        "score": None if rng.random() < 0.2 else rng.random(),
        "kind": rng.choice(("NEW", "OPEN", "CLOSED")),
        "price": rng.randrange(10**7).to_bytes(4),
        "country": rng.choice(("NL", "DE", "FR")),
        "visits": rng.randrange(10**6),
    }


def nested_value(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.getrandbits(40),
        "buyer": {"name": f"buyer {rng.randrange(1000)}", "vip": rng.choice((None, True, False))},
        "items": [
            {"sku": f"sku-{rng.randrange(9999)}", "price": rng.random() * 100, "count": rng.randrange(9)}
            for _ in range(rng.randrange(6))
        ],
        "labels": {f"label{number}": "value" for number in range(rng.randrange(3))},
        "shipped": None if rng.random() < 0.5 else {"city": "Utrecht"},
    }


def wide_value(rng: random.Random) -> dict[str, Any]:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.getrandbits(30),
        lambda: "some text",
        rng.random,
        lambda: None if rng.random() < 0.5 else "optional",
        lambda: rng.randrange(10**6),
    )
    return {f"f{number}": makers[number % 5]() for number in range(100)}


def raw_schema(schema: Any) -> Any:
    """Remove the logical types, so that the generator can write the underlying values."""
    if isinstance(schema, dict):
        return {key: raw_schema(value) for key, value in schema.items() if key != "logicalType"}
    return [raw_schema(one) for one in schema] if isinstance(schema, list) else schema


def payloads(schema: Any, make: Callable[[random.Random], Any], poison: float) -> list[bytes]:
    rng = random.Random(1)
    parsed = fastavro.parse_schema(raw_schema(schema))
    out = []
    for _ in range(DISTINCT):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parsed, make(rng))
        payload = struct.pack(">BI", 0, 1) + body.getvalue()
        if rng.random() < poison:
            payload = rng.choice(
                (payload[: rng.randrange(len(payload))], payload + b"x", b"\1" + payload[1:], b"not Avro")
            )
        out.append(payload)
    return out


def repeated(rows: list[bytes], count: int) -> list[bytes]:
    return (rows * (count // len(rows) + 1))[:count]


def batches(codec: int) -> bytes:
    out = []
    for base in range(0, RECORDS, RECORDS_PER_BATCH):
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            batch_size=1 << 30,
        )  # fmt: skip
        for number in range(RECORDS_PER_BATCH):
            headers: list[Any] = [("trace", b"0123456789abcdef")] if number % 2 else []
            builder.append(number, 1_700_000_000_000 + number, b"key-%d" % number, b"value %d " % number * 8, headers)
        batch = bytearray(builder.build())
        struct.pack_into(">q", batch, 0, base)
        out.append(bytes(batch))
    return b"".join(out)
