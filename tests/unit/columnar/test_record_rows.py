"""Records in place: decoded without a copy, sliced, and copied only for requested columns."""

import struct

import pytest

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.columnar import ColumnarDecoder, Engine, FixedSchemas, RecordRows, read_batches, scan_batches
from headgate.serdes.outcome import Reason
from tests.unit.columnar.checked import Checked
from tests.unit.columnar.test_batches import Record, batch_of, record_bytes

FIELDS = '[{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]'
ORDER = f'{{"type": "record", "name": "Order", "fields": {FIELDS}}}'

ENGINES = pytest.mark.parametrize("engine", [None, Checked()], ids=["compiled", "checked"])


def payload(number: int) -> bytes:
    return struct.pack(">BI", 0, 1) + Encoder(parse(ORDER)).encode({"id": number, "note": f"note {number}"})


def fetched() -> bytearray:
    rows: list[Record] = [
        (None, payload(0), []),
        (b"key", None, [("trace", b"1"), ("a\udcff", None)]),
        (b"", payload(2)[:-1], []),
        (b"another", payload(3), [("trace", b"")]),
        (None, b"", []),
        (b"k" * 40, payload(5), []),
    ]
    return bytearray(batch_of(b"".join(record_bytes(delta, row) for delta, row in enumerate(rows)), len(rows), base=70))


def scanned(data: bytearray, engine: Engine | None) -> RecordRows:
    return scan_batches(memoryview(data), 3, engine=engine).rows


@ENGINES
def test_payloads_are_decoded_in_place_as_from_their_column(engine: Engine | None) -> None:
    rows = scanned(fetched(), engine)
    decoder = ColumnarDecoder(parse(ORDER), FixedSchemas({1: ORDER}), engine=engine)
    in_place, copied = decoder.decode(rows.payloads()), decoder.decode(rows.column("value"))
    assert in_place.values.to_pylist() == copied.values.to_pylist()
    assert in_place.schema_ids.to_pylist() == copied.schema_ids.to_pylist()
    assert [Reason(code).name if code else "" for code in in_place.reasons.to_pylist()] == [
        "", "NULL", "TRUNCATED", "", "TOO_SHORT", "",
    ]  # fmt: skip
    part = rows.payloads().slice(1, 3)
    assert decoder.decode(part).values.to_pylist() == copied.values.to_pylist()[1:4]


@ENGINES
def test_a_slice_of_rows_has_their_columns(engine: Engine | None) -> None:
    rows = scanned(fetched(), engine)
    whole = rows.batch()
    assert whole.equals(read_batches(bytes(fetched()), 3, engine=engine).columns)
    for start in range(len(rows)):
        for length in range(len(rows) - start + 1):
            part = rows.slice(start, length)
            assert part.batch().to_pylist() == whole.slice(start, length).to_pylist()
            assert part.has_headers == any(whole.slice(start, length).column("headers").to_pylist())


def test_columns_do_not_change_when_the_bytes_are_overwritten() -> None:
    data = fetched()
    rows = scanned(data, None)
    decoded = ColumnarDecoder(parse(ORDER), FixedSchemas({1: ORDER})).decode(rows.payloads())
    columns = rows.batch()
    before = (columns.to_pylist(), decoded.values.to_pylist())
    data[:] = b"\xee" * len(data)
    assert (columns.to_pylist(), decoded.values.to_pylist()) == before
