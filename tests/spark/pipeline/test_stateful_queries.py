"""Joins of streams, and lookup tables. Windows are tested with the examples."""

import json

import pytest

from headgate.spark_udfs.pipeline.errors import PipelineError
from tests.spark.pipeline.conftest import CUSTOMER, MINUTE, NOON, ORDER, Place, order, sqlite_rows

JOINS = """
[sources.orders]
type = "topic"
topic = "{orders}"
watermark = { column = "at", delay = "1 hour" }
on_poison = "DROP"
[sources.payments]
type = "topic"
topic = "{payments}"
watermark = { column = "paid_at", delay = "1 hour" }
on_poison = "DROP"
[sources.customers]
type = "topic"
topic = "{customers}"
read = "table"
[transforms.named]
type = "join"
left = "orders"
right = "customers"
how = "left"
on = "orders.customer = customers.id"
select = ["orders.*", "customers.name AS name"]
[transforms.paid]
type = "join"
left = "named"
right = "payments"
on = "named.id = payments.order_id AND paid_at BETWEEN at AND at + INTERVAL 30 MINUTES"
select = ["named.id", "name", "paid_at"]
[sinks.named]
type = "parquet"
from = "named"
path = "{folder}/named"
[sinks.paid]
type = "parquet"
from = "paid"
path = "{folder}/paid"
[sinks.people]
type = "jdbc"
from = "customers"
url = "sqlite:{folder}/people.db"
table = "people"
mode = "replace"
[dead_letters]
type = "parquet"
path = "{folder}/dead"
"""

PAYMENT = json.dumps(
    {
        "type": "record",
        "name": "Payment",
        "fields": [
            {"name": "order_id", "type": "long"},
            {"name": "paid_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


def test_streams_join_streams_and_tables(place: Place) -> None:
    for topic, schema in (("orders", ORDER), ("payments", PAYMENT), ("customers", CUSTOMER)):
        place.register(topic, schema)
    people = [
        {"id": "ada", "name": "Ada"},
        {"id": "bob", "name": "Bob"},
        {"id": "ada", "name": "Ada Lovelace"},
        None,
        b"no",
    ]
    place.send("customers", CUSTOMER, people, keys=["ada", "bob", "ada", "bob", "eve"])
    place.send("orders", ORDER, [order(1, "ada"), order(2, "bob"), order(3, "ada")])
    place.send(
        "payments", PAYMENT, [{"order_id": 1, "paid_at": NOON + MINUTE}, {"order_id": 3, "paid_at": NOON + 60 * MINUTE}]
    )
    done = place.run(JOINS)
    assert done["sources"]["customers"] == {
        "read": 5, "good": 4, "poison": 1, "poison_by_reason": {"TOO_SHORT": 1}, "batches": 1, "lag": 0,
    }  # fmt: skip
    named = sorted((row["id"], row["name"]) for row in place.parquet("named"))
    assert named == [(1, "Ada Lovelace"), (2, None), (3, "Ada Lovelace")]
    # The payment of order 3 is outside the join interval.
    assert [(row["id"], row["name"]) for row in place.parquet("paid")] == [(1, "Ada Lovelace")]
    assert sqlite_rows(place.folder / "people.db", "SELECT * FROM people") == [("ada", "Ada Lovelace")]
    dead = place.parquet("dead")
    assert [(row["key"], row["raw"], row["reason"], row["source"]) for row in dead] == [
        (b"eve", b"no", "TOO_SHORT", "customers")
    ]

    # The other side of a join may arrive in a later run. The staged row keeps the old table value.
    place.send("customers", CUSTOMER, [{"id": "ada", "name": "Countess"}], keys=["ada"])
    place.send("payments", PAYMENT, [{"order_id": 2, "paid_at": NOON + MINUTE}])
    place.run(JOINS)
    assert sorted((row["id"], row["name"]) for row in place.parquet("paid")) == [(1, "Ada Lovelace"), (2, None)]
    assert len(place.parquet("named")) == 3
    assert sqlite_rows(place.folder / "people.db", "SELECT * FROM people") == [("ada", "Countess")]


def test_a_table_can_contain_primitive_values_and_record_metadata(place: Place) -> None:
    text = """
[sources.orders]
type = "topic"
topic = "{orders}"
[sources.names]
type = "topic"
topic = "{customers}"
read = "table"
metadata = true
[transforms.named]
type = "sql"
sql = "SELECT o.id, n.value AS name FROM orders o LEFT JOIN names n ON o.customer = CAST(n._record.key AS STRING)"
[sinks.named]
type = "parquet"
from = "named"
path = "{folder}/named"
[dead_letters]
type = "parquet"
path = "{folder}/dead"
"""
    place.register("orders", ORDER)
    place.send("orders", ORDER, [order(1, "ada"), order(2, "bob"), order(3, "cyd")])
    place.register("customers", '"string"')
    place.send("customers", '"string"', ["Ada", "Bob", "Cyd", None], keys=["ada", "bob", "cyd", "cyd"])
    with pytest.raises(PipelineError, match="there is no key field valu; did you mean value"):
        place.run(text.replace("metadata", 'key = ["valu"]\nmetadata'), checkpoint=str(place.folder / "other"))
    assert place.run(text)["sources"]["names"]["read"] == 4
    assert sorted((row["id"], row["name"]) for row in place.parquet("named")) == [(1, "Ada"), (2, "Bob"), (3, None)]


def test_a_table_uses_the_values_of_a_recreated_topic(place: Place) -> None:
    """The new offsets are smaller than the old ones."""
    text = """
[sources.customers]
type = "topic"
topic = "{customers}"
read = "table"
options = { failOnDataLoss = "false" }
[sinks.people]
type = "jdbc"
from = "customers"
url = "sqlite:{folder}/people.db"
table = "people"
mode = "replace"
"""
    place.register("customers", CUSTOMER)
    before = [{"id": "ada", "name": name} for name in ("A", "Ad", "Ada")]
    place.send("customers", CUSTOMER, before, keys=["ada"] * 3)
    place.run(text, on_poison="DROP")
    assert sqlite_rows(place.folder / "people.db", "SELECT * FROM people") == [("ada", "Ada")]
    place.delete("customers")
    place.send("customers", CUSTOMER, [{"id": "ada", "name": "Countess"}], keys=["ada"])
    assert place.run(text, on_poison="DROP")["read"] == 1
    assert sqlite_rows(place.folder / "people.db", "SELECT * FROM people") == [("ada", "Countess")]
