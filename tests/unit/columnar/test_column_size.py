"""The size of rows as columns: batches end at a limit, and both decoders reject the same rows."""

import json
from random import Random
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import Decoder, Encoder, parse
from headgate.serdes.avro import decoder as decoder_module
from headgate.serdes.avro.column_size import ColumnLimits, entry_size, item_bytes
from headgate.serdes.columnar import ColumnarDecoder, Engine, FixedSchemas
from headgate.serdes.outcome import Poison, Reason
from tests.unit.columnar.checked import Checked

FRAME = b"\0\0\0\0\1"
ITEMS = 300


def record(name: str, *fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    listed = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return {"type": "record", "name": name, "fields": listed}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def number(value: int) -> bytes:
    return bytes(Encoder(parse('"long"')).encode(value))


def repeated(count: int, item: bytes) -> bytes:
    return number(count) + item * count + b"\0"


WIDE = record("W", *((f"f{at}", "long") for at in range(50)))
EMPTY = record("W")
FILLED = record("W", *((f"f{at}", "long", 7) for at in range(50)))
TEXT = record("W", ("text", "string", "x" * 400))
LISTS = record("W", ("list", array("long"), [0] * 40))
MAPS = record("W", ("map", {"type": "map", "values": "long"}, {f"key{at}": at for at in range(20)}))
ENUM = {"type": "enum", "name": "E", "symbols": ["S" * 400]}
FIXED = {"type": "fixed", "name": "F", "size": 400}
MAP_OF = {"type": "map", "values": ["null", WIDE]}

AMPLIFIERS: dict[str, tuple[Any, Any, bytes]] = {
    "an array of nulls": (array(["null", WIDE]), array(["null", WIDE]), repeated(ITEMS, b"\0")),
    "an array of nulls in blocks": (array(["null", WIDE]), array(["null", WIDE]), b"\2\0" * ITEMS + b"\0"),
    "a map of nulls": (MAP_OF, MAP_OF, repeated(ITEMS, b"\2a\0")),
    "an array of empty records": (array(EMPTY), array(FILLED), repeated(ITEMS, b"")),
    "an array of optional records": (array(["null", EMPTY]), array(["null", FILLED]), repeated(ITEMS, b"\2")),
    "default strings": (array(["null", EMPTY]), array(["null", TEXT]), repeated(ITEMS, b"\2")),
    "default arrays": (array(["null", EMPTY]), array(["null", LISTS]), repeated(ITEMS, b"\2")),
    "default maps": (array(["null", EMPTY]), array(["null", MAPS]), repeated(ITEMS, b"\2")),
    "long symbols": (array(ENUM), array(ENUM), repeated(ITEMS, b"\0")),
    "nulls of a wide fixed": (array(["null", FIXED]), array(["null", FIXED]), repeated(ITEMS, b"\0")),
    "three levels": (
        array(array(array(["null", WIDE]))),
        array(array(array(["null", WIDE]))),
        repeated(6, repeated(5, repeated(10, b"\0"))),
    ),
}
"""Writer schema, reader schema, body. Each takes up to 1 kB of payload, and more than 100 kB as columns."""


def decoder(name: str, row_bytes_max: int, batch_bytes_max: int, engine: Engine | None = None) -> ColumnarDecoder:
    writer, reader, _ = AMPLIFIERS[name]
    return ColumnarDecoder(
        parse(json.dumps(reader)),
        FixedSchemas({1: json.dumps(writer)}),
        row_bytes_max=row_bytes_max,
        batch_bytes_max=batch_bytes_max,
        engine=engine,
    )


def row_wise(name: str, body: bytes, row_bytes_max: int) -> int:
    writer, reader, _ = AMPLIFIERS[name]
    limits = ColumnLimits(row_bytes_max)
    outcome = Decoder(parse(json.dumps(writer)), parse(json.dumps(reader)), columns=limits).decode(body)
    return outcome.reason if isinstance(outcome, Poison) else 0


@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
@pytest.mark.parametrize("name", AMPLIFIERS)
def test_both_decoders_reject_a_row_at_the_same_size(name: str, engine: Engine | None) -> None:
    body = AMPLIFIERS[name][2]
    assert len(body) < 1500
    low, high = 0, 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if row_wise(name, body, middle) else (low, middle)
    assert high > 100_000
    for limit, reason in ((high, 0), (low, Reason.TOO_LARGE), (1, Reason.TOO_LARGE)):
        batch = decoder(name, limit, 2**40, engine).decode(pa.array([FRAME + body], pa.binary()))
        assert batch.reasons.to_pylist() == [reason]
        assert row_wise(name, body, limit) == reason


@pytest.mark.parametrize("name", AMPLIFIERS)
def test_a_batch_ends_before_the_row_that_exceeds_its_size(name: str) -> None:
    body = AMPLIFIERS[name][2]
    rows = pa.array([FRAME + body, b"junk", FRAME + body, FRAME + body + b"!", FRAME + body, FRAME + body], pa.binary())
    whole = decoder(name, 2**40, 2**40).decode(rows)
    split = decoder(name, 2**40, 260_000)
    parts = []
    done = 0
    while done < len(rows):
        parts.append(split.decode(rows.slice(done)))
        done += len(parts[-1].reasons)
    assert len(parts) > 1
    assert pa.concat_arrays([part.values for part in parts]).equals(whole.values)
    assert pa.concat_arrays([part.reasons for part in parts]).equals(whole.reasons)
    assert pa.concat_arrays([part.schema_ids for part in parts]).equals(whole.schema_ids)


def test_a_row_above_the_size_of_a_batch_is_a_batch_of_one_row() -> None:
    body = AMPLIFIERS["an array of nulls"][2]
    rows = pa.array([FRAME + body] * 3, pa.binary())
    batch = decoder("an array of nulls", 2**40, 1000).decode(rows)
    assert batch.reasons.to_pylist() == [0]
    assert len(batch.values[0]) == ITEMS


def test_large_rows_do_not_enlarge_the_estimate_for_later_batches() -> None:
    body = AMPLIFIERS["an array of nulls"][2]
    small = FRAME + repeated(1, b"\0")
    split = decoder("an array of nulls", 2**40, 200_000)
    split.decode(pa.array([FRAME + body], pa.binary()))
    before = pa.total_allocated_bytes()
    batch = split.decode(pa.array([small] * 400, pa.binary()))
    assert batch.values.to_pylist() == [[None]] * 400
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_columns_of_nested_lists_belong_to_their_own_items() -> None:
    schema = parse(json.dumps(record("R", ("a", "long"), ("b", array(WIDE)), ("c", ["null", FIXED]))))
    assert item_bytes(schema, 4) == 8 + 8 + 8 + 400


@pytest.mark.parametrize("row_bytes_max", [2_000, 20_000, 200_000, 2_000_000])
def test_short_bodies_that_are_not_counted_have_the_same_verdict(row_bytes_max: int) -> None:
    wide = record("Wide", *((f"f{at}", ["null", "string"]) for at in range(5)))
    schema = parse(json.dumps(record("R", ("a", array(array(["null", wide]))), ("s", "string"), ("m", array("null")))))
    limits = ColumnLimits(row_bytes_max)
    fast, counted = Decoder(schema, columns=limits), Decoder(schema, schema, columns=limits)
    random = Random(row_bytes_max)
    met = set()
    for _ in range(1500):
        # Numbers of two bytes promise many items. Zeros are nulls and ends.
        parts = random.choices([b"\0", b"\2", b"\4", b"\x80\x08", b"\xfe\x7f", b"\0" * 300], [6, 3, 2, 2, 1, 1], k=20)
        body = b"".join(parts)
        outcomes = [decoder.decode(body) for decoder in (fast, counted)]
        assert outcomes[0] == outcomes[1], body
        met.add(outcomes[0].reason if isinstance(outcomes[0], Poison) else None)
    assert Reason.TRUNCATED in met
    assert (Reason.TOO_LARGE in met) == (row_bytes_max < 200_000)


def test_a_schema_with_many_large_arrays_is_measured_with_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    node = record("N", *((f"f{at}", ["null", "N"]) for at in range(4)))
    fields = [(f"a{at}", array("N")) for at in range(50)]
    schema = parse(json.dumps(record("R", ("n", node), *fields)))
    calls: list[object] = []
    measure = entry_size
    monkeypatch.setattr(decoder_module, "COLUMNS_MEASURED_MAX", 10_000)

    def counted(*given: Any) -> tuple[int, int]:
        calls.append(given)
        return measure(*given)

    monkeypatch.setattr(decoder_module, "entry_size", counted)
    Decoder(schema)
    assert 0 < len(calls) < 20
