"""Keys and values decoded in one read, and several subjects in one stream."""

from typing import Any

import pytest

from headgate.serdes import PoisonError
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import encoded, register
from tests.spark.source.queries import Query
from tests.spark.source.shop import ORDER, Shop
from tests.spark.source.test_decoded import checked
from tests.spark.source.topics import Message, Topics, read


@pytest.fixture
def shop(embedded: Topics, registry: HeadgateRegistry) -> Shop:
    shop = Shop(embedded, registry)
    shop.fill()
    return shop


def test_keys_and_values_are_decoded_in_one_read(shop: Shop) -> None:
    rows = checked(shop.topics.source(shop.topic, **shop.options, subject=shop.order_subject))
    assert [row["key"] for row in rows] == [{"id": 1}, None, {"id": 3}, None, {"id": 5}, None, {"id": 7}]
    assert [row["reason"] for row in rows] == [
        None, None, "UNRESOLVABLE", "BAD_MAGIC", "BAD_MAGIC", "BAD_MAGIC", "NULL",
    ]  # fmt: skip
    assert [row["part"] for row in rows] == [None, None, "value", "key", "value", "value", "value"]
    assert [row["key_raw"] for row in rows] == [
        None, None, shop.key(3), b"no key", shop.key(5), b"no key", shop.key(7),
    ]  # fmt: skip
    assert [row["raw"] for row in rows[3:]] == [shop.order(40), b"no value", b"no value", None]
    assert rows[3]["value"] == {"total": 40}
    assert rows[0]["schema_id"] == shop.order_id


def test_only_keys_can_be_decoded(shop: Shop) -> None:
    rows = checked(shop.topics.source(shop.topic, **shop.options))
    assert [row["value"] for row in rows[:2]] == [shop.order(10), shop.order(20)]
    assert [row["part"] for row in rows] == [None, None, None, "key", None, "key", None]
    assert [row["schema_id"] for row in rows] == [shop.key_id, None, shop.key_id, None, shop.key_id, None, shop.key_id]
    assert list(read(shop.topics.source(shop.topic, **shop.options, columns="key,part"))[3]) == ["key", "part"]


def test_a_schema_id_of_a_key_may_come_in_a_header(shop: Shop) -> None:
    header = ("__key_schema_id", b"\x00" + shop.key_id.to_bytes(4))
    shop.topics.produce(shop.topic, [Message(shop.key(9)[5:], shop.order(1), [header])])
    rows = checked(shop.topics.source(shop.topic, **shop.options, subject=shop.order_subject))
    assert (rows[-1]["key"], rows[-1]["value"], rows[-1]["reason"]) == ({"id": 9}, {"total": 1}, None)


def test_a_bad_key_fails_the_task_where_that_is_asked_for(embedded: Topics, registry: HeadgateRegistry) -> None:
    shop = Shop(embedded, registry)
    source = {**shop.options, "subject": shop.order_subject, "on_poison": "FAIL"}
    embedded.produce(shop.topic, [Message(None, shop.order(1))])
    assert len(read(embedded.source(shop.topic, **source))) == 1
    embedded.produce(shop.topic, [Message(b"no key", shop.order(1))])
    with pytest.raises(PoisonError, match="BAD_MAGIC"):
        read(embedded.source(shop.topic, **source))


def test_new_topics_of_a_pattern_are_decoded_by_their_subject(embedded: Topics, registry: HeadgateRegistry) -> None:
    prefix = embedded.create()
    first, second = embedded.create(name=f"{prefix}-a"), f"{prefix}-b"
    # The same schema, with the same id, under both subjects.
    (number, again) = (register(registry, f"{topic}-value", ORDER)[0] for topic in (first, second))
    assert number == again
    embedded.produce(first, [Message("k", encoded(ORDER, {"total": 1}, number))])
    options = {"registry.url": registry.url, "subject": f"{first}-value,{second}-value"}
    query = Query(embedded.source(topicPattern=f"{prefix}-.*", startingOffsets="earliest", **options))
    (row,) = query.batch() or []
    assert row["value"] == {f"{first}-value": {"total": 1}, f"{second}-value": None}
    embedded.create(name=second)
    embedded.produce(second, [Message("k", encoded(ORDER, {"total": 2}, number))])
    rows: list[dict[str, Any]] = []
    while not rows:
        rows += query.batch() or []
    assert rows[0]["value"] == {f"{first}-value": None, f"{second}-value": {"total": 2}}
    query.stop()
