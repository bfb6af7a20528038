"""A driver for the kill test: it reads a topic with two endless streaming queries, into Parquet and into SQLite.

    python -m tests.spark.faults.driver BOOTSTRAP REGISTRY TOPIC SUBJECT FOLDER

Parquet is exactly once because of Spark's sink log. SQLite is exactly once because one transaction contains the rows
and the number of a batch.
"""

import sqlite3
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ROWS_PER_BATCH = 300
COLUMNS = ("partition", "offset", "id", "note", "reason")
TABLE = """
create table if not exists rows (partition integer, "offset" integer, id integer, note text, reason text);
create table if not exists batches (number integer primary key);
"""


def session(folder: Path) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.python.daemon.module": "headgate.spark_udfs.daemon",
        # The process is too short-lived for the optimizing compiler.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def records(spark: SparkSession, bootstrap: str, registry: str, topic: str, subject: str) -> DataFrame:
    stream = (
        spark.readStream.format("headgate")
        .option("bootstrap.servers", bootstrap)
        .option("registry.url", registry)
        .option("subscribe", topic)
        .option("subject", subject)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
        .load()
    )
    return stream.select("partition", "offset", "value.id", "value.note", "reason")


def into_sqlite(path: Path, frame: DataFrame, number: int) -> None:
    rows = [tuple(row) for row in frame.select(*COLUMNS).collect()]
    connection = sqlite3.connect(path, timeout=60)
    try:
        with connection:
            if connection.execute("select 1 from batches where number = ?", (number,)).fetchone() is None:
                connection.executemany("insert into rows values (?, ?, ?, ?, ?)", rows)
                connection.execute("insert into batches values (?)", (number,))
    finally:
        connection.close()


def main(bootstrap: str, registry: str, topic: str, subject: str, folder: Path) -> None:
    path = folder / "rows.db"
    connection = sqlite3.connect(path)
    connection.executescript("pragma journal_mode = wal;" + TABLE)
    connection.close()
    spark = session(folder)
    spark.sparkContext.setLogLevel("ERROR")
    frame = records(spark, bootstrap, registry, topic, subject)
    to_files = frame.withColumn("bad", F.col("reason").isNotNull()).writeStream.format("parquet")
    to_files.option("checkpointLocation", str(folder / "files-checkpoint")).start(str(folder / "files"))
    to_table = frame.writeStream.foreachBatch(lambda batch, number: into_sqlite(path, batch, number))
    to_table.option("checkpointLocation", str(folder / "table-checkpoint")).start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], Path(sys.argv[5]))
