"""JSON Schema and Protobuf payloads in Spark."""

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from headgate.serdes import RegistryClient, Serializer, json_schema, protobuf_schema
from headgate.spark_udfs import decode_topic, from_registry_avro
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import frame_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERSON = """
{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "title": "Person",
 "properties": {
  "name": {"type": "string"}, "age": {"type": ["integer", "null"], "minimum": 0}, "height": {"type": "number"},
  "tags": {"type": "array", "items": {"type": "string"}},
  "home": {"$ref": "#/definitions/place"}, "scores": {"type": "object", "additionalProperties": {"type": "number"}},
  "any": {}},
 "required": ["name"],
 "definitions": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}}}
"""
PEOPLE = """
syntax = "proto3";
package people;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Person {
  string name = 1;
  optional int32 age = 2;
  uint64 big = 3;
  repeated string tags = 4;
  map<string, Place> places = 5;
  Kind kind = 6;
  oneof contact { string mail = 7; string phone = 8; }
  google.protobuf.Timestamp born = 9;
  google.protobuf.StringValue nick = 10;
  bytes photo = 11;
  Person parent = 12;
  uint32 small = 13;
}
message Place { string city = 1; }
message Other { string x = 1; }
enum Kind { UNKNOWN = 0; GOOD = 1; }
"""


def test_json_documents_are_decoded_to_structs(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    ada = {"name": "Ada", "age": 36, "height": 1.65, "tags": ["x", "y"], "home": {"city": "London", "zip": 1},
           "scores": {"math": 10}, "any": [1, {"a": None}], "more": 1}  # fmt: skip
    with RegistryClient(registry.url) as client:
        serializer = Serializer(client, json_schema(PERSON))
        good = serializer.serialize(ada, topic="json-people")
        small = serializer.serialize({"name": "Bob"}, topic="json-people")
    assert good is not None
    assert small is not None
    head = good[:5]
    rows = [good, small, head + b'{"name": 5}', head + b'{"name":', head + b'{"name": "x"}}', head + b"\xff", None,
            head + b'{"name": "x", "age": 99999999999999999999}', head + b'{"name": "\\ud800"}']  # fmt: skip
    df = frame_of(spark, rows)
    column = from_registry_avro("value", "json-people-value", registry=registry.url)
    decoded = [row.d for row in rows_of(df.select("n", column.alias("d")))]
    assert decoded[0].value.asDict(recursive=True) == {
        "name": "Ada", "age": 36, "height": 1.65, "tags": ["x", "y"], "home": {"city": "London"},
        "scores": {"math": 10.0}, "any": '[1,{"a":null}]',
    }  # fmt: skip
    assert decoded[1].value.asDict()["age"] is None
    assert [row.reason for row in decoded[2:]] == [
        "INVALID_VALUE", "TRUNCATED", "TRAILING_BYTES", "CORRUPT", "NULL", "INVALID_VALUE", "INVALID_VALUE",
    ]  # fmt: skip


def test_protobuf_messages_are_decoded_to_structs(spark: "SparkSession", registry: HeadgateRegistry) -> None:
    ada = {
        "name": "Ada", "age": 36, "big": str(2**64 - 1), "tags": ["x"], "places": {"home": {"city": "London"}},
        "kind": "GOOD", "phone": "1815", "born": "2020-01-02T03:04:05.000006Z", "nick": "A", "photo": "AAE=",
        "parent": {"name": "Byron"}, "small": 2**32 - 1,
    }  # fmt: skip
    with RegistryClient(registry.url) as client:
        serializer = Serializer(client, protobuf_schema(PEOPLE))
        good = serializer.serialize(ada, topic="proto-people")
        empty = serializer.serialize({}, topic="proto-people")
    assert good is not None
    assert empty is not None
    head = good[:5]
    rows = [good, empty, good[:-1], head + b"\x02\x04", head + b"\x02\x06", head + b"\x00\x0a\x02\xff\xfe", None]
    parted = decode_topic(frame_of(spark, rows), "proto-people-value", registry=registry.url)
    first, second = (row.value.asDict(recursive=True) for row in rows_of(parted.good))
    assert first.pop("parent") | {"tags": None, "places": None} == {
        **dict.fromkeys(second),
        "name": "Byron",
        "big": Decimal(0),
        "kind": "UNKNOWN",
        "photo": bytearray(),
        "small": 0,
    }
    assert first == {
        "name": "Ada", "age": 36, "big": Decimal(2**64 - 1), "tags": ["x"], "places": {"home": {"city": "London"}},
        "kind": "GOOD", "mail": None, "phone": "1815", "born": datetime(2020, 1, 2, 3, 4, 5, 6),
        "nick": "A", "photo": bytearray(b"\0\1"), "small": 2**32 - 1,
    }  # fmt: skip
    assert second == {
        "name": "", "age": None, "big": Decimal(0), "tags": [], "places": {}, "kind": "UNKNOWN", "mail": None,
        "phone": None, "born": None, "nick": None, "photo": bytearray(), "parent": None, "small": 0,
    }  # fmt: skip
    reasons = [row.reason for row in rows_of(parted.poison)]
    assert reasons == ["TRUNCATED", "UNRESOLVABLE", "CORRUPT", "CORRUPT", "NULL"]
