"""Streaming queries of a pipeline, SQL inputs and durations."""

from pathlib import Path

import pytest

from headgate.spark_udfs.pipeline.checks.load import check
from headgate.spark_udfs.pipeline.checks.table_reader import parse_duration
from headgate.spark_udfs.pipeline.document import parse_toml
from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.sql_names import sql_inputs
from headgate.spark_udfs.pipeline.topology import build_topology

TEXT = """
checkpoint = "s"
on_poison = "DROP"
[sources.orders]
type = "topic"
watermark = { column = "at", delay = "1 minute" }
[sources.payments]
type = "topic"
watermark = { column = "at", delay = "1 minute" }
[sources.customers]
type = "topic"
read = "table"
[transforms.big]
type = "sql"
sql = "SELECT * FROM orders WHERE amount > 10"
[transforms.named]
type = "sql"
sql = "SELECT * FROM big JOIN customers ON big.customer = customers.id"
[transforms.paid]
type = "join"
left = "named"
right = "payments"
on = "named.id = payments.id"
select = ["named.*"]
[transforms.shown]
type = "sql"
sql = "SELECT id FROM paid"
[sinks.raw]
type = "console"
from = "named"
[sinks.shown]
type = "console"
from = "shown"
[sinks.people]
type = "console"
from = "customers"
"""


def pipeline(text: str) -> Pipeline:
    return check(parse_toml(text, "p.toml", Path(), {}), {})


def test_source_queries_stage_rows_for_stateful_queries() -> None:
    topology = build_topology(pipeline(TEXT), {"paid"})
    assert {name: (each.sinks, each.staged) for name, each in topology.source_queries.items()} == {
        "orders": (("raw",), ("named",)),
        "payments": ((), ("payments",)),
    }
    query = topology.stateful_queries["paid"]
    assert (query.transforms, query.staged, query.sinks) == (("paid",), ("named", "payments"), ("shown",))
    assert (topology.tables, topology.table_sinks, topology.unused) == (("customers",), ("people",), ())


def test_a_stateful_query_cannot_join_a_table() -> None:
    after = TEXT.replace("SELECT id FROM paid", "SELECT id FROM paid JOIN customers USING (id)")
    assert build_topology(pipeline(after), {"paid"}).stateful_queries["paid"].transforms == ("paid",)
    with pytest.raises(PipelineError, match="joins the table customers inside a stateful query"):
        build_topology(pipeline(after), {"paid", "shown"})


def test_unused_steps_are_reported() -> None:
    more = '[transforms.idle]\ntype = "sql"\nsql = "SELECT 1 FROM orders"\n'
    assert build_topology(pipeline(TEXT + more), {"paid"}).unused == ("idle",)


@pytest.mark.parametrize(
    ("sql", "inputs"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("select a from Orders o join customers c on o.x = c.x", ["orders", "customers"]),
        ("SELECT orders FROM customers, orders WHERE x", ["customers", "orders"]),
        ("SELECT payments, orders FROM customers", ["customers"]),
        ("WITH x AS (SELECT * FROM orders) SELECT * FROM x", ["orders"]),
        ("SELECT 'FROM orders' -- FROM payments\n/* JOIN orders */ FROM `customers`", ["customers"]),
        ("SELECT * FROM (SELECT * FROM orders) t, payments", ["orders"]),
        ("SELECT * FROM orders payments JOIN customers", ["orders", "customers"]),
        ("SELECT * FROM orders, orders o, payments", ["orders", "payments"]),
        ("SELECT * FROM orders ORDER BY a, payments", ["orders"]),
        ("SELECT f(a, b) FROM orders WHERE x IN (1, 2), payments", ["orders"]),
        ("SELECT `from`, payments FROM `orders`", ["orders"]),
        ("SELECT 1", []),
    ],
)
def test_sql_inputs_are_found(sql: str, inputs: list[str]) -> None:
    assert list(sql_inputs(sql, ["orders", "customers", "payments"])) == inputs


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("10 minutes", ("10 minutes", 600.0)),
        ("30s", ("30 seconds", 30.0)),
        ("1.5 hours", ("5400000 milliseconds", 5400.0)),
        ("250 ms", ("250 milliseconds", 0.25)),
        ("2d", ("2 days", 172800.0)),
        ("", None),
        ("ten minutes", None),
        ("-1 second", None),
        ("1 fortnight", None),
    ],
)
def test_durations(text: str, read: tuple[str, float] | None) -> None:
    assert parse_duration(text) == read
