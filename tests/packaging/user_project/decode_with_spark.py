"""A user's Spark job: decodes a column. Its folder contains a serdes.py and a registry.py, also for the workers."""

import importlib
import sys

from pyspark.sql import SparkSession

from headgate import RegistryClient, Serializer, from_registry_avro
from headgate.serdes import avro_schema

SCHEMA = """
{"type": "record", "name": "Customer",
 "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
"""


def modules_in_worker(_: object) -> list[tuple[str, str]]:
    """Which `serdes` a worker imports by that name, and where it finds `headgate.serdes`."""
    import headgate.serdes

    return [(importlib.import_module("serdes").OWNER, headgate.serdes.__file__)]


url = sys.argv[1]
with RegistryClient(url) as client:
    serializer = Serializer(client, avro_schema(SCHEMA))
    people = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]
    payloads = [serializer.serialize(person, topic="people") for person in people]

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")

((owner, file),) = spark.sparkContext.parallelize([0], 1).mapPartitions(modules_in_worker).collect()
assert owner == "user"
assert file == importlib.import_module("headgate.serdes").__file__

frame = spark.createDataFrame([(payload,) for payload in [*payloads, b"\x01not framed"]], "value binary")
decoded = frame.select(from_registry_avro("value", "people-value", registry=url).alias("d"))
rows = decoded.select("d.value.id", "d.value.name", "d.reason").collect()
print([tuple(row) for row in rows])
spark.stop()
