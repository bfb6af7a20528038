"""The table function without Spark: each call returns a limited amount of rows, and no row is lost."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from headgate.spark_udfs.spec.policy import OnRegistryDown
from headgate.spark_udfs.spec.registry_options import RegistryOptions
from headgate.spark_udfs.table_function import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
    LAST_BYTES_MAX,
    decode_table_function,
)
from tests.unit.columnar.test_column_size import array, number, repeated
from tests.unit.spark_udfs.plans import decoding, record

WIDE_BYTES = 51 * 8
ITEMS = 12_000
"""About 5 MB as columns."""
WIDE = record(*((f"f{at}", ["null", "long"]) for at in range(50)), name="Wide")
SCHEMA = record(("id", "long"), ("items", array(["null", WIDE])))
FRAME = b"\0\0\0\0\1"


def calls(payloads: list[bytes]) -> Iterator[list[tuple[Any, ...]]]:
    """The results of each call."""
    spec = decoding(SCHEMA)
    limited = type(spec)(spec.reader, spec.registry, row_bytes_max=BATCH_BYTES_MAX, batch_bytes_max=BATCH_BYTES_MAX)
    handler = decode_table_function(RegistryOptions(), OnRegistryDown.WAIT).func
    table = handler(SimpleNamespace(decoding=limited, column="value", others=("n",)))
    for at, payload in enumerate(payloads):
        yield list(table.eval({"n": at, "value": payload}))
    yield list(table.terminate())


def row(at: int, items: int = 0) -> bytes:
    return FRAME + number(at) + (repeated(items, b"\0") if items else b"\0")


def size(results: list[tuple[Any, ...]]) -> int:
    return sum(WIDE_BYTES * len(value[1]) for _, value, *_ in results if value is not None)


def test_rows_are_returned_once_and_in_order_in_growing_batches() -> None:
    found = list(calls([row(at) for at in range(5 * BATCH_ROWS_MAX)]))
    results = [result for call in found for result in call]
    assert [(n, value[0], reason) for n, value, reason, *_ in results] == [
        (at, at, None) for at in range(5 * BATCH_ROWS_MAX)
    ]
    assert max(len(call) for call in found) == BATCH_ROWS_MAX


def test_large_rows_do_not_enlarge_a_call_and_do_not_affect_small_rows() -> None:
    small, large = [row(at) for at in range(3 * BATCH_ROWS_MAX)], [row(7, ITEMS) for _ in range(50)]
    found = list(calls([*small, *large, *small[:20], *large, *small[:20]]))
    results = [result for call in found for result in call]
    assert [result[0] for result in results] == list(range(len(small) + 140))
    assert max(size(call) for call in found[:-1]) <= BATCH_BYTES_MAX
    assert size(found[-1]) <= LAST_BYTES_MAX
    assert {reason for _, value, reason, *_ in results if value is not None} == {None}
    reasons = [reason for n, _, reason, *_ in results if n < len(small) or len(small) + 50 <= n < len(small) + 70]
    assert set(reasons) == {None}
    assert {reason for n, _, reason, *_ in results if n >= len(small) + 120} == {None}


def test_a_row_above_the_limit_is_too_large() -> None:
    (result,) = [result for call in calls([row(1, 10 * ITEMS)]) for result in call]
    assert result[1:3] == (None, "TOO_LARGE")
