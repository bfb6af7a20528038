"""v3 produce: reports during the request, and batches with independent entries."""

import json
import socket
import time
from typing import Any

import pytest

from tests.clients.proxy.error_responses import error_of
from tests.clients.proxy.produce.conftest import World

JSON = "application/json"


def value(data: Any, kind: str = "JSON") -> dict[str, Any]:
    return {"value": {"type": kind, "data": data}}


def test_a_record_without_a_key_is_invalid_in_a_compacted_topic(any_world: World) -> None:
    name = any_world.topic(cleanup_policy="compact")
    path = f"/v3/clusters/{any_world.cluster_id}/topics/{name}/records"
    answer = any_world.post(path, {"value": {"type": "JSON", "data": 1}}, media="application/json")
    rejected = answer.json()
    assert (rejected["error_code"], "INVALID_RECORD" in rejected["message"]) == (40002, True), rejected


def test_a_report_is_sent_before_the_next_record(any_world: World) -> None:
    topic = any_world.topic()
    stream = any_world.stream(topic)
    assert stream.status() == 200, "before the first record"
    for number in range(3):
        stream.send_record(value({"n": number}))
        report = stream.report()
        assert report is not None
        assert (report["error_code"], report["partition_id"], report["offset"]) == (200, 0, number)
        assert report["cluster_id"] == any_world.cluster_id
        assert report["topic_name"] == topic
        assert report["timestamp"].endswith("Z")
        assert report["value"] == {"type": "JSON", "size": 7}
        assert "key" not in report
    stream.end()
    assert stream.report() is None
    stream.close()
    assert any_world.values(topic, 3) == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


def test_reports_have_the_order_of_the_records_and_an_invalid_one_is_skipped(world: World) -> None:
    topic = world.topic(partitions=3)
    records: list[dict[str, Any]] = []
    for number in range(300):
        if number % 50 == 7:
            records.append(value("%", "BINARY"))
        elif number % 50 == 9:
            records.append({**value(1), "partition_id": 7})
        else:
            records.append(
                {"key": {"type": "STRING", "data": str(number)}, **value({"n": number}), "partition_id": number % 3}
            )
    answer = world.post(world.v3(topic), "".join(json.dumps(record) for record in records), JSON)
    reports = [json.loads(line) for line in answer.text.splitlines()]
    assert len(reports) == 300
    for number, report in enumerate(reports):
        expected = {7: 400, 9: 40402}.get(number % 50, 200)
        assert report["error_code"] == expected, report
        if expected == 200:
            assert report["partition_id"] == number % 3
            assert report["value"]["size"] == len(json.dumps({"n": number}).replace(" ", ""))


def test_malformed_json_ends_the_stream_with_a_report(world: World) -> None:
    topic = world.topic()
    stream = world.stream(topic)
    stream.send(b'{"value":{"type":"JSON","data":1}}\n{"value" 5}\n{"value":{"type":"JSON","data":2}}')
    assert stream.status() == 200
    assert [report["error_code"] for report in stream.reports()] == [200, 400]
    stream.close()
    assert world.values(topic, 1) == [b"1"]


def test_complete_records_of_a_disconnected_client_are_written(world: World) -> None:
    topic = world.topic()
    stream = world.stream(topic)
    stream.send(b'{"value":{"type":"JSON","data":1}}\n{"value":{"type":"JS')
    assert stream.status() == 200
    report = stream.report()
    assert report is not None
    assert report["error_code"] == 200
    stream.close()
    world.produce(topic, {"value": 2})
    assert world.values(topic, 2) == [b"1", b"2"]


def test_the_proxy_stops_reading_from_a_client_that_does_not_read_reports(world: World) -> None:
    topic = world.topic()
    stream = world.stream(topic)
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.socket.settimeout(2)
    part = b"".join(b'{"value":{"type":"JSON","data":%d}}\n' % number for number in range(1000))
    sent = 0
    try:
        while sent < 1000:
            stream.send(part)
            sent += 1
    except TimeoutError:
        pass
    assert sent < 1000, "a million records were taken without one report being read"
    stream.close()


def test_keys_schemas_headers_and_timestamps_are_written(any_world: World) -> None:
    topic = any_world.topic()
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int"]}]})
    written = {"type": "AVRO", "schema": schema, "data": {"n": {"int": 5}}}
    record = {
        "key": {"type": "STRING", "data": "k"},
        "value": written,
        "headers": [{"name": "h", "value": "AQ=="}],
        "timestamp": "2026-01-31T12:00:00Z",
        "partition_id": 0,
    }
    (report,) = _reports(any_world, topic, record)
    assert report["key"] == {"type": "STRING", "size": 1}
    assert report["value"] == {
        "type": "AVRO",
        "subject": f"{topic}-value",
        "schema_id": report["value"]["schema_id"],
        "schema_version": 1,
        "size": 7,
    }
    assert report["timestamp"] == "2026-01-31T12:00:00.000Z"
    schema_id = report["value"]["schema_id"]
    latest, by_id, by_version, by_subject = _reports(
        any_world,
        topic,
        {"value": {"data": {"n": None}}},
        {"value": {"schema_id": schema_id, "data": {"n": None}}},
        {"value": {"schema_version": 1, "data": {"n": None}}},
        {"value": {"subject": f"{topic}-value", "data": {"n": None}}},
    )
    for other in (latest, by_id, by_version, by_subject):
        assert other["error_code"] == 200, other
        assert other["value"]["schema_id"] == schema_id
    messages = any_world.read(topic, 5)
    assert messages[0].headers() == [("h", b"\x01")]
    assert messages[0].timestamp()[1] == 1_769_860_800_000
    assert messages[1].value() == b"\x00" + schema_id.to_bytes(4, "big") + b"\x00"


def _reports(world: World, topic: str, *records: dict[str, Any]) -> list[dict[str, Any]]:
    answer = world.post(world.v3(topic), "\n".join(json.dumps(record) for record in records), JSON)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "XML", "data": 1}}, 400),
        ({"value": {"type": "JSON", "schema_id": 1, "data": 1}}, 400),
        ({"value": {"schema_id": 1, "schema_version": 1, "data": 1}}, 400),
        ({"value": {"subject": "a", "subject_name_strategy": "TOPIC_NAME", "data": 1}}, 400),
        ({"value": {"subject_name_strategy": "RECORD_NAME", "data": 1}}, 400),
        ({"value": {"subject_name_strategy": "TOPIC_RECORD_NAME", "schema_version": 1, "data": 1}}, 400),
        ({"value": {"schema_id": 999_999, "data": 1}}, 42207),
        ({"value": {"schema_version": 3, "data": 1}}, 400),
        ({"value": {"type": "AVRO", "schema": '"int"', "data": "text"}}, 400),
        ({"value": {"type": "JSONSCHEMA", "schema": '{"type": "integer"}', "data": "text"}}, 400),
        ({"value": {"type": "AVRO", "schema": "no", "data": 1}}, 42205),
        ({"value": {"data": 1}}, 42207),
        ({"value": 5}, 400),
        ({"what": 5}, 400),
        ({"headers": [{"value": "AQ=="}]}, 400),
        ({"partition_id": "one"}, 400),
        ({"timestamp": "99999-01-01"}, 400),
    ],
)
def test_an_invalid_record_has_its_error_code(world: World, record: dict[str, Any], code: int) -> None:
    bad, good = _reports(world, world.topic(), record, value(1))
    assert bad["error_code"] == code, bad
    assert set(bad) == {"error_code", "message"}
    assert good["error_code"] == 200


def test_a_schema_id_must_be_registered_under_the_subject(world: World) -> None:
    topic, other = world.topic(), world.topic()
    (registered,) = _reports(world, topic, {"value": {"type": "AVRO", "schema": '"int"', "data": 1}})
    schema_id = registered["value"]["schema_id"]
    by_id = {"schema_id": schema_id, "data": 1}
    refused, named = _reports(world, other, {"value": by_id}, {"value": {**by_id, "subject": f"{topic}-value"}})
    assert (refused["error_code"], named["error_code"]) == (42207, 200)
    assert f"{other}-value" in refused["message"]
    body = {"records": [{"value": 1}], "value_schema_id": schema_id}
    answer = world.post(f"/topics/{other}", body, "application/vnd.kafka.avro.v2+json")
    assert error_of(answer) == (422, 42207)


def test_a_record_without_key_and_value_is_a_record(world: World) -> None:
    topic = world.topic()
    _reports(world, topic, {}, {"key": {"type": "STRING", "data": "gone"}, "value": {"type": "JSON", "data": None}})
    assert [(message.key(), message.value()) for message in world.read(topic, 2)] == [(None, None), (b"gone", None)]


def test_streams_to_unknown_clusters_topics_and_media_types_are_rejected(world: World) -> None:
    topic = world.topic()
    assert error_of(world.post(f"/v3/clusters/other/topics/{topic}/records", "{}", JSON))[0] == 404
    assert error_of(world.post(world.v3("a%20b"), "{}", JSON)) == (404, 40401)
    assert error_of(world.post(world.v3(topic), "{}", "text/csv")) == (415, 415)
    assert error_of(world.post(world.v3(topic), "{}", JSON, accept="text/html")) == (406, 406)
    assert error_of(world.post(world.v3(topic), "", JSON)) == (422, 42206)


def test_the_entries_of_a_batch_succeed_or_fail_independently(any_world: World) -> None:
    topic = any_world.topic()
    entries = [
        {"id": "a", **value(1)},
        {"id": "b", **value("%", "BINARY")},
        {"id": "c", **value(3), "partition_id": 9},
        {"id": "d", **value(4)},
    ]
    answer = any_world.post(any_world.v3(topic, "records:batch"), {"entries": entries}, JSON)
    assert answer.status_code == 207
    body = answer.json()
    assert [(row["id"], row["offset"]) for row in body["successes"]] == [("a", 0), ("d", 1)]
    assert [(row["id"], row["error_code"]) for row in body["failures"]] == [("b", 400), ("c", 40402)]
    assert any_world.values(topic, 2) == [b"1", b"4"]


@pytest.mark.parametrize(
    "entries",
    [[], [{"id": ""}], [{"id": "x" * 81}], [{"id": 1}], [{}], [5], [{"id": "a"}, {"id": "a"}], None, {"id": "a"}],
)
def test_a_batch_with_invalid_ids_is_rejected(world: World, entries: Any) -> None:
    answer = world.post(world.v3(world.topic(), "records:batch"), {"entries": entries}, JSON)
    assert error_of(answer) == (422, 42208)


def test_the_error_names_an_unknown_field_of_a_batch(world: World) -> None:
    answer = world.post(world.v3(world.topic(), "records:batch"), {"records": {"subject": "x"}}, JSON)
    assert error_of(answer) == (422, 422)
    assert answer.json()["message"] == "Unrecognized field: records"


def test_a_trailing_slash_is_ignored(world: World) -> None:
    topic = world.topic()
    assert json.loads(world.post(world.v3(topic) + "/", value(1), JSON).text)["offset"] == 0
    assert world.post(f"/topics/{topic}/", {"records": [{"value": 2}]}).json()["offsets"][0]["offset"] == 1
    cluster = world.v3(topic).split("/topics/")[0]
    for path in ("/topics", f"/topics/{topic}/partitions", "/v3/clusters", f"{cluster}/topics/{topic}"):
        plain, slashed = (world.client.get(path + end) for end in ("", "/"))
        assert (plain.status_code, slashed.status_code) == (200, 200), path


def test_all_records_of_a_long_stream_are_written(world: World) -> None:
    topic = world.topic()
    started = time.time()
    reports = _reports(world, topic, *(value(number) for number in range(20_000)))
    assert [report["offset"] for report in reports] == list(range(20_000)), time.time() - started
    assert world.values(topic, 20_000) == [b"%d" % number for number in range(20_000)]
