"""Every truncation of a body of each type, in the plain engine: columns agree with the row-wise decoder."""

import itertools
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pyarrow import lib as pa

from headgate.serdes.avro import DEPTH_MAX, Duration, Encoder, parse
from headgate.serdes.avro.column_size import ColumnLimits
from headgate.serdes.columnar import BatchTooLarge, ColumnarDecoder, ColumnarEncoder, Engine, FixedSchemas, Plain
from headgate.serdes.columnar.encode import encoder
from headgate.serdes.columnar.kernels import encode_rows, primitives
from tests.unit.columnar.agreement import FRAME, check
from tests.unit.columnar.checked import Checked


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **({} if name is None else {"logicalType": name}), **more}


NODE = {
    "type": "record",
    "name": "N",
    "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "N"]}],
}
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "null": ("null", [None]),
    "boolean": ("boolean", [True, False]),
    "int": ("int", [0, -1, 63, 64, -65, 2**31 - 1, -(2**31)]),
    "long": ("long", [0, 8191, 8192, 2**35, 2**63 - 1, -(2**63)]),
    "float": ("float", [0.5, -0.0]),
    "double": ("double", [0.1, -0.0]),
    "string": ("string", ["", "a", "é" * 20, "x" * 70]),
    "bytes": ("bytes", [b"", b"\0", b"\xff" * 70]),
    "fixed": (fixed(3), [b"abc"]),
    "uuid": (logical("string", "uuid"), [UUID("09af1234-5678-90ab-cdef-99a00fff9af0")]),
    "fixed uuid": (fixed(16, "uuid"), [UUID("00112233-4455-6677-8899-aabbccddeeff")]),
    "duration": (fixed(12, "duration"), [Duration(1, 2, 300)]),
    "decimal": (
        logical("bytes", "decimal", precision=9, scale=2),
        [Decimal(each) for each in ("1.25", "-1.25", "0", "1.27", "1.28", "-1.28", "-1.29", "327.68", "-327.68")],
    ),
    "wide decimal": (
        logical("bytes", "decimal", precision=30, scale=2),
        [Decimal("12345678901234567890.25"), Decimal("-1.25")],
    ),
    "fixed decimal": (fixed(8, "decimal", precision=18, scale=0), [Decimal(5), Decimal(-5)]),
    "date": (logical("int", "date"), [date(2023, 11, 14), date(1969, 12, 31)]),
    "milliseconds": (logical("long", "timestamp-millis"), [datetime(2023, 11, 14, tzinfo=UTC)]),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, ["A", "C"]),
    "nullable": (["null", "long"], [None, 5]),
    "nullable at the end": (["string", "null"], [None, "five"]),
    "union": (["null", "int", "string"], [None, 5, "five"]),
    "array": ({"type": "array", "items": "int"}, [[], [1], [1, 2, 300]]),
    "array of strings": ({"type": "array", "items": "string"}, [[], ["a", "", "bc"]]),
    "map": ({"type": "map", "values": "double"}, [{}, {"a": 0.5, "b": 1.5}]),
    "nested arrays": ({"type": "array", "items": {"type": "array", "items": "boolean"}}, [[], [[], [True, False]]]),
    "recursion": (NODE, [{"id": 1, "next": None}, {"id": 1, "next": {"id": 2, "next": None}}]),
}


def record(*fields: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def damages(body: bytes) -> list[bytes]:
    """Each truncation, a byte too many, and each byte replaced by large, negative and endless numbers."""
    found = [body[:size] for size in range(len(body) + 1)] + [body + b"\0"]
    for at in range(min(len(body), 12)):
        found += [body[:at] + bytes([byte]) + body[at + 1 :] for byte in (0x00, 0x01, 0x02, 0x7E, 0x7F, 0x80, 0xFF)]
    return found


@pytest.mark.parametrize("place", ["last", "followed", "skipped"])
@pytest.mark.parametrize("engine", [Plain(), Checked()], ids=["plain", "checked"])
@pytest.mark.parametrize("name", KINDS)
def test_damage_at_each_byte_has_the_same_reason(name: str, engine: Engine, place: str) -> None:
    kind, values = KINDS[name]
    value, after = ("value", kind), ("after", "int")
    written = record(value) if place == "last" else record(value, after)
    read = record(after) if place == "skipped" else written
    writer, reader = parse(json.dumps(written)), parse(json.dumps(read))
    rest = {} if place == "last" else {"after": 7}
    bodies = [Encoder(writer).encode({"value": each, **rest}) for each in values]
    payloads = [FRAME + each for body in bodies for each in damages(body)]
    decoder = ColumnarDecoder(reader, FixedSchemas({1: json.dumps(written)}), recursion_max=1, engine=engine)
    batch = decoder.decode(pa.array(payloads, pa.binary()))
    assert check(batch, payloads, writer, reader, ColumnLimits(recursion_max=1))[0] >= len(values)


@pytest.mark.parametrize("place", ["last", "followed"])
@pytest.mark.parametrize(
    ("written", "read", "values"),
    [
        ("int", "long", [0, -1, 2**31 - 1]),
        ("int", "float", [0, -1, 2**24 + 1]),
        ("int", "double", [0, -1, 2**31 - 1]),
        ("long", "float", [0, 2**63 - 1]),
        ("long", "double", [0, -(2**63)]),
        ("float", "double", [0.5, -0.0, 1e30]),
        ("string", "bytes", ["", "é" * 20]),
        ("bytes", "string", [b"", b"abc", b"\xff"]),
        (["null", "int"], ["null", "long"], [None, 5]),
    ],
)
def test_damage_of_promoted_values_has_the_same_reason(written: Any, read: Any, values: list[Any], place: str) -> None:
    after = [] if place == "last" else [("after", "int")]
    schemas = [json.dumps(record(("value", kind), *after)) for kind in (written, read)]
    writer, reader = (parse(schema) for schema in schemas)
    rest = {} if place == "last" else {"after": 7}
    bodies = [Encoder(writer).encode({"value": each, **rest}) for each in values]
    payloads = [FRAME + each for body in bodies for each in damages(body)]
    decoder = ColumnarDecoder(reader, FixedSchemas({1: schemas[0]}), engine=Checked())
    check(decoder.decode(pa.array(payloads, pa.binary())), payloads, writer, reader, ColumnLimits())


def linked(length: int) -> Any:
    value: Any = None
    for number in range(length):
        value = {"id": number, "next": value}
    return value


@pytest.mark.parametrize("levels", range(DEPTH_MAX - 3, DEPTH_MAX + 2))
@pytest.mark.parametrize("place", ["read", "skipped", "skipped in an array"])
def test_levels_are_limited_as_in_the_row_wise_decoder(place: str, levels: int) -> None:
    arrays: Any = "int"
    value: Any = 1
    for _ in range(levels):
        arrays, value = {"type": "array", "items": arrays}, [value]
    nodes: Any = {"type": "array", "items": NODE} if place == "skipped in an array" else NODE
    lists = [linked(length) for length in (1, levels - 1, levels, levels + 1)]
    bodies: list[tuple[Any, list[Any]]] = [(arrays, [value])]
    if place != "read":
        bodies.append((nodes, [[each] for each in lists] if place == "skipped in an array" else lists))
    for kind, values in bodies:
        written = record(("value", kind), ("after", "int"))
        read = written if place == "read" else record(("after", "int"))
        writer, reader = parse(json.dumps(written)), parse(json.dumps(read))
        payloads = [FRAME + body_of({"value": each, "after": 7}) for each in values]
        decoder = ColumnarDecoder(reader, FixedSchemas({1: json.dumps(written)}), engine=Checked())
        check(decoder.decode(pa.array(payloads, pa.binary())), payloads, writer, reader, ColumnLimits())


def body_of(value: Any) -> bytes:
    """The body without a limit of levels: the encoder has the same limit as the decoder."""
    if isinstance(value, dict) and "value" in value:
        return body_of(value["value"]) + b"\x0e"
    if isinstance(value, list):
        return b"\x02" + b"".join(body_of(each) for each in value) + b"\0"
    if isinstance(value, dict):
        return bytes([value["id"] << 1 & 0x7F]) + (b"\0" if value["next"] is None else b"\x02" + body_of(value["next"]))
    return b"\x02"


@pytest.mark.parametrize("text", ["09AF1234-5678-90AB-CDEF-99A00FFF9AF0", "09af1234-5678-90ab-cdef-99a00fff9af0"])
def test_hexadecimal_digits_of_a_uuid_may_be_upper_case(text: str) -> None:
    schema = parse(json.dumps(fixed(16, "uuid")))
    encoded = ColumnarEncoder(schema, 1, engine=Checked()).encode(pa.array([text, text[:-1] + "G", text[:-1] + "/"]))
    assert encoded.payloads.to_pylist() == [FRAME + UUID(text).bytes, None, None]


@pytest.mark.parametrize("engine", [Plain(), Checked()], ids=["plain", "checked"])
@pytest.mark.parametrize("name", KINDS)
def test_columns_are_encoded_as_the_row_wise_encoder_does(name: str, engine: Engine) -> None:
    kind, values = KINDS[name]
    schema = json.dumps(record(("value", kind), ("after", "int")))
    parsed = parse(schema)
    payloads = [FRAME + Encoder(parsed).encode({"value": each, "after": 7}) for each in values]
    column = ColumnarDecoder(parsed, FixedSchemas({1: schema}), recursion_max=1).decode(pa.array(payloads, pa.binary()))
    for start in range(len(values)):
        encoded = ColumnarEncoder(parsed, 1, engine=engine).encode(column.values.slice(start))
        assert encoded.payloads.to_pylist() == payloads[start:]


@pytest.mark.parametrize("name", KINDS)
def test_the_output_grows_by_exactly_the_needed_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each instruction asks for its own bytes: the output starts empty, and has no byte more than requested."""
    sizes: list[int] = []

    def larger(out: Any, needed: int, used: int) -> Any:
        assert needed > len(out)
        sizes.append(needed)
        grown = np.zeros(needed, np.uint8)
        grown[:used] = out[:used]
        return grown

    monkeypatch.setattr(encoder, "_larger", larger)
    monkeypatch.setattr(encoder, "BYTES_PER_ROW", 0)
    kind, values = KINDS[name]
    schema = json.dumps(record(("value", kind), ("after", "int")))
    parsed = parse(schema)
    payloads = [FRAME + Encoder(parsed).encode({"value": each, "after": 7}) for each in values * 3]
    column = ColumnarDecoder(parsed, FixedSchemas({1: schema}), recursion_max=1).decode(pa.array(payloads, pa.binary()))
    encoded = ColumnarEncoder(parsed, 1, engine=Checked()).encode(column.values)
    assert encoded.payloads.to_pylist() == payloads
    assert sizes == sorted(sizes)
    # A decimal reserves its longest form.
    assert sizes[-1] <= sum(map(len, payloads)) + 2 * encode_rows.ROW_BYTES


@pytest.mark.parametrize(("needed", "size"), [(10, 200), (100, 200), (101, 202), (250, 256), (256, 256)])
def test_the_output_doubles_up_to_its_limit(needed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "OUT_BYTES_MAX", 256)
    grown = encoder._larger(np.arange(100, dtype=np.uint8), needed, 7)
    assert len(grown) == size
    assert grown[:7].tolist() == list(range(7))
    with pytest.raises(BatchTooLarge, match="257 bytes or more"):
        encoder._larger(grown, 257, 7)


@pytest.mark.parametrize("engine", [Plain(), Checked()], ids=["plain", "checked"])
def test_a_body_of_bytes_may_start_at_the_first_byte_of_the_data(engine: Engine) -> None:
    """The schema id is in a header, so that there is no frame before the body."""
    decoder = ColumnarDecoder(parse('"bytes"'), FixedSchemas({1: '"bytes"'}), engine=engine)
    batch = decoder.decode_bodies(pa.array([b"abc", b"", None], pa.binary()), pa.array([1, 1, 1], pa.int64()))
    assert batch.values.to_pylist() == [b"abc", b"", None]
    assert batch.reasons.to_pylist()[:2] == [0, 0]


EDGES = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF)
LEADS = (*EDGES, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)


def test_utf_8_is_what_python_decodes() -> None:
    for size in range(1, 5):
        for text in itertools.product(LEADS, *[EDGES] * (size - 1)):
            data = bytes(text)
            cells: Any = data
            try:
                data.decode()
                expected = True
            except UnicodeDecodeError:
                expected = False
            assert primitives.is_utf8(cells, 0, size) == expected, data.hex()
