"""Poison records between good ones: they never fail a read."""

import asyncio
import base64
import json
import struct
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c

from headgate.serdes.framing import frame
from tests.clients.proxy.consume.api import AVRO, JSON, Api, b64
from tests.clients.proxy.error_responses import error_of

USER = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "age", "type": ["null", "int"], "default": None},
        {"name": "photo", "type": "bytes", "default": ""},
    ],
}
# {"name": "Al", "age": 3, "photo": b"\xff"} in Avro: string, branch 1, zigzag 3, one byte.
AL = bytes([4]) + b"Al" + bytes([2, 6, 2, 0xFF])


def reasons(rows: list[dict[str, Any]]) -> list[str | None]:
    return [row["poison"]["reason"] if "poison" in row else None for row in rows]


@pytest.fixture(scope="module")
def schema_id(headgate_consume_api: Api) -> int:
    return headgate_consume_api.register("users-value", USER)


def test_avro_values_use_the_json_encoding(any_api: Api, schema_id: int) -> None:
    topic = any_api.topic()
    any_api.produce_bytes(topic, frame(schema_id, AL))
    instance = any_api.instance(accept=AVRO, format="avro").subscribe(topic)
    assert instance.read(1)[0]["value"] == {"name": "Al", "age": {"int": 3}, "photo": "ÿ"}


def test_poison_records_are_rows_between_good_ones(api: Api, schema_id: int) -> None:
    topic = api.topic()
    good = frame(schema_id, AL)
    bad = [b"", b"\x00\x01", b"hello world", frame(999_999, AL), good[:-1], good + b"x", b"\x00" + b"\xff" * 9]
    api.produce_bytes(topic, good, *bad, good)
    rows = api.instance(accept=AVRO, format="avro").subscribe(topic).read(9)
    assert reasons(rows) == [
        None,
        "TOO_SHORT",
        "TOO_SHORT",
        "BAD_MAGIC",
        "UNKNOWN_SCHEMA",
        "TRUNCATED",
        "TRAILING_BYTES",
        "UNKNOWN_SCHEMA",
        None,
    ]
    for row, raw in zip(rows[1:8], bad, strict=True):
        assert row["value"] is None
        assert row["poison"]["part"] == "value"
        assert base64.b64decode(row["poison"]["raw"]) == raw
        assert row["poison"]["detail"]
    assert rows[5]["poison"]["schema_id"] == schema_id
    assert rows[8]["value"]["name"] == "Al"


def test_a_poison_key_does_not_hide_the_value(api: Api) -> None:
    topic = api.topic()
    api.produce_rows(
        topic,
        [{"key": b64(b"{"), "value": b64(b"[1]")}, {"key": b64(b"{"), "value": b64(b"nope")}],
        "application/vnd.kafka.binary.v2+json",
    )
    first, second = api.instance().subscribe(topic).read(2)
    assert first["value"] == [1]
    assert (first["poison"]["part"], first["poison"]["reason"]) == ("key", "CORRUPT")
    assert (second["poison"]["part"], second["poison"]["also"]["part"]) == ("value", "key")


def test_a_null_value_is_not_poison(api: Api) -> None:
    topic = api.topic()
    api.produce(topic, None)
    row = api.instance(accept=AVRO, format="avro").subscribe(topic).read(1)[0]
    assert row["value"] is None
    assert "poison" not in row


def test_skip_omits_poison_and_continues(api: Api) -> None:
    topic = api.topic()
    api.produce_bytes(topic, b"1", b"{", b"2", b"{")
    instance = api.instance(auto_commit_enable=False).subscribe(topic)
    assert [row["value"] for row in instance.read(2, "timeout=1000&on_poison=skip")] == [1, 2]
    instance.do("POST", "/offsets")
    assert instance.committed(topic) == 4


def test_fail_returns_good_records_first_and_does_not_advance(api: Api) -> None:
    topic = api.topic()
    api.produce_bytes(topic, b"1", b"{", b"2")
    instance = api.instance().assign(topic, 0)
    assert [row["value"] for row in instance.read(1, "timeout=1000&on_poison=fail")] == [1]
    refused = instance.poll("timeout=1000&on_poison=fail")
    assert error_of(refused) == (422, 42203)
    assert f"{topic}-0 at offset 1" in refused.json()["message"]
    assert error_of(instance.poll("timeout=1000&on_poison=fail")) == (422, 42203)
    assert reasons(instance.read(2)) == ["CORRUPT", None]


def test_dead_letters_are_written_before_the_poison_counts_as_read(api: Api) -> None:
    topic, letters = api.topic(), api.topic()
    api.produce_bytes(topic, b"1", b"{", b"2")
    instance = api.instance().subscribe(topic)
    query = f"timeout=1000&on_poison=dead_letter&dead_letter_topic={letters}"
    assert [row["value"] for row in instance.read(2, query)] == [1, 2]
    letter = api.page(letters, "format=binary")["data"][0]
    assert base64.b64decode(letter["value"]["data"]) == b"{"
    told = {header["name"]: base64.b64decode(header["value"]).decode() for header in letter["headers"]}
    assert told["headgate.dead_letter.topic"] == topic
    assert told["headgate.dead_letter.offset"] == "1"
    assert told["headgate.dead_letter.reason"] == "CORRUPT"


def test_stateless_reads_write_dead_letters_only_with_post(api: Api) -> None:
    topic, letters = api.topic(), api.topic()
    api.produce_bytes(topic, b"1", b"{", b"2")
    query = f"?format=json&on_poison=dead_letter&dead_letter_topic={letters}"
    for path in (f"{api.base}/topics/{topic}/records", f"{api.base}/topics/{topic}/partitions/0/records"):
        refused = api.client.get(path + query)
        assert refused.status_code == 400
        assert "records:read" in refused.json()["message"]
    v2 = api.client.get(f"/topics/{topic}/partitions/0/records{query}&offset=0", headers={"Accept": JSON})
    assert v2.status_code == 400
    answer = api.client.post(f"{api.base}/topics/{topic}/records:read{query}")
    assert [row["value"]["data"] for row in answer.json()["data"]] == [1, 2]
    (letter,) = api.page(letters, "format=binary")["data"]
    assert base64.b64decode(letter["value"]["data"]) == b"{"


def test_a_payload_in_another_schema_language_is_poison(api: Api, schema_id: int) -> None:
    topic = api.topic()
    api.produce_bytes(topic, frame(schema_id, AL))
    accept = "application/vnd.kafka.jsonschema.v2+json"
    row = api.instance(accept=accept, format="jsonschema").subscribe(topic).read(1)[0]
    assert row["poison"]["reason"] == "UNRESOLVABLE"
    assert "avro" in row["poison"]["detail"]


def test_json_schema_and_protobuf_are_decoded(api: Api) -> None:
    topic = api.topic()
    number = api.register(f"{topic}-json", {"type": "object", "properties": {"n": {"type": "integer"}}}, "JSON")
    message = api.register(f"{topic}-proto", 'syntax = "proto3"; message M { string name = 1; }', "PROTOBUF")
    huge = b'{"n": 123456789012345678901234567890}'
    api.produce_bytes(topic, frame(number, huge), frame(number, b'{"n":"x"}'), frame(message, b"\x00\x0a\x02Al"))
    page = api.page(topic)
    kinds = [row["value"] and row["value"]["type"] for row in page["data"]]
    assert kinds == ["JSONSCHEMA", None, "PROTOBUF"]
    assert page["data"][0]["value"]["data"] == json.loads(huge)
    assert page["data"][1]["poison"]["reason"] == "INVALID_VALUE"
    assert page["data"][2]["value"] == {"type": "PROTOBUF", "schema_id": message, "data": {"name": "Al"}}


def test_health_with_a_registry(api: Api) -> None:
    health = api.client.get("/health").json()
    assert (health["status"], health["registry"]) == ("UP", {"status": "UP"})


def test_auto_returns_the_detected_type(api: Api, schema_id: int) -> None:
    topic = api.topic()
    api.produce_bytes(topic, frame(schema_id, AL), b'{"a": 1}', b"plain", b"\xff\xfe", b"", b"12")
    types = [row["value"]["type"] for row in api.page(topic)["data"]]
    assert types == ["AVRO", "JSON", "STRING", "BINARY", "STRING", "JSON"]


def test_values_with_several_lines_are_returned_in_one_line(api: Api) -> None:
    topic = api.topic()
    api.produce_bytes(topic, b'{\n  "a":\r\n 1\n}')
    assert [row["value"]["data"] for row in api.lines(topic, "format=json")] == [{"a": 1}]
    answer = api.records(topic, "format=json", accept=JSON.replace("vnd.kafka.json.v2+", ""))
    assert answer.json()["data"][0]["value"]["data"] == {"a": 1}


def test_a_header_name_that_is_not_utf8_does_not_stop_a_read(api: Api) -> None:
    topic, group = api.topic(), api.group()
    api.produce(topic, "before")
    asyncio.run(produce_with_odd_header(api.broker, topic))
    api.produce(topic, "after")
    rows = api.instance(group).subscribe(topic).read(3)
    assert [row["value"] for row in rows] == ["before", 7, "after"]
    assert rows[1]["headers"] == [{"key": "\ufffd\ufffdQ", "value": b64(b"v")}]
    assert [row["value"]["data"] for row in api.page(topic)["data"]] == ["before", 7, "after"]


async def produce_with_odd_header(broker: str, topic: str) -> None:
    """Produce a record with a header name that is not UTF-8. aiokafka rejects it, so the encoded batch is patched."""
    make: Any = AIOKafkaProducer
    producer = make(bootstrap_servers=broker)
    await producer.start()
    try:
        batch = producer.create_batch()
        batch.append(key=None, value=b"7", timestamp=None, headers=[("QQQ", b"v")])
        batch.close()
        data = bytearray(batch._build().replace(b"QQQ", b"\xff\xfeQ"))
        data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
        batch._buffer = bytes(data)
        batch._build = lambda: batch._buffer
        await (await producer.send_batch(batch, topic, partition=0))
    finally:
        await producer.stop()
