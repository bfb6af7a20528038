"""One round of the comparison with the row-wise decoder: random schema, reader and bodies, some of them damaged.

For each row, the columns must have the same reason and the same value as the row-wise decoder.
"""

import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from pyarrow import lib as pa

from headgate.registry.errors import InvalidSchema
from headgate.serdes.avro import Decoder, Schema, parse
from headgate.serdes.avro.column_size import ROW_BYTES_MAX, ColumnLimits
from headgate.serdes.avro.schema import Primitive
from headgate.serdes.columnar.decode.decoder import Batch, ColumnarDecoder
from headgate.serdes.columnar.decode.schema_source import FixedSchemas
from headgate.serdes.columnar.engine import Engine
from headgate.serdes.columnar.errors import SchemaTooLarge
from headgate.serdes.outcome import Reason
from tests.unit.columnar.generation import Bodies, Readers, Schemas, zigzag
from tests.unit.columnar.oracle import rows_of, same, too_deep, verdict

FRAME = b"\0\0\0\0\1"
LIES = (-1, -5, 64, 300, 1_000_000, 2**31, 2**63 - 1, -(2**63))


def damaged(rng: Random, payload: bytes) -> bytes:
    """A flipped bit, a truncation, an insertion, a wrong number, a deletion."""
    out = bytearray(payload)
    kind = rng.random()
    place = rng.randrange(len(out) + 1)
    if kind < 0.3 and place < len(out):
        out[place] ^= 1 << rng.randrange(8)
    elif kind < 0.5:
        del out[place:]
    elif kind < 0.7:
        out[place:place] = rng.randbytes(rng.randint(1, 4))
    elif kind < 0.85 and place >= len(FRAME):
        out[place : place + 1] = zigzag(rng.choice(LIES))
    else:
        del out[place : place + rng.randint(1, 5)]
    return bytes(out)


def round_of(rng: Random) -> tuple[Any, Any] | None:
    """A writer and a reader schema, or None if the random schema is invalid."""
    writer = Schemas(rng).any(4) if rng.random() < 0.3 else Schemas(rng).record(4)
    try:
        reader = Readers(rng, rng.choice((0, 0.05, 0.15, 0.3))).evolve(writer)
        parse(json.dumps(reader))
        parse(json.dumps(writer))
        Bodies(Random(0), writer).body()
    except (InvalidSchema, RecursionError):  # two branches of one type, or an endless record
        return None
    return writer, reader


def is_whole(schema: Any) -> bool:
    """A schema of bytes: its body has no length."""
    return schema == "bytes" or (isinstance(schema, dict) and schema["type"] == "bytes")


def payloads_of(rng: Random, writer: Any, count: int, damage: float) -> list[bytes | None]:
    bodies = Bodies(rng, writer)
    out: list[bytes | None] = []
    for _ in range(count):
        body = bodies.body()
        if is_whole(writer):
            body = body[1:]
        payload = FRAME + body
        if rng.random() < damage:
            payload = damaged(rng, payload)
        out.append(None if rng.random() < 0.02 else payload)
    return out


def check(
    batch: Batch, payloads: Sequence[bytes | None], writer: Schema, reader: Schema, limits: ColumnLimits
) -> Counter[int]:
    """Assert that all rows agree. Returns the number of rows per reason."""
    decoders = {1: Decoder(writer, reader, columns=limits)}
    whole = isinstance(writer, Primitive) and writer.kind == "bytes"
    batch.values.validate(full=True)
    assert len(batch.values) == len(batch.reasons) == len(batch.schema_ids) == len(payloads)
    values = rows_of(batch.values, reader)
    met: Counter[int] = Counter()
    for row, payload in enumerate(payloads):
        sized = payload
        if whole and payload is not None and payload[:5] == FRAME:
            sized = payload[:5] + zigzag(len(payload) - 5) + payload[5:]
        reason, value = verdict(sized, decoders)
        ours = batch.reasons[row].as_py()
        met[ours] += 1
        if ours == Reason.TOO_DEEP and reason != Reason.TOO_DEEP:
            # The columns of a recursive record end at a depth. Errors after that are not reached.
            assert reason != 0 or too_deep(reader, value, limits.recursion_max), (row, payload)
        else:
            assert ours == reason, (row, payload, ours, reason)
            assert ours != 0 or same(values[row], value), (row, payload, values[row], value)
        if ours:
            assert not batch.values[row].is_valid
        framed = payload is not None and len(payload) >= 5 and payload[0] == 0
        assert batch.schema_ids[row].as_py() == (int.from_bytes(payload[1:5]) if framed and payload else None)
    return met


def run(rng: Random, engines: Sequence[Engine | None] = (None,), rows: int = 30, damage: float = 0.5) -> Counter[int]:
    made = round_of(rng)
    if made is None:
        return Counter()
    writer, reader = (parse(json.dumps(schema)) for schema in made)
    try:
        payloads = payloads_of(rng, made[0], rows, damage)
    except RecursionError:  # a record that contains itself too often
        return Counter()
    limits = ColumnLimits(rng.choice((ROW_BYTES_MAX, 100, 300, 1000)), rng.choice((0, 1)))
    met: Counter[int] = Counter()
    for engine in engines:
        try:
            decoder = ColumnarDecoder(
                reader,
                FixedSchemas({1: json.dumps(made[0])}),
                recursion_max=limits.recursion_max,
                row_bytes_max=limits.row_bytes_max,
                engine=engine,
            )
        except SchemaTooLarge:
            return Counter()
        batch = decoder.decode(pa.array(payloads, pa.binary()))
        met += check(batch, payloads, writer, reader, limits)
    return met
