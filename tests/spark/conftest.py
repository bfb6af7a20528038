"""One Spark session for every test that needs one: it takes ten seconds to start, and a process holds only one."""

import gc
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate.spark_udfs.pipeline.sinks.delta import CATALOG, EXTENSION
from tests.conftest import unavailable
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.spark_jars import JarsUnavailable, delta_jars, spark_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Most of what runs here runs once: the optimising compiler, and a collector with threads of its own, take more of
    # the two cores than they give back. Without the optimising one Java makes room for a fifth of the compiled code;
    # what Spark generates for all tests fills that, and then threads die of it.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    "spark.python.worker.reuse": "true",
    # A task that fails takes its worker along, and many of these tests let one fail: new ones are there at once.
    "spark.python.daemon.module": "headgate.spark_udfs.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    # Of a Delta table's log: 50 tasks, by default, to read a handful of lines.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A stream's state and offsets are asked for often; a poll of 10 ms would only burn the two cores.
    "spark.sql.streaming.pollingDelay": "50ms",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            # PySpark itself warns about newer versions of pandas, and leaves sockets to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"))
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning:pyspark"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"))


DELTA_SETTINGS = {"spark.sql.extensions": EXTENSION, "spark.sql.catalog.spark_catalog": CATALOG}


def connectors() -> dict[str, str]:
    """Spark's own Kafka source and Avro functions, where they can be had: `tests/spark/peers` compares with them; and
    Delta Lake, for those of `tests/spark/pipeline`."""
    jars: list[str] = []
    settings: dict[str, str] = {}
    try:
        jars.append(spark_jars())
    except JarsUnavailable as error:
        if os.environ.get("CI") == "true":
            unavailable(str(error))
    # The tests that need Delta ask for themselves whether it is there; without it all others run.
    with suppress(JarsUnavailable):
        jars.append(delta_jars())
        settings = DELTA_SETTINGS
    return {**settings, "spark.jars": ",".join(jars)} if jars else {}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    if shutil.which("java") is None:
        unavailable("Spark needs Java")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Workers find our packages where this process does.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    builder = SparkSession.builder.master("local[2]").appName("headgate-tests")
    places = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    for name, setting in {**SETTINGS, **places, **connectors()}.items():
        builder = builder.config(name, setting)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def _garbage_of_pyspark() -> Iterator[None]:
    """Collected here, where its warnings are passed over, and not in whichever test of others comes next."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    """One registry of ours, shared: each test takes subjects of its own."""
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()
