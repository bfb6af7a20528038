"""Dead letters: written, read and re-driven, with a limit."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from headgate.serdes import Poison, Reason, Record, RedriveRefused, read_dead_letter, redrive, to_dead_letter
from headgate.serdes.dead_letter import TRUNCATED

GUID = UUID(int=7)
RECORD = Record("orders", b"k", b"\x00\x00\x00\x00\x09x", (("trace", b"t1"), ("empty", None)), 3, 41, 1_700_000_000_000)
POISON = Poison(Reason.TRUNCATED, "line[2].price: the bytes end", RECORD.value, 9, GUID)


def dead(record: Record = RECORD, poison: Poison = POISON) -> Record:
    letter = to_dead_letter(record, poison, dead_letter_topic="orders.dead", application="billing", now_ms=5)
    return replace(letter, partition=0, offset=12)


def test_the_payload_and_the_headers_are_kept_and_the_reason_added() -> None:
    letter = dead()
    assert (letter.topic, letter.key, letter.value) == ("orders.dead", RECORD.key, RECORD.value)
    assert dict(letter.headers) == {
        "headgate.dead_letter.topic": b"orders",
        "headgate.dead_letter.partition": b"3",
        "headgate.dead_letter.offset": b"41",
        "headgate.dead_letter.timestamp": b"1700000000000",
        "headgate.dead_letter.reason": b"TRUNCATED",
        "headgate.dead_letter.detail": b"line[2].price: the bytes end",
        "headgate.dead_letter.part": b"value",
        "headgate.dead_letter.schema_id": b"9",
        "headgate.dead_letter.schema_guid": str(GUID).encode(),
        "headgate.dead_letter.application": b"billing",
        "headgate.dead_letter.attempt": b"1",
        "headgate.dead_letter.failed_at": b"5",
        "trace": b"t1",
        "empty": None,
    }


def test_a_dead_letter_is_read_back() -> None:
    letter = read_dead_letter(dead())
    assert letter.origin == RECORD
    assert (letter.reason, letter.detail, letter.part) == (Reason.TRUNCATED, POISON.detail, "value")
    assert (letter.schema_id, letter.schema_guid, letter.application) == (9, str(GUID), "billing")
    assert (letter.attempt, letter.failed_at_ms, letter.convention) == (1, 5, "headgate")


def test_a_redriven_record_is_unchanged_except_for_the_audit() -> None:
    back = redrive(dead(), by="ada", now_ms=99)
    assert (back.topic, back.key, back.value, back.partition) == ("orders", RECORD.key, RECORD.value, 3)
    headers = dict(back.headers)
    assert headers.keys() == {"trace", "empty", "headgate.redrive.attempt", "headgate.redrive.audit"}
    assert json.loads(headers["headgate.redrive.audit"] or b"") == [
        {
            "by": "ada",
            "at": 99,
            "from": "orders.dead",
            "partition": 0,
            "offset": 12,
            "reason": "TRUNCATED",
            "repaired": False,
        }
    ]


def test_a_repaired_value_replaces_the_old_one() -> None:
    back = redrive(dead(), by="ada", now_ms=99, value=b"mended")
    assert back.value == b"mended"
    assert b'"repaired":true' in (dict(back.headers)["headgate.redrive.audit"] or b"")


def test_a_record_is_not_redriven_endlessly() -> None:
    record = RECORD
    for attempt in range(1, 4):
        letter = dead(record)
        assert read_dead_letter(letter).attempt == attempt
        record = redrive(letter, by="ada", now_ms=attempt, attempts_max=4)
        assert len(json.loads(dict(record.headers)["headgate.redrive.audit"] or b"")) == attempt
    letter = dead(record)
    with pytest.raises(RedriveRefused, match="failed 4 times"):
        redrive(letter, by="ada", now_ms=9, attempts_max=4)


def test_an_incomplete_record_is_redriven_only_with_a_repaired_value() -> None:
    letter = dead(poison=replace(POISON, detail=f"{TRUNCATED}2000000 bytes; corrupt"))
    with pytest.raises(RedriveRefused, match="complete value"):
        redrive(letter, by="ada", now_ms=1)
    assert redrive(letter, by="ada", now_ms=1, value=b"mended").value == b"mended"


def test_a_record_without_a_source_topic_is_not_redriven() -> None:
    with pytest.raises(RedriveRefused, match="source topic"):
        redrive(Record("dead", None, b"x"), by="ada", now_ms=1)


def test_a_record_of_the_dead_letter_topic_is_not_redriven() -> None:
    letter = to_dead_letter(RECORD, POISON, dead_letter_topic="orders", application="a", now_ms=1)
    with pytest.raises(RedriveRefused, match="itself"):
        redrive(letter, by="ada", now_ms=1)


def test_connects_dead_letters_are_read() -> None:
    headers = (
        ("mine", b"1"),
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"2"),
        ("__connect.errors.offset", b"77"),
        ("__connect.errors.connector.name", b"sink"),
        ("__connect.errors.task.id", b"0"),
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"io.confluent.connect.avro.AvroConverter"),
        ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        ("__connect.errors.exception.message", b"Failed to deserialize"),
        ("__connect.errors.exception.stacktrace", b"..."),
    )
    letter = read_dead_letter(Record("dlq", b"k", b"v", headers))
    assert letter.convention == "connect"
    assert letter.origin == Record("orders", b"k", b"v", (("mine", b"1"),), 2, 77)
    assert letter.reason == Reason.CORRUPT
    assert letter.detail == ("VALUE_CONVERTER: org.apache.kafka.connect.errors.DataException: Failed to deserialize")
    assert (letter.application, letter.part) == ("sink", "value")
    assert redrive(Record("dlq", b"k", b"v", headers), by="a", now_ms=1).topic == "orders"


def test_springs_dead_letters_are_read() -> None:
    headers = (
        ("mine", b"1"),
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-partition", (2).to_bytes(4, "big")),
        ("kafka_dlt-original-offset", (77).to_bytes(8, "big")),
        ("kafka_dlt-original-timestamp", (1_700_000_000_000).to_bytes(8, "big")),
        ("kafka_dlt-original-consumer-group", b"billing"),
        ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
        ("kafka_dlt-exception-message", b"boom"),
        ("retry_topic-attempts", (3).to_bytes(4, "big")),
    )
    letter = read_dead_letter(Record("orders.DLT", b"k", b"v", headers))
    assert letter.convention == "spring"
    assert letter.origin == Record("orders", b"k", b"v", (("mine", b"1"),), 2, 77, 1_700_000_000_000)
    assert (letter.reason, letter.detail) == (None, "java.lang.IllegalStateException: boom")
    assert (letter.application, letter.attempt) == ("billing", 3)


def test_springs_first_source_and_last_exception_count() -> None:
    headers = (
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-offset", (77).to_bytes(8, "big")),
        ("kafka_dlt-exception-fqcn", b"java.lang.IllegalStateException"),
        ("kafka_dlt-original-topic", b"orders-dlt"),
        ("kafka_dlt-original-offset", (1).to_bytes(8, "big")),
        ("kafka_dlt-exception-fqcn", b"org.apache.kafka.common.errors.SerializationException"),
    )
    letter = read_dead_letter(Record("orders-dlt-dlt", None, b"v", headers))
    assert (letter.origin.topic, letter.origin.offset, letter.reason) == ("orders", 77, Reason.CORRUPT)


def test_invalid_headers_count_as_absent() -> None:
    headers = (
        ("headgate.dead_letter.topic", b"\xff"),
        ("headgate.dead_letter.partition", b"many"),
        ("headgate.dead_letter.offset", b"9" * 5000),
        ("headgate.dead_letter.reason", b"BORED"),
        ("headgate.dead_letter.attempt", b"-4"),
        ("headgate.redrive.audit", b"[" * 10_000),
    )
    letter = read_dead_letter(Record("d", None, None, headers))
    assert (letter.origin.partition, letter.origin.offset, letter.reason, letter.attempt) == (None, None, None, 1)
    assert redrive(Record("d", None, None, headers), by="a", now_ms=1).headers[-1][1] is not None
