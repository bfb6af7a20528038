"""The shared Spark session. It takes ten seconds to start, and a process can have only one."""

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

from headgate.spark_udfs.compatibility import has_arrow_functions
from headgate.spark_udfs.pipeline.sinks.delta import CATALOG, EXTENSION
from tests.conftest import unavailable
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.spark_connect import SparkConnectServer
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
    # Most code runs once, so the optimizing compiler and a parallel collector cost more than they save. Without the
    # optimizing compiler the default code cache is five times smaller. Spark's generated code would fill it.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
    "spark.python.worker.reuse": "true",
    # A failed task ends its worker, and many tests fail tasks on purpose. The daemon forks new workers quickly.
    "spark.python.daemon.module": "headgate.spark_udfs.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.metricsEnabled": "false",
    # The default is 50 tasks to read a short Delta log.
    "spark.databricks.delta.snapshotPartitions": "1",
    # The default polling interval of 10 ms uses too much CPU.
    "spark.sql.streaming.pollingDelay": "50ms",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            # PySpark warns about new pandas versions, and leaves sockets to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"))
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning:pyspark"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"))


DELTA_SETTINGS = {"spark.sql.extensions": EXTENSION, "spark.sql.catalog.spark_catalog": CATALOG}


def connectors() -> dict[str, str]:
    """Settings with the jars of Spark's Kafka source and Avro functions (for `tests/spark/peers`) and of Delta Lake."""
    if "SPARK_MATRIX" in os.environ:
        return {}  # The jars are built for one Spark version (`tests.spark_matrix`).
    jars: list[str] = []
    settings: dict[str, str] = {}
    try:
        jars.append(spark_jars())
    except JarsUnavailable as error:
        if os.environ.get("CI") == "true":
            unavailable(str(error))
    # Tests that need Delta check for it themselves.
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
    # Workers import the same packages as this process.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    places = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    settings = {**SETTINGS, **places, **connectors()}
    if "SPARK_CONNECT" in os.environ:
        yield from _connected(folder, settings)
        return
    builder = SparkSession.builder.master("local[2]").appName("headgate-tests")
    for name, setting in settings.items():
        builder = builder.config(name, setting)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def _connected(folder: Path, settings: dict[str, str]) -> Iterator["SparkSession"]:
    """A session of a separate Spark Connect server, as `tests.spark_matrix` uses it."""
    from pyspark.sql import SparkSession

    server = SparkConnectServer(folder, settings)
    server.start()
    session = SparkSession.builder.remote(server.url).getOrCreate()
    yield session
    session.stop()
    server.stop()


@pytest.fixture
def _classic_session() -> None:
    """For tests that look at the plan in the JVM."""
    if "SPARK_CONNECT" in os.environ:
        unavailable("a session of Spark Connect has no JVM")


def need_arrow_functions() -> None:
    if not has_arrow_functions():
        unavailable("to_registry_avro needs PySpark 4.1")


@pytest.fixture
def _arrow_functions() -> None:
    need_arrow_functions()


@pytest.fixture(scope="module", autouse=True)
def _collect_pyspark_garbage() -> Iterator[None]:
    """Collect PySpark's garbage here and ignore its warnings, so that they do not fail a later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    """The shared registry. Each test uses its own subjects."""
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()
