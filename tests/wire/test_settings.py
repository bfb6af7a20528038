"""Settings that change responses, each on a separate broker, and state that must survive a restart."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.live.headgate import HeadgateBroker
from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.scenarios.configs import SET, TOPIC, change, describe, value_of
from tests.wire.scenarios.membership import Member
from tests.wire.transcript import Wire, fetch_body, produce_body

QUICK = {"group.initial.rebalance.delay.ms": "0", "node.id": "1"}


def metadata(wire: Wire, name: str, *, create: bool) -> Plain:
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": create}
    topic: Plain = wire.main.ask("metadata", 12, body)["topics"][0]
    return topic


def test_no_topic_is_made_where_auto_creation_is_off(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path, {**QUICK, "auto.create.topics.enable": "false"})
    broker.start()
    wire = Wire(broker.address, "auto-create off")
    try:
        assert metadata(wire, "absent", create=True)["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"
        assert metadata(wire, "absent", create=False)["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION"
        wire.topic("made-on-purpose")
    finally:
        wire.close()
        broker.stop()


def test_defaults_of_the_broker_hold_for_new_topics(tmp_path: Path) -> None:
    settings = {**QUICK, "num.partitions": "4", "log.retention.ms": "12345678", "message.max.bytes": "3000"}
    broker = HeadgateBroker(tmp_path, settings)
    broker.start()
    wire = Wire(broker.address, "defaults")
    try:
        made = metadata(wire, "auto", create=True)
        assert made["error_code"] == "NONE"
        assert len(made["partitions"]) == 4
        answer = wire.main.ask("describe_configs", 4, describe(TOPIC, "auto"))
        assert value_of(answer, "retention.ms") == "12345678"
        assert value_of(answer, "max.message.bytes") == "3000"
        refused = wire.main.ask("produce", 9, produce_body("auto", Batch([NewRecord(b"x" * 4000)])))
        assert refused["responses"][0]["partition_responses"][0]["error_code"] == "MESSAGE_TOO_LARGE"
    finally:
        wire.close()
        broker.stop()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_changes_nothing_that_clients_can_see(tmp_path: Path, end: str) -> None:
    broker = HeadgateBroker(tmp_path, QUICK)
    broker.start()
    wire = Wire(broker.address, "before")
    topic = wire.topic("kept", 2, {"retention.bytes": "777777"})
    wire.main.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", SET, "999999999")))
    asked = {"transactional_id": None, "transaction_timeout": 60_000}
    producer = wire.main.ask("init_producer_id", 4, asked)

    def idempotent(sequence: int) -> Batch:
        record = NewRecord(f"{sequence}".encode(), key=b"k", headers=(("h", b"1"),))
        drawn = {"producer_id": producer["producer_id"], "producer_epoch": 0, "base_sequence": sequence}
        return Batch([record], **drawn)

    for sequence in range(8):
        wire.produce(topic, idempotent(sequence))
    wire.produce(topic, Batch([NewRecord(b"x")] * 3), partition=1)
    trim = [{"partition_index": 1, "offset": 2}]
    wire.main.ask("delete_records", 2, {"topics": [{"name": topic, "partitions": trim}], "timeout": 5000})
    group = wire.group("kept-group")
    member = Member(wire, group, "A")
    member.join()
    member.sync({member.member_id: b"everything"})
    commit = {
        "group_id": group,
        "generation_id_or_member_epoch": member.generation,
        "member_id": member.member_id,
        "topics": [
            {
                "name": topic,
                "partitions": [{"partition_index": 0, "committed_offset": 5, "committed_metadata": "a note"}],
            }
        ],
    }
    wire.main.ask("offset_commit", 8, commit)
    before = _visible(wire, topic, group)
    topic_id = wire.topic_id(topic)
    wire.close()
    if end == "stop":
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()
    wire = Wire(broker.address, "after")
    try:
        assert _visible(wire, topic, group) == before
        assert wire.topic_id(topic) == topic_id
        # The broker keeps a window of five batches, so that a producer can retry after a lost response.
        for sequence in range(3, 8):
            again = wire.produce(topic, idempotent(sequence))
            assert again["base_offset"] == sequence
        assert wire.produce(topic, idempotent(8))["base_offset"] == 8
        gap = wire.main.ask("produce", 9, produce_body(topic, idempotent(10)))
        assert gap["responses"][0]["partition_responses"][0]["error_code"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        fresh = wire.main.ask("init_producer_id", 4, asked)
        assert fresh["producer_id"] > producer["producer_id"], "an id was handed out twice"
    finally:
        wire.close()
        broker.stop()


def _visible(wire: Wire, topic: str, group: str) -> list[Any]:
    configs = wire.main.ask("describe_configs", 4, describe(TOPIC, topic))["results"][0]["configs"]

    def offsets(when: int) -> list[Any]:
        # Version 3 has no leader epoch. A start after a crash may increase the leader epoch.
        parts = [{"partition_index": index, "timestamp": when} for index in (0, 1)]
        asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": parts}]}
        found: list[Any] = wire.main.ask("list_offsets", 3, asked)["topics"]
        return found

    return [
        sorted((config["name"], config["value"], config["config_source"]) for config in configs),
        offsets(-1),
        offsets(-2),
        wire.main.ask("fetch", 11, fetch_body(topic, 0))["responses"],
        wire.main.ask("fetch", 11, fetch_body(topic, 2, partition=1))["responses"],
        wire.main.ask("offset_fetch", 7, {"group_id": group, "topics": None})["topics"],
        len(wire.main.ask("metadata", 12, {"topics": [{"name": topic}]})["topics"][0]["partitions"]),
    ]


def test_null_records_are_refused_and_the_connection_lives_on(headgate_broker: HeadgateBroker) -> None:
    """Apache Kafka 4.3.1 never answers this request, so there is no golden response."""
    wire = Wire(headgate_broker.address, "null records")
    try:
        body = produce_body(wire.topic("nulls"))
        body["topic_data"][0]["partition_data"][0]["records"] = None
        answer = wire.main.ask("produce", 9, body)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "INVALID_RECORD"
        wire.main.ask("metadata", 12, {"topics": []})
    finally:
        wire.close()


def test_a_join_with_unreadable_metadata_is_answered(headgate_broker: HeadgateBroker) -> None:
    """Apache Kafka 4.3.1 never answers this request either. This broker treats member metadata as opaque."""
    wire = Wire(headgate_broker.address, "opaque metadata")
    try:
        member = Member(wire, wire.group("opaque"), "A", protocols=(("range", b"\x00\x01no subscription"),))
        assert member.join()["error_code"] == "NONE"
        assert member.sync({member.member_id: b"\xff"})["assignment"] == "\xff"
        member.leave()
    finally:
        wire.close()


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_records_are_sent_at_once(headgate_broker: HeadgateBroker, version: int) -> None:
    """If the kernel delays the last bytes of a response (MSG_MORE), each response takes 200 ms."""
    wire = Wire(headgate_broker.address, "at once")
    try:
        topic = wire.topic("prompt")
        wire.produce(topic, Batch())
        body = fetch_body(topic, 0, topic_id=wire.topic_id(topic))
        assert min(_seconds(wire, version, body) for _ in range(20)) < 0.1
    finally:
        wire.close()


def _seconds(wire: Wire, version: int, body: Plain) -> float:
    started = time.perf_counter()
    wire.main.ask("fetch", version, body)
    return time.perf_counter() - started
