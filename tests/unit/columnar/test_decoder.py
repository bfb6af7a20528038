"""Input and output of the decoder: slices, chunks, nulls, mixed ids, growing columns, good rows next to bad rows."""

import json
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import Encoder, Schema, parse
from headgate.serdes.columnar import ColumnarDecoder, Engine, FixedSchemas, NotBinary
from headgate.serdes.outcome import Reason
from tests.unit.columnar.checked import Checked

USER = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
USER_V2 = {
    **USER,
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "id", "type": "int"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "extra", "type": ["null", "double"]},
    ],
}
ROOT = Path(__file__).resolve().parents[3]


def payload(schema: Any, value: Any, schema_id: int = 1) -> bytes:
    return struct.pack(">BI", 0, schema_id) + Encoder(parse(json.dumps(schema))).encode(value)


def user(number: int, tags: int = 2) -> dict[str, Any]:
    return {"id": number, "name": f"user {number}", "tags": [f"tag {number}.{tag}" for tag in range(tags)]}


def decoder(reader: Any = None, engine: Engine | None = None, **schemas: Any) -> ColumnarDecoder:
    texts = {1: json.dumps(USER), 2: json.dumps(USER_V2)}
    return ColumnarDecoder(parse(json.dumps(reader or USER)), FixedSchemas(texts), engine=engine, **schemas)


def test_rows_of_several_writers_become_columns_of_one_reader() -> None:
    rows = [payload(USER, user(1)), payload(USER_V2, {**user(2), "extra": 1.5}, 2), payload(USER, user(3))]
    batch = decoder().decode(pa.array(rows, pa.binary()))
    assert batch.values.to_pylist() == [user(1), user(2), user(3)]
    assert batch.reasons.to_pylist() == [0, 0, 0]
    assert batch.schema_ids.to_pylist() == [1, 2, 1]


def test_bad_rows_have_a_reason_and_do_not_affect_good_rows() -> None:
    good = payload(USER, user(5))
    bad: list[tuple[bytes | None, Reason]] = [
        (None, Reason.NULL),
        (b"", Reason.TOO_SHORT),
        (b"\1abc", Reason.TOO_SHORT),
        (b"\1" + good[1:], Reason.BAD_MAGIC),
        (b"\0\0\0\0\x63" + good[5:], Reason.UNKNOWN_SCHEMA),
        (good[:-1], Reason.TRUNCATED),
        (good + b"\0", Reason.TRAILING_BYTES),
        (good[:5] + b"\xff" * 11, Reason.CORRUPT),
        (good[:5], Reason.TRUNCATED),
    ]
    rows: list[bytes | None] = []
    for row, _ in bad:
        rows += [good, row]
    batch = decoder().decode(pa.array([*rows, good], pa.binary()))
    assert batch.reasons.to_pylist()[1::2] == [reason for _, reason in bad]
    assert batch.values.to_pylist()[::2] == [user(5)] * (len(bad) + 1)
    assert batch.values.to_pylist()[1::2] == [None] * len(bad)
    # A single column of the struct also contains the nulls.
    assert batch.values.field("id").to_pylist()[1::2] == [None] * len(bad)
    assert batch.schema_ids.to_pylist()[:10] == [1, None, 1, None, 1, None, 1, None, 1, 99]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()])
def test_payloads_may_be_of_any_binary_type_sliced_and_chunked(kind: pa.DataType) -> None:
    rows = [payload(USER, user(number)) for number in range(20)]
    column = pa.array(rows, pa.binary()).cast(kind)
    expected = [user(number) for number in range(20)]
    assert decoder().decode(column).values.to_pylist() == expected
    assert decoder().decode(column.slice(3, 9)).values.to_pylist() == expected[3:12]
    chunks = pa.chunked_array([column.slice(0, 7), column.slice(7, 0), column.slice(7)])
    assert decoder().decode(chunks).values.to_pylist() == expected


def test_fixed_size_payloads_are_accepted() -> None:
    row = payload(USER, user(1))
    assert decoder().decode(pa.array([row] * 3, pa.binary(len(row)))).values.to_pylist() == [user(1)] * 3


def test_a_column_of_numbers_is_rejected() -> None:
    with pytest.raises(NotBinary, match="list"):
        decoder().decode(pa.array([[1], [2]]))


@pytest.mark.parametrize("rows", [[], [None], [None, None]])
def test_an_empty_batch_is_accepted(rows: list[None]) -> None:
    for column in (
        pa.array(rows, pa.binary()),
        pa.chunked_array([pa.array(rows, pa.binary())]),
        pa.chunked_array([], pa.binary()),
    ):
        batch = decoder().decode(column)
        assert batch.reasons.to_pylist() == [Reason.NULL] * len(column)
        assert batch.values.to_pylist() == [None] * len(column)
        assert batch.values.type == decoder().type


def test_a_batch_that_is_all_poison_has_a_null_for_every_row() -> None:
    batch = decoder().decode(pa.array([b"junk, all of it"] * 100, pa.binary()))
    assert batch.values.null_count == 100
    assert set(batch.reasons.to_pylist()) == {Reason.BAD_MAGIC}


@pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])
def test_columns_grow_on_demand(engine: Engine | None) -> None:
    """Each row is larger than all rows before it, so that all buffers overflow repeatedly."""
    rows = [user(number, tags=3**number) for number in range(8)] + [user(9)]
    batch = decoder(engine=engine).decode(pa.array([payload(USER, row) for row in rows], pa.binary()))
    assert batch.values.to_pylist() == rows


def test_a_row_that_needs_too_much_memory_is_poison_and_others_are_not() -> None:
    """A null takes one byte of payload, and a cell in each of a hundred columns."""
    wide = {"type": "record", "name": "W", "fields": [{"name": f"f{n}", "type": "double"} for n in range(100)]}
    schema = {"type": "array", "items": ["null", wide]}
    bomb, small = b"\0\0\0\0\1\xc0\xb8\x02" + b"\0" * 20_001, b"\0\0\0\0\1\x02\0\0"
    reader = ColumnarDecoder(parse(json.dumps(schema)), FixedSchemas({1: json.dumps(schema)}), row_bytes_max=1_000_000)
    batch = reader.decode(pa.array([small, bomb, small], pa.binary()))
    assert batch.reasons.to_pylist() == [0, Reason.TOO_LARGE, 0]
    assert batch.values.to_pylist() == [[None], None, [None]]


def test_a_wrong_count_allocates_nothing() -> None:
    """Spark's own reader crashes with this payload."""
    row = b"\0\0\0\0\1" + b"\0\0" + b"\x80\xa8\xd6\xb9\x07"
    before = pa.total_allocated_bytes()
    batch = decoder().decode(pa.array([row] * 1000, pa.binary()))
    assert set(batch.reasons.to_pylist()) == {Reason.TRUNCATED}
    assert pa.total_allocated_bytes() - before < 1_000_000


class Counting:
    """A source that counts requests."""

    def __init__(self, answer: Schema | Reason) -> None:
        self.answer = answer
        self.asked: list[int] = []

    def writer_schema(self, schema_id: int) -> Schema | Reason:
        self.asked.append(schema_id)
        return self.answer


def test_a_source_is_called_once_per_unknown_id_and_batch() -> None:
    known = Counting(parse(json.dumps(USER)))
    rows = pa.array([payload(USER, user(1), schema_id) for schema_id in (7, 8, 7, 8, 7)], pa.binary())
    reader = ColumnarDecoder(parse(json.dumps(USER)), known)
    reader.decode(rows)
    reader.decode(rows)
    assert sorted(known.asked) == [7, 8]


def test_an_unavailable_schema_is_requested_again_in_the_next_batch() -> None:
    down = Counting(Reason.REGISTRY_UNAVAILABLE)
    reader = ColumnarDecoder(parse(json.dumps(USER)), down)
    rows = pa.array([payload(USER, user(1), 7)] * 50, pa.binary())
    assert set(reader.decode(rows).reasons.to_pylist()) == {Reason.REGISTRY_UNAVAILABLE}
    down.answer = parse(json.dumps(USER))
    assert set(reader.decode(rows).reasons.to_pylist()) == {0}
    assert down.asked == [7, 7]


def test_thousands_of_distinct_ids_are_supported() -> None:
    ids = [number * 2_654_435 % 2**32 for number in range(3000)]
    source = Counting(parse(json.dumps(USER)))
    batch = ColumnarDecoder(parse(json.dumps(USER)), source).decode(
        pa.array([payload(USER, user(number), schema_id) for number, schema_id in enumerate(ids)], pa.binary())
    )
    assert batch.schema_ids.to_pylist() == ids
    assert sorted(source.asked) == sorted(ids)
    assert batch.values.field("id").to_pylist() == list(range(3000))


def test_bodies_with_separate_ids_are_decoded() -> None:
    bodies = [payload(USER, user(1))[5:], payload(USER_V2, {**user(2), "extra": None}, 2)[5:], None, b"", b"x"]
    batch = decoder().decode_bodies(pa.array(bodies, pa.binary()), pa.array([1, 2, 1, None, 99], pa.int32()))
    assert batch.values.to_pylist() == [user(1), user(2), None, None, None]
    assert batch.reasons.to_pylist() == [0, 0, Reason.NULL, Reason.UNKNOWN_SCHEMA, Reason.UNKNOWN_SCHEMA]


def test_threads_may_share_a_decoder() -> None:
    shared = decoder()
    batches = [
        pa.array([payload(USER, user(number, tags=size), 1) for number in range(200)], pa.binary()) for size in range(8)
    ]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(shared.decode, batches * 4))
    for size, batch in zip(list(range(8)) * 4, results, strict=True):
        assert batch.values.to_pylist() == [user(number, tags=size) for number in range(200)]


def test_importing_serdes_loads_neither_numba_nor_pyarrow() -> None:
    code = "import sys, headgate.serdes; print([name for name in ('numba', 'pyarrow', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_llvmlite_the_plain_engine_is_used() -> None:
    code = """
import sys
sys.modules["llvmlite"] = None
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas, Plain, default_engine
from headgate.serdes.avro import parse
import pyarrow as pa
assert isinstance(default_engine(), Plain)
rows = pa.array([b"\\0\\0\\0\\0\\1\\2a", b"x"])
batch = ColumnarDecoder(parse('"string"'), FixedSchemas({1: '"string"'})).decode(rows)
print(batch.values.to_pylist(), batch.reasons.to_pylist())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a', None] [0, 2]"
