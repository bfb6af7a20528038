"""A topic of orders: good rows in the table `orders`, poison in `orders_poison`, and counts by reason."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from headgate.spark_udfs import decode_topic, poison_counts

spark = SparkSession.active()

TOPIC = {
    "bootstrap.servers": os.environ.get("HEADGATE_BOOTSTRAP_SERVER", "localhost:9092"),
    "registry.url": os.environ.get("HEADGATE_REGISTRY_URL", "http://localhost:8081"),
    "subscribe": "orders",
    "startingOffsets": "earliest",
}


@dp.temporary_view
def orders_decoded() -> DataFrame:
    """Every record of the topic, decoded by the data source."""
    return spark.readStream.format("headgate").options(**TOPIC, subject="orders-value").load()


@dp.table
def orders() -> DataFrame:
    good, _ = decode_topic(spark.readStream.table("orders_decoded"))
    return good.select("value.*", "partition", "offset")


@dp.table
def orders_poison() -> DataFrame:
    _, poison = decode_topic(spark.readStream.table("orders_decoded"))
    return poison


@dp.materialized_view
def orders_poison_counts() -> DataFrame:
    return poison_counts(spark.read.table("orders_poison"))
