import json
import pickle
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes import PoisonError
from headgate.serdes.avro import Decoder, parse
from headgate.spark_udfs.executor.encoding import Encoding, EncodingError
from headgate.spark_udfs.spec.policy import OnPoison
from tests.unit.spark_udfs.plans import record, schema_text

ORDER = record(
    ("id", "int"),
    ("two", {"type": "fixed", "name": "Two", "size": 2}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("tags", {"type": "map", "values": "string"}),
)
KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("two", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)
ROW: dict[str, Any] = {"id": 1, "two": b"ab", "at": 1999, "tags": [("x", "y")]}


def encoded(rows: list[Any], mode: OnPoison = OnPoison.DEAD_LETTER, kind: pa.DataType = KIND) -> list[Any]:
    spec = Encoding(schema_text(ORDER), 7, mode)
    assert pickle.loads(pickle.dumps(spec)) == spec
    parts = list(spec.encode(pa.array(rows, kind)))
    payloads = [payload for part, _ in parts for payload in part.to_pylist()]
    reasons = [reason for _, part in parts for reason in part.to_pylist()]
    return list(zip(payloads, reasons, strict=True))


def test_valid_rows_are_framed_and_invalid_rows_have_a_reason() -> None:
    rows = [ROW, {**ROW, "id": 2**40}, {**ROW, "two": b"abc"}, None, {**ROW, "id": None}, {**ROW, "id": 2}] * 5
    found = encoded(rows)
    assert [reason for _, reason in found] == [
        None,
        "INVALID_VALUE",
        "INVALID_VALUE",
        "NULL",
        "INVALID_VALUE",
        None,
    ] * 5
    assert all((payload is None) == (reason is not None) for payload, reason in found)
    assert found[0][0][:5] == b"\0\0\0\0\7"
    value: Any = Decoder(parse(json.dumps(ORDER))).decode(found[0][0][5:])
    assert (value["id"], value["two"], value["tags"]) == (1, b"ab", {"x": "y"})
    assert value["at"].microsecond == 1000


def test_fail_reports_the_field_and_accepts_nulls() -> None:
    with pytest.raises(PoisonError, match=r"INVALID_VALUE: id: a number outside 32 bits \(schema id 7\)"):
        encoded([ROW, {**ROW, "id": 2**40}, {**ROW, "two": b"abc"}], OnPoison.FAIL)
    assert [payload is None for payload, _ in encoded([ROW, None], OnPoison.FAIL)] == [False, True]


def test_columns_of_the_wrong_type_raise_an_encoding_error() -> None:
    for kind, named in (
        (pa.struct([("id", pa.int64())]), "two"),
        (pa.struct([*KIND, ("more", pa.int64())]), "no field more"),
        (pa.struct([("id", pa.list_(pa.int64())), *list(KIND)[1:]]), "id"),
        (pa.int64(), "not a struct"),
    ):
        with pytest.raises(EncodingError, match=named):
            encoded([None], kind=kind)
