"""The functions in a declarative pipeline: the `spark-pipelines` command against a live broker and registry."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from examples.pipelines.fill import ORDERS, POISON, fill
from headgate.spark_udfs.pipeline import load
from headgate.spark_udfs.pipeline.export import export
from headgate.spark_udfs.pipeline.export.project import MODULE
from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT

EXAMPLE = ROOT / "examples" / "declarative_pipeline"
RUN_SECONDS_MAX = 900

EXPORTED = """
name = "exported"
checkpoint = "state"

[sources.sales]
type = "topic"
topic = "orders"

[sources.customers]
type = "topic"
read = "table"
on_poison = "DROP"

[transforms.named]
type = "join"
left = "sales"
right = "customers"
how = "left"
on = "sales.customer = customers.id"
select = ["sales.*", "customers.full_name"]

[transforms.large]
type = "sql"
sql = "WITH a AS (SELECT * FROM named) SELECT id, full_name, amount FROM a WHERE amount >= 100 -- comment"

[transforms.per_hour]
type = "window"
from = "sales"
window = "tumbling"
time = "ordered_at"
size = "1 hour"
watermark = "0 seconds"
select = { n = "count(*)" }

[sinks.hours]
type = "parquet"
from = "per_hour"
path = "unused"

[sinks.large_orders]
type = "topic"
from = "large"
topic = "large_orders"
key = "id"
schema = '''{"type": "record", "name": "Large", "fields": [{"name": "id", "type": "long"},
  {"name": "full_name", "type": "string"},
  {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}'''

[dead_letters]
type = "parquet"
path = "unused_too"
"""

EVERY_FUNCTION = """
import os

from pyspark import pipelines as dp
from pyspark.sql import functions as f

from headgate import spark_udfs as h

TOPIC = {"bootstrap.servers": os.environ["HEADGATE_BOOTSTRAP_SERVER"], "subscribe": "orders"}
STREAM = {**TOPIC, "startingOffsets": "earliest"}


@dp.table
def raw():
    return spark.readStream.format("headgate").options(**STREAM).load()


@dp.table
def topic_good():
    return h.decode_topic(spark.readStream.table("raw"), "orders-value").good.select("value.*", "offset")


@dp.table
def topic_poison():
    return h.decode_topic(spark.readStream.table("raw"), "orders-value").poison


@dp.materialized_view
def frame_counts():
    decoded = h.decode_frame(spark.read.table("raw"), "orders-value", flat=True, keep=["offset"])
    return h.poison_counts(decoded)


@dp.materialized_view
def column():
    decoded = h.from_registry_avro("value", "orders-value").alias("o")
    reason = h.poison_reason("value", "orders-value").alias("r")
    return spark.read.table("raw").select("offset", decoded, reason, h.schema_id("value").alias("i")).select(
        "offset", "o.value.id", "o.reason", "r", "i"
    )


@dp.materialized_view
def encoded():
    order = f.struct("id", "customer", "amount", "ordered_at")
    return spark.read.table("topic_good").select("id", h.to_registry_avro(order, "orders-value").alias("value"))


@dp.materialized_view
def records():
    return h.to_dead_letter_records(spark.read.table("topic_poison"), "orders.dead", application="test")
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[dict[str, str]]:
    broker, registry = HeadgateBroker(tmp_path / "broker"), HeadgateRegistry(tmp_path / "registry")
    broker.start()
    registry.start()
    asyncio.run(fill(broker.address, registry.url))
    yield {"HEADGATE_BOOTSTRAP_SERVER": broker.address, "HEADGATE_REGISTRY_URL": registry.url}
    registry.stop()
    broker.stop()


def rows(warehouse: Path, table: str) -> list[dict[str, Any]]:
    import pyarrow.parquet

    parquet: Any = pyarrow.parquet
    return [
        row for file in sorted((warehouse / table).glob("*.parquet")) for row in parquet.read_table(file).to_pylist()
    ]


@pytest.mark.slow
def test_every_function_works_in_a_declarative_pipeline(gateway: dict[str, str], tmp_path: Path) -> None:
    if find_spec("grpc_status") is None:
        unavailable("declarative pipelines need grpcio-status")
    import pyspark

    project, warehouse = tmp_path / "project", tmp_path / "warehouse"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    spec = project / "spark-pipeline.yml"
    text = spec.read_text(encoding="utf-8")
    stored = text.replace("file:///tmp/headgate-declarative-pipeline", (tmp_path / "storage").as_uri())
    assert stored != text
    spec.write_text(stored, encoding="utf-8")
    (project / "transformations" / "every_function.py").write_text(EVERY_FUNCTION, encoding="utf-8")
    (tmp_path / "exported.toml").write_text(EXPORTED, encoding="utf-8")
    exported = export(load(tmp_path / "exported.toml", environment=gateway))
    # In the same project, so that one run is enough.
    (project / "transformations" / "exported.py").write_text(exported.files[MODULE], encoding="utf-8")
    settings = {
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        # Each flow starts Python processes. On a busy machine, many at once exceed Spark's timeout.
        "spark.sql.pipelines.execution.maxConcurrentFlows": "2",
    }
    done = subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines"),
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            "run",
        ],
        cwd=project,
        env={
            **os.environ,
            **gateway,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]

    ids = [order["id"] for order in ORDERS]
    reasons = ["BAD_MAGIC", "NULL", "TOO_SHORT", "UNKNOWN_SCHEMA"]
    assert len(reasons) == len(POISON)
    for good, poison in (("orders", "orders_poison"), ("topic_good", "topic_poison")):
        assert sorted(row["id"] for row in rows(warehouse, good)) == ids
        assert sorted(row["reason"] for row in rows(warehouse, poison)) == reasons
    by_reason = {row["reason"]: row["rows"] for row in rows(warehouse, "orders_poison_counts")}
    assert by_reason == dict.fromkeys(reasons, 1)
    counts = {row["reason"]: row["rows"] for row in rows(warehouse, "frame_counts")}
    assert counts == {None: len(ORDERS), **by_reason}
    columns = rows(warehouse, "column")
    assert sorted(row["id"] for row in columns if row["reason"] is None) == ids
    assert all(row["reason"] == row["r"] for row in columns)
    assert {row["value"][:1] for row in rows(warehouse, "encoded")} == {b"\0"}
    assert {row["topic"] for row in rows(warehouse, "records")} == {"orders.dead"}
    check_exported(warehouse, gateway["HEADGATE_BOOTSTRAP_SERVER"])


def check_exported(warehouse: Path, bootstrap_server: str) -> None:
    """The tables and topics of the exported pipeline."""
    # The tombstone of alan deletes his row.
    assert sorted(row["id"] for row in rows(warehouse, "customers_rows")) == ["ada", "mary"]
    # The watermark has passed the first hour, but not that of the last order.
    assert [row["n"] for row in rows(warehouse, "hours")] == [4]
    letters = [(row["source"], row["reason"]) for row in rows(warehouse, "dead_letters")]
    # The schema of the topic requires the name of the customer, and alan has none.
    assert sorted(letters) == sorted(
        [("sink large_orders", "INVALID_VALUE")]
        + [("sales", reason) for reason in ("BAD_MAGIC", "NULL", "TOO_SHORT", "UNKNOWN_SCHEMA")]
    )
    assert asyncio.run(keys_of("large_orders", bootstrap_server)) == [b"3"]


async def keys_of(topic: str, bootstrap_server: str) -> list[bytes]:
    # aiokafka has no types.
    make_consumer: Any = AIOKafkaConsumer
    async with make_consumer(topic, bootstrap_servers=bootstrap_server, auto_offset_reset="earliest") as consumer:
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(consumer.assignment())
        return [(await consumer.getone()).key for _ in range(sum(ends.values()))]
