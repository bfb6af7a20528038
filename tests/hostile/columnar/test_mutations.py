"""Damaged payloads: both decoders agree on each verdict, do not crash, use bounded memory, and read the good rows.

The row-wise decoder takes most of the time.
"""

import json
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.avro import Decoder, parse
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas, read_batches
from headgate.serdes.outcome import Poison, Reason
from tests.rounds import rounds
from tests.unit.columnar.generation import Bodies
from tests.unit.columnar.oracle import rows_of, same
from tests.unit.columnar.test_batches import batch_of, record_bytes

MUTATIONS = rounds(40_000, 1_000_000)
FRAME = b"\0\0\0\0\1"
CHUNK = 50_000

EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "flag", "type": "boolean"},
        {"name": "name", "type": "string"},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "attributes", "type": {"type": "map", "values": ["null", "long", "string"]}},
        {
            "name": "place",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Place",
                    "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": "float"}],
                },
            ],
        },
        {"name": "nothing", "type": {"type": "array", "items": "null"}},
        {"name": "checksum", "type": {"type": "fixed", "name": "Sum", "size": 4}},
    ],
}
EVOLVED: dict[str, Any] = {
    **EVENT,
    "fields": [
        {"name": "title", "type": ["null", "string"], "aliases": ["name"]},
        {"name": "id", "type": "double"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "attributes", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "added", "type": "string", "default": "é"},
        {"name": "tags", "type": {"type": "array", "items": "bytes"}},
    ],
}


def mutated(rng: np.random.Generator, rows: NDArray[np.uint8], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Damage each row of a matrix of payloads in place. Returns the new lengths.

    The kinds of damage are bit flips, wrong lengths, inserted bytes, runs of 0xFF and truncation.
    """
    count, width = rows.shape
    everyone = np.arange(count)
    place = (rng.random(count) * lengths).astype(np.int64)
    kind = rng.integers(0, 5, count)
    flips = kind == 0
    bits = np.left_shift(1, rng.integers(0, 8, count)).astype(np.uint8)
    rows[everyone[flips], place[flips]] ^= bits[flips]
    lies = kind == 1
    rows[everyone[lies], place[lies]] = rng.choice(np.array([0xFF, 0x80, 0x7F, 1, 2, 0xFE], np.uint8), count)[lies]
    columns = np.arange(width)
    for row in everyone[kind == 2]:
        rows[row, place[row] + 1 :] = rows[row, place[row] : -1].copy()
        rows[row, place[row]] = rng.integers(0, 256)
    runs = (kind == 3)[:, None] & (columns >= place[:, None]) & (columns < place[:, None] + 9)
    rows[runs] = 0xFF
    out = lengths.copy()
    out[kind == 2] += 1
    out[kind == 4] = place[kind == 4]
    return out


def payloads(seed: int, count: int) -> pa.Array:
    """Return an Arrow array with one good payload for every three damaged ones.

    The array is built without a Python object per row.
    """
    source = Bodies(Random(seed), EVENT)
    originals = [FRAME + source.body() for _ in range(500)]
    width = max(map(len, originals)) + 1
    matrix = np.zeros((len(originals), width), np.uint8)
    for row, original in enumerate(originals):
        matrix[row, : len(original)] = np.frombuffer(original, np.uint8)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(originals), count)
    rows = matrix[chosen]
    lengths = np.array([len(original) for original in originals], np.int64)[chosen]
    damaged = np.arange(count) % 4 != 0
    part = rows[damaged]
    lengths[damaged] = mutated(rng, part, lengths[damaged])
    rows[damaged] = part
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    data = rows[np.arange(width) < lengths[:, None]]
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@pytest.mark.slow
@pytest.mark.parametrize("reader", [EVENT, EVOLVED], ids=["same", "evolved"])
def test_mutated_payloads_get_one_verdict_from_both_decoders(reader: Any) -> None:
    schema = parse(json.dumps(reader))
    columnar = ColumnarDecoder(schema, FixedSchemas({1: json.dumps(EVENT)}))
    row_wise = Decoder(parse(json.dumps(EVENT)), schema)
    met: Counter[int] = Counter()
    before = pa.total_allocated_bytes()
    for seed in range(max(MUTATIONS // 2 // CHUNK, 1)):
        column = payloads(seed, min(CHUNK, MUTATIONS))
        batch = columnar.decode(column)
        assert pa.total_allocated_bytes() - before < 60 * column.nbytes + 50_000_000
        reasons = batch.reasons.to_pylist()
        met.update(reasons)
        for row, payload in enumerate(column.to_pylist()):
            expected = verdict(payload, row_wise)
            assert reasons[row] == expected, (seed, row, payload)
        compare_some(batch.values, column, reasons, row_wise, schema, seed)
    assert min(met[reason] for reason in (0, 2, 3, 4, 5, 6, 7, 9)) > 0, met


def verdict(payload: bytes, decoder: Decoder) -> int:
    if len(payload) < 5:
        return Reason.TOO_SHORT
    if payload[0] != 0:
        return Reason.BAD_MAGIC
    if payload[:5] != FRAME:
        return Reason.UNKNOWN_SCHEMA
    outcome = decoder.decode(payload[5:])
    return outcome.reason if isinstance(outcome, Poison) else 0


def compare_some(
    values: pa.Array, column: pa.Array, reasons: list[int], decoder: Decoder, schema: Any, seed: int
) -> None:
    """Compare the values of up to 500 consecutive rows. Skips bad rows."""
    start = Random(seed).randrange(max(len(column) - 500, 1))
    ours = rows_of(values.slice(start, 500).take(pa.array(range(min(500, len(column) - start)))), schema)
    for row, value in enumerate(ours):
        if reasons[start + row] == 0:
            assert same(value, decoder.decode(column[start + row].as_py()[5:])), (seed, start + row)


def test_mutated_record_batches_neither_crash_nor_hang() -> None:
    """The test recomputes the checksum, so that the damage reaches the record parser."""
    rng = Random(5)
    records = b"".join(
        record_bytes(delta, (b"key" if delta % 2 else None, b"v" * delta, [("h", b"x"), ("n", None)] * (delta % 3)))
        for delta in range(30)
    )
    faults = rows = 0
    for _ in range(4000):
        damaged = bytearray(records)
        for _ in range(rng.choice((1, 1, 2, 5))):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        good = batch_of(records, 30, base=100)
        result = read_batches(batch_of(bytes(damaged), 30) + good, 0)
        values = result.columns.column("value")
        assert values.slice(len(values) - 30).to_pylist() == [b"v" * delta for delta in range(30)]
        faults += len(result.faults)
        rows += len(values) - 30
    assert faults > 1000
    assert rows > 1000
