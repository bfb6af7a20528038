"""Columns that Parquet cannot hold are refused when a pipeline is planned, before any row is read."""

import json

import pytest

from headgate.spark_udfs.pipeline.assembly import outline
from headgate.spark_udfs.pipeline.errors import PipelineError
from tests.spark.pipeline.conftest import Place

NOTHING = {"type": "record", "name": "Nothing", "fields": []}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}


def order(kind: object) -> str:
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": MOMENT}, {"name": "note", "type": kind}]
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
        (NOTHING, "note"),
        (["null", NOTHING], "note"),
        ({"type": "array", "items": NOTHING}, "note.element"),
        ({"type": "map", "values": NOTHING}, "note.value"),
        ({"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": NOTHING}]}, "note.inner"),
    ],
)
def test_a_record_without_fields_is_refused_where_it_is(place: Place, kind: object, column: str) -> None:
    place.register("orders", order(kind))
    with pytest.raises(PipelineError) as caught:
        outline(place.spark, place.pipeline(SOURCE + TO_PARQUET), None)
    assert caught.value.what == f"sink lake: Parquet cannot hold the column {column}"
    assert caught.value.why == "it is a record without fields"


def test_an_interval_is_refused_and_rows_without_it_are_not(place: Place) -> None:
    place.register("orders", order("string"))
    step = '[transforms.t]\ntype = "sql"\nsql = "SELECT id, {more} FROM orders"\n'
    text = SOURCE + step + TO_PARQUET.replace('"orders"', '"t"')
    with pytest.raises(PipelineError, match="sink lake: Parquet cannot hold the column span"):
        outline(place.spark, place.pipeline(text.replace("{more}", "make_interval(1, 2) AS span")), None)
    outline(place.spark, place.pipeline(text.replace("{more}", "note")), None)


def test_a_record_without_fields_reaches_other_sinks(place: Place) -> None:
    place.register("orders", order(NOTHING))
    place.send("orders", order(NOTHING), [{"id": "a", "at": 0, "note": {}}])
    text = SOURCE + '[sinks.look]\ntype = "console"\nfrom = "orders"\n'
    assert place.run(text)["good"] == 1


def test_tables_and_rows_that_wait_for_others_are_parquet_too(place: Place) -> None:
    place.register("orders", order(NOTHING))
    to_console = '[sinks.look]\ntype = "console"\nfrom = "{}"\n'
    table = SOURCE.replace("on_poison", 'read = "table"\non_poison') + to_console.replace("{}", "orders")
    with pytest.raises(PipelineError, match="source orders, a table: Parquet cannot hold the column note"):
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
    with pytest.raises(PipelineError, match=r"orders, whose rows wait in files for minutes: .* the column note"):
        outline(place.spark, place.pipeline(SOURCE + window + to_console.replace("{}", "minutes")), None)


def test_fields_that_differ_in_case_only_are_refused_where_spark_must_read_them_again(place: Place) -> None:
    pair = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}
    place.register("orders", order({"type": "array", "items": pair}))
    table = SOURCE.replace("on_poison", 'read = "table"\non_poison') + '[sinks.c]\ntype = "console"\nfrom = "orders"\n'
    with pytest.raises(PipelineError, match=r"a table: the columns a and A of note\.element differ in case only"):
        outline(place.spark, place.pipeline(table), None)
    outline(place.spark, place.pipeline(SOURCE + TO_PARQUET), None)
    place.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        outline(place.spark, place.pipeline(table), None)
    finally:
        place.spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (TO_PARQUET, "sink lake: the rows have no columns, and Parquet needs one"),
        (
            '[sinks.base]\ntype = "jdbc"\nfrom = "orders"\nurl = "sqlite:{folder}/o.db"\ntable = "o"\n',
            "sink base: the rows have no columns, and a table needs one",
        ),
    ],
)
def test_rows_without_columns_are_refused(place: Place, sink: str, told: str) -> None:
    place.register("orders", json.dumps(NOTHING))
    with pytest.raises(PipelineError, match=told):
        place.run(SOURCE + sink)
