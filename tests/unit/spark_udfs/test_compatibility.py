"""Errors for PySpark versions that lack a feature. `make spark-matrix` runs the functions with these versions."""

from pathlib import Path

import pytest

from headgate.spark_udfs import MissingExtra, compatibility, install, to_registry_avro
from headgate.spark_udfs.pipeline import load
from headgate.spark_udfs.pipeline.session import open_session

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "pipelines" / "orders.toml"


@pytest.fixture
def _spark_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 3.5 has no module `pyspark.sql.datasource`, and no `arrow_udf`."""
    monkeypatch.setattr(compatibility, "find_spec", lambda name: None)
    monkeypatch.setattr(compatibility, "has_arrow_functions", lambda: False)


@pytest.mark.usefixtures("_spark_3")
def test_the_data_source_and_pipelines_need_pyspark_4() -> None:
    with pytest.raises(MissingExtra, match=r"install needs PySpark 4\.0 or later.*use register_function"):
        install()
    with pytest.raises(MissingExtra, match=r"a pipeline needs PySpark 4\.0 or later"):
        open_session(load(EXAMPLE, environment={}))


@pytest.mark.usefixtures("_spark_3")
def test_the_encoding_column_function_names_its_replacement() -> None:
    with pytest.raises(MissingExtra, match=r"to_registry_avro needs PySpark 4\.1 or later.*use encode_frame"):
        to_registry_avro("value", "orders-value")


def test_the_installed_version_has_every_feature() -> None:
    compatibility.need_data_sources("install", "register_function")
    assert compatibility.has_arrow_functions()
