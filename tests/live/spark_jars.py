"""Jars for `spark.jars`: Spark's Kafka source and `from_avro`, which `spark_udfs` is compared with, and Delta Lake.

PySpark contains none of them. Maven Central has no version for which the first set is complete, and
`spark.jars.packages` requires a single version. `spark_jars.xml` lists five jars that work together on Spark 4.2 and
4.3. Delta Lake (`delta_jars.xml`) supports one Spark version. Set `spark.jars` before the session starts.
"""

from pathlib import Path

from tests.live.maven import CACHE, JarsUnavailable, fetch

CONNECTORS_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"
DELTA_SPARK = "4.2"
"""The Spark version of this Delta Lake. The lock files pin it."""
HERE = Path(__file__).resolve().parent

__all__ = ["DELTA_SPARK", "JarsUnavailable", "delta_jars", "spark_jars"]


def spark_jars() -> str:
    """Return the value of `spark.jars`. Downloads the jars on the first call. Raises `JarsUnavailable`."""
    return _listed(fetch(HERE / "spark_jars.xml", CACHE / f"spark-jars-{CONNECTORS_VERSION}", "Spark's connectors"))


def delta_jars() -> str:
    """Like `spark_jars`. Also raises `JarsUnavailable` if Delta Lake does not support the installed Spark."""
    import pyspark

    if not pyspark.__version__.startswith(f"{DELTA_SPARK}."):
        raise JarsUnavailable(f"Delta Lake {DELTA_VERSION} is for Spark {DELTA_SPARK}; this is {pyspark.__version__}")
    return _listed(fetch(HERE / "delta_jars.xml", CACHE / f"delta-jars-{DELTA_VERSION}", "Delta Lake"))


def _listed(libs: Path) -> str:
    return ",".join(str(path) for path in sorted(libs.glob("*.jar")))
