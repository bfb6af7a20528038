"""The table function without Spark: each call returns a limited amount of rows, and no row is lost."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from headgate.serdes.avro.column_size import ROW_BYTES_MAX
from headgate.spark_udfs.spec.policy import OnRegistryDown
from headgate.spark_udfs.spec.registry_options import RegistryOptions
from headgate.spark_udfs.table_function import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
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
    limited = type(spec)(spec.reader, spec.registry, batch_bytes_max=BATCH_BYTES_MAX)
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
    assert size(found[-1]) <= BATCH_BYTES_MAX + ITEMS * WIDE_BYTES
    assert {reason for _, _, reason, *_ in results} == {None}


def test_a_row_has_the_limit_of_all_decoders() -> None:
    at_limit = ROW_BYTES_MAX // WIDE_BYTES - 1
    found = [result for call in calls([row(1, at_limit), row(2, at_limit + 2)]) for result in call]
    assert [result[2] for result in found] == [None, "TOO_LARGE"]
    assert len(found[0][1][1]) == at_limit
