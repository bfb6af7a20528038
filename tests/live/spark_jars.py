"""Jars for `spark.jars`: Spark's own Kafka source and `from_avro`, the peers of `spark_udfs`; and Delta Lake.

PySpark brings none of them. No one version of the first set is complete on Maven Central, and `spark.jars.packages`
insists on one; these five, as a plain list, work together on Spark 4.2 and 4.3 (`spark_jars.xml` names them). Delta
Lake (`delta_jars.xml`) is made for one version of Spark. They must be in a session's settings before it starts.
"""

from pathlib import Path

from tests.live.maven import CACHE, JarsUnavailable, fetch

CONNECTORS_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"
DELTA_SPARK = "4.2"
"""The Spark that this Delta Lake was made for; the lock files have it."""
HERE = Path(__file__).resolve().parent

__all__ = ["DELTA_SPARK", "JarsUnavailable", "delta_jars", "spark_jars"]


def spark_jars() -> str:
    """The value of `spark.jars`; the jars are fetched on the first call. Raises `JarsUnavailable`."""
    return _listed(fetch(HERE / "spark_jars.xml", CACHE / f"spark-jars-{CONNECTORS_VERSION}", "Spark's connectors"))


def delta_jars() -> str:
    """As `spark_jars`. Raises `JarsUnavailable`, also where the Spark that is installed has no Delta Lake."""
    import pyspark

    if not pyspark.__version__.startswith(f"{DELTA_SPARK}."):
        raise JarsUnavailable(f"Delta Lake {DELTA_VERSION} is for Spark {DELTA_SPARK}; this is {pyspark.__version__}")
    return _listed(fetch(HERE / "delta_jars.xml", CACHE / f"delta-jars-{DELTA_VERSION}", "Delta Lake"))


def _listed(libs: Path) -> str:
    return ",".join(str(path) for path in sorted(libs.glob("*.jar")))
