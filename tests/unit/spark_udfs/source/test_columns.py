"""The columns of the data source: their types, the projection, and the conversion of fetched records to Arrow."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headgate.serdes import PoisonError
from headgate.serdes.columnar import RecordRows, scan_batches
from headgate.serdes.framing import VALUE_HEADER
from headgate.spark_udfs.source import reading
from headgate.spark_udfs.source.columns import MILLISECONDS_MAX, RowBatches, cut
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.source.record_decoding import RecordDecoding
from headgate.spark_udfs.source.spark_columns import check_schema, chosen, flattened, table_schema
from headgate.spark_udfs.spec.policy import OnPoison
from tests.unit.columnar.test_batches import Record, batch_of, record_bytes
from tests.unit.spark_udfs.plans import decoding, payload, record

ORDER = record(("id", "long"), ("note", "string"))
GOOD = payload(ORDER, {"id": 7, "note": "thanks"})
RAW = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


def rows(*records: Record, base: int = 0, **header: Any) -> RecordRows:
    data = b"".join(record_bytes(delta, one) for delta, one in enumerate(records))
    return scan_batches(memoryview(batch_of(data, len(records), base=base, **header)), 3).rows


def table(plan: Any = None, *, has_headers: bool = False, registry: str | None = None) -> StructType:
    return table_schema(plan and RecordDecoding(plan), has_headers=has_headers, registry=registry)


def columns(names: list[str], records: RecordRows, plan: Any = None, *, is_flat: bool = False) -> dict[str, list[Any]]:
    (batch,) = RowBatches(names, "orders", 3, plan and RecordDecoding(plan), is_flat=is_flat).batches(records)
    return batch.to_pydict()  # type: ignore[no-any-return]


def test_a_table_has_the_columns_of_sparks_kafka_source() -> None:
    assert table().names == RAW
    assert table()["value"].dataType.simpleString() == "binary"
    assert table(has_headers=True).names == [*RAW, "headers"]
    assert all(field.nullable for field in table(has_headers=True).fields)


@pytest.mark.parametrize(
    ("on_poison", "added"),
    [
        (OnPoison.DEAD_LETTER, ["reason", "schema_id", "raw"]),
        (OnPoison.NULL, ["reason", "schema_id"]),
        (OnPoison.FAIL, ["reason", "schema_id"]),
    ],
)
def test_a_decoded_table_has_the_columns_of_the_outcome(on_poison: OnPoison, added: list[str]) -> None:
    plan = decoding(ORDER, on_poison=on_poison)
    decoded = table(plan)
    assert decoded.names == [*RAW, *added]
    assert decoded["value"].dataType.simpleString() == "struct<id:bigint,note:string>"
    assert table(plan, has_headers=True).names == [*RAW, "headers", *added]


def test_the_value_column_remembers_the_registry() -> None:
    assert table(registry="http://a:8081")["value"].metadata == {"headgate.registry.url": "http://a:8081"}
    assert table()["value"].metadata == {}


def test_columns_are_selected_in_the_requested_order_without_regard_to_case() -> None:
    assert chosen(table(), None) == table()
    assert chosen(table(), ["TIMESTAMPTYPE", "key"]).names == ["timestampType", "key"]
    with pytest.raises(BadOption, match="'columns': there is no column 'values'; there are key, value, topic"):
        chosen(table(), ["key", "values"])


def test_the_fields_of_the_value_replace_it() -> None:
    plan = decoding(ORDER)
    assert flattened(chosen(table(plan), ["offset", "value", "reason"])).names == ["offset", "id", "note", "reason"]
    assert flattened(chosen(table(), ["key"])).names == ["key"]
    with pytest.raises(BadOption, match="'flat': the value is binary, which has no fields"):
        flattened(table())


def test_a_field_with_the_name_of_a_column_cannot_be_flattened() -> None:
    plan = decoding(record(("Offset", "long"), ("id", "long")))
    with pytest.raises(BadOption, match=r"two columns 'offset'; choose others with columns: key, value, reason$"):
        flattened(chosen(table(plan), ["offset", "key", "value", "reason"]))
    assert flattened(chosen(table(plan), ["key", "value"])).names == ["key", "Offset", "id"]


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (StructField("offset", LongType()), None),
        (StructField("offset", StringType()), "column offset is bigint, nullable"),
        (StructField("offset", LongType(), nullable=False), "column offset is bigint, nullable"),
        (StructField("offsets", LongType()), "there is no column 'offsets'; there are key, value"),
    ],
)
def test_a_schema_of_the_user_may_omit_columns_but_not_change_them(field: StructField, problem: str | None) -> None:
    if problem is None:
        check_schema(StructType([field]), table())
    else:
        with pytest.raises(BadOption, match=problem):
            check_schema(StructType([field]), table())


def test_records_become_rows() -> None:
    records = rows((b"k", b"v", []), (None, None, [("a", b"1")]), (b"", b"", []), base=70)
    made = columns([*RAW, "headers"], records)
    assert (made["key"], made["value"]) == ([b"k", None, b""], [b"v", None, b""])
    assert (made["topic"], made["partition"]) == (["orders"] * 3, [3] * 3)
    assert made["offset"] == [70, 71, 72]
    assert made["timestampType"] == [0, 0, 0]
    assert made["headers"] == [None, [{"key": "a", "value": b"1"}], None]
    assert columns(["headers", "topic"], records.slice(1, 1)) == {
        "headers": [[{"key": "a", "value": b"1"}]],
        "topic": ["orders"],
    }
    assert columns(["topic"], records.slice(0, 0)) == {"topic": []}


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, None),
        (MILLISECONDS_MAX, MILLISECONDS_MAX * 1000),
        (MILLISECONDS_MAX + 1, None),
        (-MILLISECONDS_MAX, -MILLISECONDS_MAX * 1000),
        (-MILLISECONDS_MAX - 1, None),
        (2**63 - 1, None),
    ],
)
def test_a_timestamp_that_spark_cannot_represent_is_null(milliseconds: int, expected: Any) -> None:
    records = rows((None, b"v", []), time=milliseconds)
    (batch,) = RowBatches(["timestamp"], "orders", 0, None).batches(records)
    cell = batch.column("timestamp")[0]
    assert (cell.value if isinstance(expected, int) else cell.as_py()) == expected


def test_values_are_decoded_in_the_columns_of_the_outcome() -> None:
    records = rows((None, GOOD, []), (None, GOOD[:-1], []), (None, None, []))
    names = ["offset", "value", "reason", "schema_id", "raw"]
    assert columns(names, records, decoding(ORDER)) == {
        "offset": [0, 1, 2],
        "value": [{"id": 7, "note": "thanks"}, None, None],
        "reason": [None, "TRUNCATED", "NULL"],
        "schema_id": [1, 1, None],
        "raw": [None, GOOD[:-1], None],
    }
    assert columns(["id", "reason"], records, decoding(ORDER), is_flat=True) == {
        "id": [7, None, None],
        "reason": [None, "TRUNCATED", "NULL"],
    }


def test_a_schema_id_may_be_in_a_header() -> None:
    in_header = rows((None, GOOD[5:], [(VALUE_HEADER, GOOD[:5])]), (None, GOOD, []))
    assert columns(["id", "reason"], in_header, decoding(ORDER), is_flat=True) == {"id": [7, 7], "reason": [None] * 2}


def test_the_first_poison_record_fails_the_task_and_is_quoted() -> None:
    strict = decoding(ORDER, on_poison=OnPoison.FAIL)
    assert columns(["id"], rows((None, GOOD, [])), strict, is_flat=True) == {"id": [7]}
    with pytest.raises(PoisonError, match=rf"{len(GOOD) - 1} bytes: {GOOD[:-1].hex()}"):
        columns(["value"], rows((None, GOOD, []), (None, GOOD[:-1], [])), strict)


@pytest.mark.parametrize(("end", "kept"), [(70, 0), (71, 1), (72, 2), (73, 3), (74, 3)])
def test_records_from_the_end_offset_on_are_removed(end: int, kept: int) -> None:
    records = rows(*[(None, b"v", [])] * 3, base=70)
    assert cut(records, end).offsets.tolist() == [70, 71, 72][:kept]
    assert len(cut(records.slice(0, 0), end)) == 0


@pytest.mark.parametrize(
    ("rows_max", "bytes_max", "sizes"),
    [
        (10, 1000, [5]),
        (2, 1000, [2, 2, 1]),
        (10, 20, [2, 2, 1]),
        (10, 19, [1] * 5),
        (10, 1, [1] * 5),
        (3, 20, [2, 2, 1]),
    ],
)
def test_a_batch_has_a_limited_number_of_rows_and_bytes(
    monkeypatch: pytest.MonkeyPatch, rows_max: int, bytes_max: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS_MAX", rows_max)
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", bytes_max)
    taken = list(reading.parts(rows(*[(b"key", b"1234567", [])] * 5)))
    assert [len(part) for part in taken] == sizes
    assert [offset for part in taken for offset in part.offsets.tolist()] == list(range(5))
