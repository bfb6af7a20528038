"""Pipelines for tests."""

from pathlib import Path
from typing import Any, cast

from headgate.spark_udfs.pipeline.checkpoints import BatchId, Checkpoint
from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.sources.source import SourceContext
from tests.unit.serdes.stub_registry import ADDRESS
from tests.unit.spark_udfs.fake_spark import FakeSession, schema
from tests.unit.spark_udfs.plans import record

BATCH = BatchId("shop", "0123456789abcdef", "orders", 12)
ORDER = record(("id", "long"), name="Order")
REGISTRY = {"registry.url": ADDRESS}
KAFKA = {"kafka.bootstrap.servers": "kafka:9092"}
EVENTS = schema(at="timestamp", id="long", wrong="string")
HEAD = 'checkpoint = "s"\non_poison = "DROP"\n'
TEXT = """
[sources.orders]
type = "topic"
watermark = { column = "at", delay = "1 minute" }
[sources.payments]
type = "topic"
[sources.people]
type = "topic"
read = "table"
[transforms.named]
type = "sql"
sql = "SELECT * FROM orders JOIN people"
[transforms.both]
type = "sql"
sql = "SELECT * FROM orders JOIN payments"
[sinks.c]
type = "console"
from = "named"
[sinks.d]
type = "console"
from = "both"
[sinks.e]
type = "console"
from = "orders"
"""


def pipeline(text: str = TEXT, head: str = HEAD) -> Any:
    return check(parse_toml(head + text, "p.toml", Path("/pipelines"), {}), {})


def with_source(source: str) -> Any:
    head = f'checkpoint = "s"\n[kafka]\nbootstrap.servers = "kafka:9092"\n[registry]\nurl = "{ADDRESS}"\n'
    rest = '[sinks.c]\ntype = "console"\nfrom = "orders"\n[dead_letters]\ntype = "topic"\ntopic = "dead"\n'
    return check(parse_toml(f"{head}[sources.orders]\n{source}\n{rest}", "p.toml", Path("/pipelines"), {}), {})


def frames_of(source: str, session: FakeSession | None = None, checkpoint: Checkpoint | None = None) -> Any:
    found, spark = with_source(source), cast("Any", session or FakeSession())
    return found.sources["orders"].open(SourceContext(spark, found, checkpoint))
