"""Columns that Parquet cannot store are rejected when a pipeline is planned, before any row is read."""

import json

import pytest

from headgate.spark_udfs.pipeline.assembly import outline
from headgate.spark_udfs.pipeline.errors import PipelineError
from tests.spark.pipeline.conftest import Place

EMPTY = {"type": "record", "name": "Nothing", "fields": []}
TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}


def order(kind: object) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": TIMESTAMP}, {"name": "note", "type": kind}]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


SOURCE = """
[sources.orders]
type = "topic"
topic = "{orders}"
on_poison = "DROP"
"""
TO_PARQUET = """
[sinks.lake]
type = "parquet"
from = "orders"
path = "{folder}/lake"
"""


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (EMPTY, "note"),
        (["null", EMPTY], "note"),
        ({"type": "array", "items": EMPTY}, "note.element"),
        ({"type": "map", "values": EMPTY}, "note.value"),
        ({"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": EMPTY}]}, "note.inner"),
    ],
)
def test_a_record_without_fields_is_rejected_with_its_path(place: Place, kind: object, column: str) -> None:
    place.register("orders", order(kind))
    with pytest.raises(PipelineError) as caught:
        outline(place.spark, place.pipeline(SOURCE + TO_PARQUET), None)
    assert caught.value.what == f"sink lake: Parquet cannot store the column {column}"
    assert caught.value.why == "it is a record without fields"


def test_an_interval_column_is_rejected(place: Place) -> None:
    place.register("orders", order("string"))
    step = '[transforms.t]\ntype = "sql"\nsql = "SELECT id, {more} FROM orders"\n'
    text = SOURCE + step + TO_PARQUET.replace('"orders"', '"t"')
    with pytest.raises(PipelineError, match="sink lake: Parquet cannot store the column span"):
        outline(place.spark, place.pipeline(text.replace("{more}", "make_interval(1, 2) AS span")), None)
    outline(place.spark, place.pipeline(text.replace("{more}", "note")), None)


def test_other_sinks_accept_a_record_without_fields(place: Place) -> None:
    place.register("orders", order(EMPTY))
    place.send("orders", order(EMPTY), [{"id": "a", "at": 0, "note": {}}])
    text = SOURCE + '[sinks.look]\ntype = "console"\nfrom = "orders"\n'
    assert place.run(text)["good"] == 1


def test_tables_and_staged_rows_are_checked_too(place: Place) -> None:
    place.register("orders", order(EMPTY))
    to_console = '[sinks.look]\ntype = "console"\nfrom = "{}"\n'
    table = SOURCE.replace("on_poison", 'read = "table"\non_poison') + to_console.replace("{}", "orders")
    with pytest.raises(PipelineError, match="source orders, a table: Parquet cannot store the column note"):
        outline(place.spark, place.pipeline(table), None)
    window = """
[transforms.minutes]
type = "window"
from = "orders"
window = "tumbling"
time = "at"
size = "1 minute"
watermark = "1 minute"
select = { orders = "count(*)" }
"""
    with pytest.raises(PipelineError, match=r"orders, whose rows are staged as files for minutes: .* the column note"):
        outline(place.spark, place.pipeline(SOURCE + window + to_console.replace("{}", "minutes")), None)


def test_fields_that_differ_only_in_case_are_rejected_if_spark_reads_the_files(place: Place) -> None:
    pair = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}
    place.register("orders", order({"type": "array", "items": pair}))
    table = SOURCE.replace("on_poison", 'read = "table"\non_poison') + '[sinks.c]\ntype = "console"\nfrom = "orders"\n'
    with pytest.raises(PipelineError, match=r"a table: the columns a and A of note\.element differ only in case"):
        outline(place.spark, place.pipeline(table), None)
    outline(place.spark, place.pipeline(SOURCE + TO_PARQUET), None)
    place.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        outline(place.spark, place.pipeline(table), None)
    finally:
        place.spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("sink", "reported"),
    [
        (TO_PARQUET, "sink lake: the rows have no columns, and Parquet needs at least one"),
        (
            '[sinks.base]\ntype = "jdbc"\nfrom = "orders"\nurl = "sqlite:{folder}/o.db"\ntable = "o"\n',
            "sink base: the rows have no columns, and a table needs at least one",
        ),
    ],
)
def test_rows_without_columns_are_rejected(place: Place, sink: str, reported: str) -> None:
    place.register("orders", json.dumps(EMPTY))
    with pytest.raises(PipelineError, match=reported):
        place.run(SOURCE + sink)
