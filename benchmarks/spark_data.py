"""Input of all contenders of `benchmarks.spark`: framed orders in three schema versions.

The versions differ like those of a real topic. One field is renamed (with an alias), one is promoted, one is added, and
one is added and removed again. `payloads` contains only poison that `from_avro` survives. `killers` contains poison
that ends its JVM, and only ours reads it.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet
from pyarrow import lib as pa

from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarEncoder

SUBJECT = "orders-value"
POISON_SHARE = 0.08
FILES = 4
"""Parquet files: two per core, so that no core is idle for long."""
FEW_FIELDS = ("id", "customer", "amount", "at", "kind")

_KIND = {"type": "enum", "name": "Kind", "symbols": ["NEW", "OPEN", "CLOSED"]}
_ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": "string"}],
}


def _order(email: dict[str, Any], quantity: str, *added: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        email,
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": quantity},
        {"name": "paid", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "score", "type": ["null", "double"], "default": None},
        {"name": "kind", "type": _KIND},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "country", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "address", "type": _ADDRESS},
        *added,
    ]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}


_MAIL = {"name": "mail", "type": ["null", "string"], "default": None}
_EMAIL = {"name": "email", "type": ["null", "string"], "default": None, "aliases": ["mail"]}
_SOURCE = {"name": "source", "type": "string", "default": "web"}
_COUPON = {"name": "coupon", "type": "string", "default": ""}

VERSIONS: tuple[dict[str, Any], ...] = (
    _order(_MAIL, "int"),
    _order(_MAIL, "long", _SOURCE, _COUPON),
    _order(_EMAIL, "long", _SOURCE),
)
"""The last version is the reader's schema. It has fifteen fields."""


def texts() -> list[str]:
    return [json.dumps(version) for version in VERSIONS]


def few_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the reader's schema with five fields only. Avro skips the other fields, as ours does."""
    return {**schema, "fields": [field for field in schema["fields"] if field["name"] in FEW_FIELDS]}


def values(rows: int, seed: int) -> pa.StructArray:
    """Return orders as columns, in the reader's version."""
    rng = np.random.default_rng(seed)

    def drawn(texts_: Sequence[str | None]) -> pa.Array:
        return pa.array(texts_, pa.string()).take(pa.array(rng.integers(0, len(texts_), rows)))

    ids = np.arange(rows, dtype=np.int64) + seed * rows
    lengths = rng.integers(0, 4, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    words = pa.array(["gift", "fragile", "express", "bulk", "returned"], pa.string())
    tags = pa.ListArray.from_arrays(pa.array(offsets), words.take(pa.array(rng.integers(0, 5, int(offsets[-1])))))
    cents = np.zeros((rows, 2), np.int64)
    cents[:, 0] = rng.integers(0, 10**7, rows)
    columns: dict[str, pa.Array] = {
        "id": pa.array(ids),
        "customer": drawn([f"customer-{number}" for number in range(100_000)]),
        "email": drawn([None, *(f"c{number}@example.org" for number in range(20_000))]),
        "amount": pa.array(rng.random(rows) * 1e4),
        "quantity": pa.array(rng.integers(1, 1000, rows)),
        "paid": pa.array(rng.random(rows) < 0.5),
        "at": pa.array(1_700_000_000_000 + rng.integers(0, 10**10, rows)).cast(pa.timestamp("ms", "UTC")),
        "note": drawn([None, None, None, "left at the door", "call before delivery"]),
        "score": pa.array(rng.random(rows), mask=rng.random(rows) < 0.2),
        "kind": drawn(["NEW", "OPEN", "CLOSED"]),
        "price": pa.Array.from_buffers(pa.decimal128(10, 2), rows, [None, pa.py_buffer(cents)]),
        "country": drawn(["NL", "DE", "FR", "BE", "GB"]),
        "tags": tags,
        "address": pa.StructArray.from_arrays(
            [drawn([f"city {number}" for number in range(500)]), drawn([f"{number:05}" for number in range(9999)])],
            names=["city", "zip"],
        ),
        "source": drawn(["web", "app", "shop"]),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _as_version(orders: pa.StructArray, number: int) -> pa.StructArray:
    columns = {field.name: orders.field(field.name) for field in orders.type}
    if number < 2:
        columns = {"mail" if name == "email" else name: column for name, column in columns.items()}
    if number == 0:
        columns["quantity"] = columns["quantity"].cast(pa.int32())
        del columns["source"]
    if number == 1:
        columns["coupon"] = pa.array([""], pa.string()).take(pa.array(np.zeros(len(orders), np.int64)))
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def payloads(rows: int, schema_ids: Sequence[int], *, poison: float = 0.0) -> list[bytes]:
    """Return framed orders that cycle through the three versions.

    `poison` is the share of damaged payloads. All kinds of damage are equally frequent.
    """
    out: list[bytes] = [b""] * rows
    for number, (schema_id, text) in enumerate(zip(schema_ids, texts(), strict=True)):
        places = range(number, rows, len(VERSIONS))
        orders = _as_version(values(len(places), number), number)
        encoded = ColumnarEncoder(parse(text), schema_id).encode(orders)
        out[number :: len(VERSIONS)] = encoded.payloads.to_pylist()
    rng = Random(7)
    spoilt = rng.sample(range(rows), int(rows * poison))
    for turn, row in enumerate(spoilt):
        out[row] = _spoilt(out[row], turn % POISON_KINDS, rng, schema_ids)
    return out


POISON_KINDS = 8


def _spoilt(payload: bytes, kind: int, rng: Random, schema_ids: Sequence[int]) -> bytes:
    if kind == 0:
        return payload[: rng.randrange(5)]
    if kind == 1:
        return b"\1" + payload[1:]
    if kind == 2:
        return struct.pack(">BI", 0, 4_000_000) + payload[5:]
    if kind == 3:
        return payload[: rng.randrange(6, len(payload) - 1)]
    if kind == 4:
        return payload + rng.randbytes(3)
    if kind == 5:
        return payload[:5] + b"\xff" * 11 + payload[16:]
    if kind == 6:
        # The id is 2, and the length of the customer's name is -1.
        return payload[:5] + b"\4\1" + payload[7:]
    # A body of the second version with the schema id of the first: trailing bytes remain.
    body = payload[5:] if payload[4] == schema_ids[1] % 256 else payload[5:] + b"\6web\0"
    return struct.pack(">BI", 0, schema_ids[0]) + body


def killers(rows: list[bytes], schema_id: int) -> list[bytes]:
    """Return payloads, some of which end a JVM that runs `from_avro`.

    They contain counts and lengths in the billions, or almost a megabyte of 0xFF.
    """
    frame = struct.pack(">BI", 0, schema_id)
    name = b"\4\2a"
    bad = (
        frame + name + b"\0" + bytes(8) + b"\2\1\0\0\0\0\2\0\0" + b"\x80\xa8\xd6\xb9\x07",
        frame + b"\4" + b"\xfe\xff\xff\xff\x0f" + b"a" * 20,
        frame + b"\xff" * 900_000,
    )
    out = list(rows)
    for turn, row in enumerate(Random(8).sample(range(len(out)), 60)):
        out[row] = bad[turn % len(bad)]
    return out


def write_parquet(rows: list[bytes], folder: Path) -> None:
    """Write the payloads as one binary column, `value`, to `FILES` files."""
    write: Any = pyarrow.parquet.write_table
    folder.mkdir(parents=True)
    for number in range(FILES):
        part = pa.array(rows[number::FILES], pa.binary())
        table = pa.Table.from_arrays([part], names=["value"])
        write(table, folder / f"part-{number}.parquet")
