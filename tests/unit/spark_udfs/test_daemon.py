"""The preloaded daemon, and column functions of PySpark 4.0."""

import sys
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyarrow import lib as pa
from pyspark.sql.types import LongType, StructType

from headgate.spark_udfs import compatibility, daemon
from headgate.spark_udfs.driver import arrow_udf
from headgate.spark_udfs.executor import decoding as decoding_module
from headgate.spark_udfs.executor.arrow_functions import DecodeColumn, DecodeReason
from tests.unit.spark_udfs.plans import decoding, payload, record

ORDER = record(("id", "long"))


def test_a_good_and_a_bad_payload_are_decoded_before_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Any] = []
    original = decoding_module.Decoding.outcome

    def outcome(self: Any, *arguments: Any, **options: Any) -> Any:
        outcomes.append(original(self, *arguments, **options))
        return outcomes[-1]

    monkeypatch.setattr(decoding_module.Decoding, "outcome", outcome)
    daemon.warm()
    ((values, reasons, *_),) = outcomes
    assert values.to_pylist() == [{"id": 1}, None]
    assert reasons.to_pylist() == [None, "TOO_SHORT"]


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["daemon"], []),
        (["daemon", "pyspark.worker"], ["pyspark.worker"]),
        (["daemon", "os"], []),
        (["daemon", "other", "pyspark.worker"], []),
    ],
)
def test_only_workers_of_pyspark_are_loaded(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], loaded: list[str]
) -> None:
    found: list[str] = []
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr("headgate.spark_udfs.daemon.importlib", SimpleNamespace(import_module=found.append))
    daemon.load_worker()
    assert found == loaded


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pandas functions that a session would call."""
    found: list[Any] = []
    monkeypatch.delattr("pyspark.sql.pandas.functions.arrow_udf")
    monkeypatch.setattr(
        "pyspark.sql.pandas.functions.pandas_udf", lambda function, returnType: found.append((function, returnType))
    )
    return found


def test_pyspark_4_0_uses_pandas(made: list[Any]) -> None:
    plan = decoding(ORDER)
    good = payload(ORDER, {"id": 7})
    assert not compatibility.has_arrow_functions()
    arrow_udf.arrow_function(DecodeReason(plan), LongType())
    arrow_udf.arrow_function(DecodeColumn(plan, plan.decoder().type), StructType())
    (reasons, _), (frames, _) = made
    given = [pd.Series([good, None, b"bad"], dtype=object)]
    (found,) = reasons(iter(given))
    assert pa.array(found.array).to_pylist() == [None, "NULL", "TOO_SHORT"]
    # PySpark maps a function over nested values. The array stays as it is.
    assert found.array.map(str) is found.array
    (table,) = frames(iter(given))
    assert list(table.columns) == ["value", "reason", "schema_id", "raw"]
    assert pa.array(table["value"].array).to_pylist() == [{"id": 7}, None, None]
    assert pa.array(table["schema_id"].array).to_pylist() == [1, None, None]
