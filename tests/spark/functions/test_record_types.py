"""Topics with several record types, split into one DataFrame per type and the dead letters."""

from typing import TYPE_CHECKING, Any

import pytest

from headgate.serdes import DeadLetter, Record, read_dead_letter
from headgate.spark_udfs import FrameError, decode_topic, decode_types, to_dead_letter_records
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.source.shop import Shop
from tests.spark.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def shop(headgate_broker: HeadgateBroker, registry: HeadgateRegistry) -> Shop:
    shop = Shop(Topics(headgate_broker.address), registry)
    shop.fill()
    return shop


def test_record_types_are_split_and_every_row_is_somewhere(spark: "SparkSession", shop: Shop) -> None:
    subjects = [shop.order_subject, shop.refund_subject]
    options = {**shop.options, "subscribe": shop.topic, "includeHeaders": "true"}
    df = spark.read.format("headgate").options(**options, subject=",".join(subjects)).load().persist()
    try:
        good, poison = decode_types(df)
        assert list(good) == subjects
        orders = good[shop.order_subject].select("key.id", "value.total").collect()
        assert {row.total: row.id for row in orders} == {10: 1, 20: None}
        assert [row.why for row in good[shop.refund_subject].select("value.why").collect()] == ["late"]
        assert "key_raw" not in good[shop.order_subject].columns
        letters = {row.offset: row for row in poison.collect()}
        assert sorted(letters) == [3, 4, 5, 6]
        assert (bytes(letters[3].key), bytes(letters[3].raw), letters[3].part) == (b"no key", shop.order(40), "key")
        assert (bytes(letters[4].key), bytes(letters[4].raw), letters[4].part) == (shop.key(5), b"no value", "value")
        records = [letter_of(row) for row in to_dead_letter_records(poison, "dead", application="t").collect()]
        by_offset = {letter.origin.offset: letter for letter in records}
        assert {offset: letter.part for offset, letter in by_offset.items()} == {
            3: "key", 4: "value", 5: "value", 6: "value",
        }  # fmt: skip
        assert (by_offset[4].origin.key, by_offset[4].origin.headers) == (shop.key(5), (("trace", b"x"),))
        with pytest.raises(FrameError, match="the value has the fields"):
            decode_types(df, ["other"])
    finally:
        df.unpersist()


def letter_of(row: Any) -> DeadLetter:
    headers = tuple((header.key, bytes(header.value)) for header in row.headers)
    value = None if row.value is None else bytes(row.value)
    return read_dead_letter(Record("dead", bytes(row.key), value, headers))


def test_record_types_of_any_frame_are_split(spark: "SparkSession", shop: Shop, registry: HeadgateRegistry) -> None:
    raw = spark.read.format("headgate").options(**{"bootstrap.servers": shop.topics.address}, subscribe=shop.topic)
    df = raw.load()
    subjects = [shop.order_subject, shop.refund_subject]
    good, poison = decode_types(df, subjects, registry=registry.url)
    assert {subject: frame.count() for subject, frame in good.items()} == dict(zip(subjects, (3, 1), strict=True))
    assert poison.count() == 3
    split = decode_topic(df, subjects, registry=registry.url)
    assert split.good.select(f"value.`{shop.refund_subject}`.why").where("why IS NOT NULL").count() == 1
    assert sorted(good[shop.order_subject].columns) == sorted([*df.columns, "schema_id"])
