"""The callables that Spark runs in its Python workers, and the SQL table function."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import lib as pa
from pyspark.sql import Row
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from pyspark.util import PythonEvalType

from headgate.serdes.framing import VALUE_HEADER
from headgate.spark_udfs import table_function
from headgate.spark_udfs.executor import decoding as decoding_module
from headgate.spark_udfs.executor.arrow_functions import (
    DecodeColumn,
    DecodeFrame,
    DecodePairs,
    DecodeReason,
    EncodeColumn,
    EncodeFrame,
    is_header_type,
)
from headgate.spark_udfs.executor.encoding import Encoding
from headgate.spark_udfs.frame import FrameError
from headgate.spark_udfs.spec.policy import OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.reader import SchemaText
from headgate.spark_udfs.table_function import constant, decode_table_function, payload_column
from tests.unit.spark_udfs.plans import NOBODY, binary, decoding, payload, record

ORDER = record(("id", "long"), ("note", "string"))
GOOD = [payload(ORDER, {"id": number, "note": f"note {number}"}) for number in range(3)]
BAD = GOOD[1][:-1]
VALUES = [{"id": number, "note": f"note {number}"} for number in range(3)]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(params=["whole", "pieces"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large arrays are decoded in pieces. The results are the same."""
    if request.param == "pieces":
        monkeypatch.setattr(decoding_module.pieces, "__defaults__", (1,))


def outcome_rows(arrays: Any) -> list[dict[str, Any]]:
    return [row for array in arrays for row in array.to_pylist()]


@pytest.mark.usefixtures("_size")
def test_columns_are_decoded_with_their_outcome() -> None:
    plan = decoding(ORDER)
    found = outcome_rows(DecodeColumn(plan, plan.decoder().type)(iter([binary([GOOD[0], BAD]), binary([GOOD[2]])])))
    assert found == [
        {"value": VALUES[0], "reason": None, "schema_id": 1, "raw": None},
        {"value": None, "reason": "TRUNCATED", "schema_id": 1, "raw": BAD},
        {"value": VALUES[2], "reason": None, "schema_id": 1, "raw": None},
    ]
    reasons = DecodeReason(plan)(iter([binary([GOOD[0], BAD]), binary([None])]))
    assert [reason for array in reasons for reason in array.to_pylist()] == [None, "TRUNCATED", "NULL"]


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("details", [False, True])
def test_pairs_of_payloads_and_headers_are_decoded(details: bool) -> None:
    payloads = binary([GOOD[0], GOOD[1][5:], BAD])
    headers = pa.array([None, [{"key": VALUE_HEADER, "value": GOOD[1][:5]}], []], HEADERS)
    found = outcome_rows(DecodePairs(decoding(ORDER), details)(iter([(payloads, headers)])))
    assert [row["value"] for row in found] == [VALUES[0], VALUES[1], None]
    assert [row["reason"] for row in found] == [None, None, "TRUNCATED"]
    assert [row["raw"] for row in found] == [None, None, BAD]
    if details:
        assert [bool(row["detail"]) for row in found] == [False, False, True]
    else:
        assert "detail" not in found[0]
    # Headers of another type are ignored.
    others = pa.array(["a", "b", "c"], pa.string())
    ignored = outcome_rows(DecodePairs(decoding(ORDER), details)(iter([(payloads, others)])))
    assert [row["reason"] for row in ignored] != [None, None, "TRUNCATED"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (HEADERS, True),
        (pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])), True),
        (pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])), False),
        (pa.list_(pa.struct([("value", pa.string()), ("key", pa.binary())])), False),
        (pa.list_(pa.struct([("key", pa.string())])), False),
        (pa.list_(pa.string()), False),
        (pa.struct([("key", pa.string()), ("value", pa.binary())]), False),
    ],
)
def test_headers_are_lists_of_keys_and_values(kind: pa.DataType, expected: bool) -> None:
    assert is_header_type(kind) == expected


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("details", [False, True])
def test_batches_keep_their_other_columns(flat: bool, details: bool) -> None:
    headers = pa.array([None, None, [{"key": VALUE_HEADER, "value": GOOD[2][:5]}]], HEADERS)
    columns = [pa.array([10, 11, 12]), headers, binary([GOOD[0], BAD, GOOD[2][5:]])]
    batch = pa.RecordBatch.from_arrays(columns, ["offset", "headers", "payload"])
    found = outcome_rows(DecodeFrame(decoding(ORDER), 1, 1, details, flat)([batch]))
    names = ["id", "note"] if flat else ["value"]
    assert list(found[0]) == ["offset", *names, "reason", "schema_id", "raw", *(["detail"] if details else [])]
    assert [row["offset"] for row in found] == [10, 11, 12]
    assert [row["reason"] for row in found] == [None, "TRUNCATED", None]
    assert [row["id"] if flat else row["value"] for row in found] == (
        [0, None, 2] if flat else [VALUES[0], None, VALUES[2]]
    )
    # Without headers, the schema id is in the payload.
    without = outcome_rows(DecodeFrame(decoding(ORDER), 2, None, details, flat)([batch]))
    assert [row["reason"] is None for row in without] == [True, False, False]
    assert "headers" in without[0]


@pytest.mark.parametrize("on_poison", [OnPoison.DEAD_LETTER, OnPoison.NULL])
def test_rows_that_cannot_be_encoded_have_a_reason_in_the_mode_dead_letter(on_poison: OnPoison) -> None:
    encoding = Encoding(
        SchemaText("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}'), 1, on_poison
    )
    values = pa.array([{"id": 1}, {"id": None}], pa.struct([("id", pa.int32())]))
    found = [row for array in EncodeColumn(encoding)(iter([values])) for row in array.to_pylist()]
    if on_poison is OnPoison.DEAD_LETTER:
        assert found[0] == {"value": b"\0\0\0\0\1\2", "reason": None}
        assert found[1]["value"] is None
        assert found[1]["reason"]
    else:
        assert found == [b"\0\0\0\0\1\2", None]


def test_frames_are_encoded_in_pieces_beside_their_other_columns() -> None:
    schema = SchemaText("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}')
    # The second value is too large for the schema, so the rows are encoded in several pieces.
    values = pa.array([{"id": 1}, {"id": 2**40}, {"id": 3}], pa.struct([("id", pa.int64())]))
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "c"]), values, pa.array([7, 8, 9])], ["n", "value", "m"])
    found = outcome_rows(EncodeFrame(Encoding(schema, 1, OnPoison.NULL), 1)([batch]))
    assert found == [
        {"n": "a", "value": b"\0\0\0\0\1\2", "m": 7},
        {"n": "b", "value": None, "m": 8},
        {"n": "c", "value": b"\0\0\0\0\1\6", "m": 9},
    ]


def argument(literal: object = None, /, *, is_table: bool = True, **columns: Any) -> Any:
    kind = StructType([StructField(name, column) for name, column in columns.items()])
    return SimpleNamespace(isTable=is_table, dataType=kind if is_table else StringType(), value=literal)


def test_the_payload_is_the_only_column_or_the_column_value() -> None:
    assert payload_column(argument(payload=BinaryType())) == ("payload", ())
    both = argument(key=BinaryType(), value=BinaryType(), topic=StringType())
    assert payload_column(both) == ("value", ("key", "topic"))
    for bad in (
        argument(payload=StringType()),
        argument(key=BinaryType(), payload=BinaryType()),
        argument(key=BinaryType(), value=StringType()),
    ):
        with pytest.raises(FrameError, match="the table needs a binary column `value`; it has struct<"):
            payload_column(bad)
    with pytest.raises(FrameError, match="the first argument must be a table"):
        payload_column(argument(is_table=False))


def test_arguments_are_constant_strings() -> None:
    assert constant(argument("orders"), "the subject") == "orders"
    with pytest.raises(FrameError, match="the subject must be a constant string"):
        constant(argument(None), "the subject")


def test_the_table_function_decodes_rows_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = decoding(ORDER)
    monkeypatch.setattr(table_function, "BATCH_ROWS_MIN", 2)
    monkeypatch.setattr(table_function, "plan_decoding", lambda _choice, _options, on_registry_down: plan)
    made = decode_table_function(NOBODY, OnRegistryDown.WAIT).func
    table = argument(value=BinaryType(), topic=StringType())
    analyzed = made.analyze(table, argument("orders-value"), argument("id, note"))
    assert analyzed.schema.names == ["topic", "value", "reason", "schema_id", "raw"]
    function = made(analyzed)
    rows = [Row(value=bytearray(GOOD[0]), topic="a"), Row(value=BAD, topic="b"), Row(value=None, topic="c")]
    found = [list(function.eval(row, "orders-value")) for row in rows]
    assert [len(each) for each in found] == [0, 2, 0]
    assert found[1][0] == ("a", (0, "note 0"), None, 1, None)
    assert found[1][1] == ("b", None, "TRUNCATED", 1, BAD)
    assert list(function.terminate()) == [("c", None, "NULL", None, None)]
    assert list(function.terminate()) == []


def test_the_table_function_reads_all_fields_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    choices: list[Any] = []

    def plan(choice: Any, _options: Any, on_registry_down: Any) -> Any:
        choices.append(choice)
        return decoding(ORDER)

    monkeypatch.setattr(table_function, "plan_decoding", plan)
    made = decode_table_function(NOBODY, OnRegistryDown.WAIT)
    table = argument(value=BinaryType())
    made.func.analyze(table, argument("orders-value"))
    made.func.analyze(table, argument("orders-value"), argument(" id ,note"))
    assert [choice.fields for choice in choices] == [None, ("id", "note")]
    # Arrow would convert NaN to null on Spark 4.0.
    assert made.evalType == PythonEvalType.SQL_TABLE_UDF


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int64(), (1, 0)),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), (3, 0)),
        (pa.list_(pa.int64()), (2, 1)),
        (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())])))]), (6, 3)),
        (pa.map_(pa.string(), pa.int64()), (4, 3)),
    ],
)
def test_columns_below_arrays_and_maps_are_counted(kind: pa.DataType, expected: tuple[int, int]) -> None:
    assert table_function.cells(kind) == expected


def test_large_rows_are_decoded_before_the_batch_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = decoding(record(("items", {"type": "array", "items": "long"})))
    made = decode_table_function(NOBODY, OnRegistryDown.WAIT).func
    given = payload(record(("items", {"type": "array", "items": "long"})), {"items": [1] * 95})
    monkeypatch.setattr(table_function, "BATCH_BYTES_MAX", 2 * 8 * (3 + len(given)))
    function = made(SimpleNamespace(decoding=plan, column="value", others=()))
    counts = [len(list(function.eval(Row(value=given)))) for _ in range(3)]
    assert counts == [0, 2, 0]
    assert len(list(function.terminate())) == 1
