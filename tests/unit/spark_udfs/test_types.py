from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.spark_udfs.executor.spark_types import spark_arrow_type, to_spark, truncate_timestamps

NESTED = pa.struct(
    [
        ("fixed", pa.binary(2)),
        ("time", pa.time32("ms")),
        ("times", pa.list_(pa.time64("us"))),
        ("spans", pa.map_(pa.string(), pa.struct([("months", pa.uint32())]))),
        ("at", pa.timestamp("ns", "UTC")),
        ("money", pa.decimal256(50, 2)),
        ("nothing", pa.null()),
    ]
)
VALUES: list[Any] = [
    {"fixed": b"ab", "time": 5, "times": [1, None], "spans": [("x", {"months": 2**32 - 1})], "at": -1, "money": "1.50",
     "nothing": None},
    None,
    {"fixed": None, "time": None, "times": None, "spans": [], "at": None, "money": None, "nothing": None},
]  # fmt: skip


def column() -> pa.Array:
    rows = [
        value and {**value, "money": None if value["money"] is None else Decimal(str(value["money"]))}
        for value in VALUES
    ]
    return pa.array(rows, NESTED)


def test_unsupported_types_are_cast_at_every_depth() -> None:
    converted = to_spark(column())
    converted.validate(full=True)
    assert converted.type == pa.struct(
        [
            ("fixed", pa.binary()),
            ("time", pa.int32()),
            ("times", pa.list_(pa.int64())),
            ("spans", pa.map_(pa.string(), pa.struct([("months", pa.int64())]))),
            ("at", pa.timestamp("us", "UTC")),
            ("money", pa.string()),
            ("nothing", pa.null()),
        ]
    )
    assert converted.to_pylist() == [
        {"fixed": b"ab", "time": 5, "times": [1, None], "spans": [("x", {"months": 2**32 - 1})],
         "at": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "money": "1.50", "nothing": None},
        None,
        {"fixed": None, "time": None, "times": None, "spans": [], "at": None, "money": None, "nothing": None},
    ]  # fmt: skip


def test_a_slice_is_cast_like_the_whole_array() -> None:
    whole = pa.concat_arrays([column(), column()])
    for start in range(len(whole)):
        assert to_spark(whole.slice(start, 3)).to_pylist() == to_spark(whole).to_pylist()[start : start + 3]


def test_a_supported_column_is_not_copied() -> None:
    array = pa.array([{"id": 1, "tags": ["a"]}], pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string()))]))
    assert to_spark(array) is array


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.large_string(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.decimal128(38, 5), pa.decimal128(38, 5)),
    ],
)
def test_each_arrow_type_has_the_expected_spark_arrow_type(kind: pa.DataType, expected: pa.DataType) -> None:
    assert spark_arrow_type(kind) == expected


def test_timestamps_are_truncated_to_the_precision_of_the_schema() -> None:
    fine = pa.timestamp("us", "UTC")
    kind = pa.struct([("at", fine), ("list", pa.list_(fine)), ("map", pa.map_(pa.string(), fine)), ("id", pa.int64())])
    rows = [{"at": 1999, "list": [-1, None], "map": [("x", 2001)], "id": 1}, None]
    coarse = pa.timestamp("ms", "UTC")
    wanted = pa.struct([("map", pa.map_(pa.string(), coarse)), ("at", coarse), ("list", pa.list_(coarse))])
    cut = truncate_timestamps(pa.array(rows, kind), wanted)
    cut.validate(full=True)
    assert cut.type == pa.struct(
        [("at", coarse), ("list", pa.list_(coarse)), ("map", pa.map_(pa.string(), coarse)), ("id", pa.int64())]
    )
    at = cut.field("at").cast(pa.int64()).to_pylist()
    assert (at[0], cut.field("list").values.cast(pa.int64()).to_pylist()) == (1, [-1, None])
    same = pa.array([{"id": 1}], pa.struct([("id", pa.int64())]))
    assert truncate_timestamps(same, wanted) is same


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([{"a": 1}]), pa.int64()),
        (pa.array([1]), pa.struct([("a", pa.int64())])),
        (pa.array([[1]]), pa.int64()),
        (pa.array([1]), pa.list_(pa.int64())),
        (pa.array([1]), pa.map_(pa.string(), pa.int64())),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), pa.int64()),
        (pa.array([5], pa.timestamp("us")), pa.timestamp("us")),
        (pa.array([5], pa.timestamp("us")), pa.int64()),
        (pa.array([5], pa.timestamp("ns")), pa.timestamp("ms")),
    ],
)
def test_only_timestamps_of_the_same_shape_are_truncated(array: pa.Array, wanted: pa.DataType) -> None:
    assert truncate_timestamps(array, wanted) is array


@pytest.mark.parametrize("nanoseconds", [0, 999, 1000, 1001, -1, -1000, -1001, 1_999_999])
def test_nanoseconds_are_rounded_down_to_microseconds(nanoseconds: int) -> None:
    array = pa.array([nanoseconds, None], pa.timestamp("ns", "UTC"))
    found = to_spark(array, spark_arrow_type(array.type))
    assert found.type == pa.timestamp("us", "UTC")
    assert [None if each.as_py() is None else each.value for each in found] == [nanoseconds // 1000, None]
