"""Values decoded in the source: every kind of column is of the very type that Spark asks for, in every language."""

import json
from typing import Any

import pytest
from pyarrow import lib as pa
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.serdes import PoisonError, json_schema, protobuf_schema
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from headgate.spark_udfs import NewVersionError, ReaderError, RegistryNotReady
from headgate.spark_udfs.source.data_source import HeadgateDataSource
from headgate.spark_udfs.source.errors import BadOption
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.ports import free_port
from tests.spark.functions.payloads import (
    CUSTOMER_V1,
    CUSTOMER_V2,
    CUSTOMER_V3,
    CUSTOMERS,
    customers,
    encoded,
    register,
)
from tests.spark.source.topics import Message, Topics, read

WIDE: dict[str, Any] = {
    "type": "record",
    "name": "Wide",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "b", "type": "bytes"},
        {"name": "s", "type": "string"},
        {"name": "n", "type": "null"},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 4}},
        {"name": "kind", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time_ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "time_us", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "at_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "at_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "huge", "type": {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}},
        {"name": "list", "type": {"type": "array", "items": {"type": "array", "items": ["null", "string"]}}},
        {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {"name": "maybe", "type": ["null", "long", "string"]},
        {
            "name": "inner",
            "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", "double"]}]},
        },
    ],
}
WIDE_VALUE: dict[str, Any] = {
    "flag": True,
    "i": -1,
    "l": 2**40,
    "f": 1.5,
    "d": 0.1,
    "b": b"\x00",
    "s": "ü",
    "n": None,
    "fixed": b"abcd",
    "kind": "B",
    "day": 3,
    "time_ms": 5,
    "time_us": 6,
    "at_ms": 7,
    "at_us": 8,
    "local": 9,
    "price": b"\x04\xd2",
    "huge": b"\x04\xd2",
    "list": [["a", None], []],
    "map": {"k": [1, 2]},
    "maybe": "text",
    "inner": {"x": None},
}


def source_of(topics: Topics, registry: HeadgateRegistry, topic: str, **options: str) -> HeadgateDataSource:
    return topics.source(topic, **{"registry.url": registry.url, "subject": f"{topic}-value", **options})


def checked(source: HeadgateDataSource) -> list[dict[str, Any]]:
    """The rows, once the types are seen to be Spark's."""
    schema = source.schema()
    reader = source.reader(schema)
    wanted = to_arrow_schema(schema, timezone="UTC")
    for partition in reader.partitions():
        for batch in reader.read(partition):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.equals(wanted)
            batch.validate(full=True)
    return read(source)


def test_every_avro_type_has_the_value_that_spark_expects(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    (schema_id,) = register(registry, f"{topic}-value", WIDE)
    payload = frame(schema_id, _wide_body())
    embedded.produce(topic, [Message("k", payload), Message("k", b"junk"), Message("k", None)])
    good, junk, empty = checked(source_of(embedded, registry, topic, includeHeaders="true"))
    assert good["reason"] is None
    assert good["value"]["s"] == "ü"
    assert good["value"]["list"] == [["a", None], []]
    assert (junk["value"], junk["reason"], junk["raw"]) == (None, "TOO_SHORT", b"junk")
    assert (empty["value"], empty["reason"], empty["raw"]) == (None, "NULL", None)


def _wide_body() -> bytes:
    """Without the logical types, so that their values are the numbers and bytes above."""

    def plain(kind: Any) -> Any:
        if isinstance(kind, dict):
            if "fields" in kind:
                return {**kind, "fields": [{**field, "type": plain(field["type"])} for field in kind["fields"]]}
            return {
                name: plain(part) for name, part in kind.items() if name not in ("logicalType", "precision", "scale")
            }
        return [plain(part) for part in kind] if isinstance(kind, list) else kind

    return Encoder(parse(json.dumps(plain(WIDE)))).encode(WIDE_VALUE)


def test_json_schema_topics_are_decoded(embedded: Topics, registry: HeadgateRegistry) -> None:
    text = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["id"],
    }
    topic = embedded.create()
    (schema_id,) = register(registry, f"{topic}-value", json_schema(json.dumps(text)))
    payloads = [frame(schema_id, b'{"id": 1, "tags": ["a"]}'), frame(schema_id, b'{"tags": []}')]
    embedded.produce(topic, [Message("k", payload) for payload in payloads])
    good, bad = checked(source_of(embedded, registry, topic))
    assert (good["value"]["id"], good["value"]["tags"]) == (1, ["a"])
    assert bad["reason"] == "INVALID_VALUE"


def test_protobuf_topics_are_decoded(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    text = 'syntax = "proto3"; message Order { int64 id = 1; repeated string tags = 2; }'
    (schema_id,) = register(registry, f"{topic}-value", protobuf_schema(text))
    payloads = [frame(schema_id, b"\x00\x08\x07\x12\x01a"), frame(schema_id, b"\x00\x08")]
    embedded.produce(topic, [Message("k", payload) for payload in payloads])
    good, bad = checked(source_of(embedded, registry, topic))
    assert (good["value"]["id"], good["value"]["tags"]) == (7, ["a"])
    assert bad["reason"] == "TRUNCATED"


def test_a_schema_id_may_come_in_a_header(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    (schema_id,) = register(registry, f"{topic}-value", CUSTOMER_V1)
    payload = encoded(CUSTOMER_V1, {"id": 1, "fullname": "Ada", "fax": "1"}, schema_id)
    header = ("__value_schema_id", b"\x00" + schema_id.to_bytes(4))
    embedded.produce(topic, [Message("k", payload[5:], [header]), Message("k", payload)])
    for has_headers in ("true", "false"):
        rows = checked(source_of(embedded, registry, topic, includeHeaders=has_headers))
        assert [row["value"]["fullname"] for row in rows] == ["Ada", "Ada"]
        assert ("headers" in rows[0]) == (has_headers == "true")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["email", "id", "name", "points"]),
        ({"version": "latest"}, ["email", "id", "name", "points"]),
        ({"version": "1"}, ["id", "fullname", "fax"]),
        ({"fields": "id,points"}, ["id", "points"]),
        ({"fields": '["name"]'}, ["name"]),
        ({"schema": json.dumps(CUSTOMER_V2)}, ["id", "fullname", "email"]),
    ],
    ids=str,
)
def test_the_readers_schema_is_chosen_by_options(
    embedded: Topics, registry: HeadgateRegistry, options: dict[str, str], names: list[str]
) -> None:
    topic = embedded.create()
    ids = register(registry, f"{topic}-value", *CUSTOMERS)
    embedded.produce(topic, [Message("k", payload) for payload in customers(ids)])
    rows = checked(source_of(embedded, registry, topic, **options))
    values = [row["value"] for row in rows if row["value"] is not None]
    assert values
    assert all(list(value) == names for value in values)


def test_flat_returns_fields_as_columns(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    ids = register(registry, f"{topic}-value", *CUSTOMERS)
    embedded.produce(topic, [Message("k", payload) for payload in (*customers(ids), b"junk")])
    rows = checked(source_of(embedded, registry, topic, flat="true", columns="offset,value,reason"))
    assert list(rows[0]) == ["offset", "email", "id", "name", "points", "reason"]
    assert [row["id"] for row in rows] == [1, 2**40, 3, None]
    assert rows[3] == {"offset": 3, "email": None, "id": None, "name": None, "points": None, "reason": "TOO_SHORT"}
    assert "value" not in checked(source_of(embedded, registry, topic, flat="true"))[0]


def test_two_columns_of_one_name_are_refused(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    text = {"type": "record", "name": "R", "fields": [{"name": "Offset", "type": "long"}]}
    (schema_id,) = register(registry, f"{topic}-value", text)
    embedded.produce(topic, [Message("k", encoded(text, {"Offset": 77}, schema_id))])
    with pytest.raises(BadOption, match="two columns 'offset'"):
        source_of(embedded, registry, topic, flat="true").schema()
    assert checked(source_of(embedded, registry, topic, flat="true", columns="value")) == [{"Offset": 77}]
    with pytest.raises(BadOption, match="the value is binary, which has no fields"):
        embedded.source(topic, flat="true").schema()


def test_a_schema_is_chosen_by_its_id_alone(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    ids = register(registry, f"{topic}-value", *CUSTOMERS)
    embedded.produce(topic, [Message("k", customers(ids)[2])])
    given = {"registry.url": registry.url, "schema_id": str(ids[2])}
    assert read(embedded.source(topic, **given))[0]["value"]["name"] == "Cyd"


def test_poison_fails_the_task_where_that_is_asked_for(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    register(registry, f"{topic}-value", CUSTOMER_V1)
    embedded.produce(topic, [Message("k", b"junk")])
    with pytest.raises(PoisonError, match="TOO_SHORT"):
        read(source_of(embedded, registry, topic, on_poison="FAIL"))


def test_a_newer_version_fails_the_task_where_that_is_asked_for(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    register(registry, f"{topic}-value", CUSTOMER_V2)
    source = source_of(embedded, registry, topic, on_new_version="FAIL")
    keeping = source_of(embedded, registry, topic)
    for one in (source, keeping):
        one.schema()
    (newer,) = register(registry, f"{topic}-value", CUSTOMER_V3)
    payload = encoded(CUSTOMER_V3, {"id": 3, "name": "Cyd", "email": None, "points": 5}, newer)
    embedded.produce(topic, [Message("k", payload)])
    with pytest.raises(NewVersionError, match="version 2 of"):
        read(source)
    assert len(read(keeping)) == 1


def test_a_registry_that_is_not_there_fails_before_the_job_begins(embedded: Topics) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    given = {"registry.url": address, "subject": "orders-value"}
    with pytest.raises(RegistryNotReady, match=address):
        embedded.source(embedded.create(), **given).schema()


def test_a_subject_or_field_that_is_not_there_is_named(embedded: Topics, registry: HeadgateRegistry) -> None:
    topic = embedded.create()
    with pytest.raises(ReaderError, match=f"{topic}-value is not in the registry"):
        source_of(embedded, registry, topic).schema()
    register(registry, f"{topic}-value", CUSTOMER_V1)
    with pytest.raises(ReaderError, match="nonsense"):
        source_of(embedded, registry, topic, fields="nonsense").schema()
