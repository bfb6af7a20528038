"""Each sink, fed from a topic with poison in it."""

from tests.spark.pipeline.conftest import ORDER, Place, order

HALF = """
[sources.orders]
type = "topic"
topic = "{orders}"
[dead_letters]
type = "topic"
topic = "{dead}"
"""


def test_a_parquet_sink_holds_every_good_row_and_a_topic_every_dead_letter(place: Place) -> None:
    place.send("orders", ORDER, [order(1), b"\x01junk", order(2), None, order(3)])
    done = place.run(HALF + '[sinks.lake]\ntype = "parquet"\nfrom = "orders"\npath = "{folder}/lake"\n')
    assert (done["read"], done["good"], done["poison"]) == (5, 3, 2)
    assert sorted(row["id"] for row in place.parquet("lake")) == [1, 2, 3]
