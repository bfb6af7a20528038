"""Spark's own Kafka source and `from_avro`, the peers of `spark_udfs`, as jars for `spark.jars`.

PySpark brings neither. No one version of the set is complete on Maven Central for PySpark 4.3, and
`spark.jars.packages` insists on one; these five, as a plain list, work together (`spark_jars.xml` names them).
They must be in a session's settings before it starts.
"""

from pathlib import Path

from tests.live.maven import CACHE, JarsUnavailable, fetch

SPARK_VERSION = "4.3.0"
POM = Path(__file__).with_name("spark_jars.xml")
FOLDER = CACHE / f"spark-jars-{SPARK_VERSION}"

__all__ = ["SPARK_VERSION", "JarsUnavailable", "spark_jars"]


def spark_jars() -> str:
    """The value of `spark.jars`; the jars are fetched on the first call. Raises `JarsUnavailable`."""
    libs = fetch(POM, FOLDER, "Spark's connectors")
    return ",".join(str(path) for path in sorted(libs.glob("*.jar")))
